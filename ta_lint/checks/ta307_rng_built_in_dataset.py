"""TA307: a generator built in `Dataset.__init__` is copied into each worker, where it draws the same numbers."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.values.calls import called_name
from ta_lint.syntax.tree import Node, attribute_of_self

KEYWORDS = ("__getitem__", ("default_rng", "RandomState", "Random", "Generator"))

_DATASET = "torch.utils.data.Dataset"
_ITERABLE = "torch.utils.data.IterableDataset"
_GENERATORS = frozenset(
    {"numpy.random.default_rng", "numpy.random.RandomState", "random.Random", "torch.Generator"}
)
_SEEDING = frozenset("manual_seed seed set_state setstate".split())
_CALLS_DEEP = 2


def check(module: FileFacts) -> Iterator[Suspicion]:
    if "worker_init_fn" in module.source.text or "get_worker_info" in module.source.text:
        return  # code that mentions these handles workers itself
    suspicions = list(_suspicions(module))
    if suspicions and not _has_no_such_workers(module):
        yield from suspicions


def _has_no_such_workers(module: FileFacts) -> bool:
    """Whether no loader of the program has workers, another file handles them itself, or that is not known."""
    handling = module.names.beside("worker_init_fn", "get_worker_info")
    loading = module.names.beside("DataLoader")
    if loading is None or handling is None or handling:
        return True
    loaders = [loader for root in (module.tree.root, *loading) for loader in module.loaders.made_in(root)]
    if not loaders:
        return _goes_over_its_samples(module)
    return all(_has_no_workers(loader.given("num_workers"), module) for loader in loaders)


def _goes_over_its_samples(module: FileFacts) -> bool:
    """Whether a file makes a data set for itself; a library leaves that, and the loader, to its users."""
    made = (module.classes.local(call.func) for call in module.tree.all(cst.Call))
    return any(klass is not None and module.classes.derives(klass, _DATASET) for klass in made)


def _suspicions(module: FileFacts) -> Iterator[Suspicion]:
    for klass in module.classes.all():
        if not module.classes.derives(klass, _DATASET) or module.classes.derives(klass, _ITERABLE):
            continue
        methods = module.classes.methods(klass)
        if "__init__" not in methods or "__getitem__" not in methods:
            continue
        for owner, assign in _kept(klass, methods["__init__"], module):
            init = module.classes.methods(owner)["__init__"]
            name = _generator(assign, module)
            drawn = _draw(name, owner, methods["__getitem__"], module) if name is not None else None
            if name is None or drawn is None or _is_set_again(name, owner, init, module):
                continue
            message = f"workers copy `self.{name}`, so all draw the same numbers: build it in each, from the worker's seed"
            yield Suspicion(assign, message, related=((drawn, "the numbers are drawn here, in the workers"),))


def _kept(
    klass: cst.ClassDef, init: cst.FunctionDef, module: FileFacts
) -> Iterator[tuple[cst.ClassDef, cst.Assign]]:
    """What a data set keeps in its attributes, and what the objects keep that it makes for that, each with the class of its owner."""
    for assign in module.tree.own(init, cst.Assign):
        yield klass, assign
        made = module.kinds.construction(assign.value)
        held = module.classes.local(made.func) if made is not None else None
        if attribute_of_self(assign.targets[0].target) is None or held is None or held is klass:
            continue
        inner = module.classes.methods(held).get("__init__")
        yield from ((held, one) for one in (module.tree.own(inner, cst.Assign) if inner is not None else ()))


def _has_no_workers(workers: Node | None, module: FileFacts) -> bool:
    return workers is None or module.number(workers) == 0


def _generator(assign: cst.Assign, module: FileFacts) -> str | None:
    """`rng` for `self.rng = numpy.random.default_rng(seed)`."""
    origins = [origin for origin in module.flow.of(assign.value).tensors if not origin.path]
    made = [_seeded(origin.node) for origin in origins]
    is_made = bool(made) and all(
        isinstance(one, cst.Call) and module.qualified(one.func) in _GENERATORS for one in made
    )
    return attribute_of_self(assign.targets[0].target) if is_made else None


def _seeded(value: Node) -> Node:
    """What is seeded where it is made: `torch.Generator()` of `torch.Generator().manual_seed(0)`."""
    if (
        isinstance(value, cst.Call)
        and isinstance(value.func, cst.Attribute)
        and called_name(value) == "manual_seed"
    ):
        return value.func.value if isinstance(value.func.value, cst.Call) else value
    return value


def _draw(name: str, owner: cst.ClassDef, getitem: cst.FunctionDef, module: FileFacts) -> Node | None:
    """The place where `__getitem__`, or a method that it calls, draws from the generator that an object of this class keeps."""
    reached = [getitem]
    for _ in range(_CALLS_DEEP):
        calls = [call for function in reached for call in module.tree.within(function, cst.Call)]
        called = [found for call in calls if (found := module.calls.callee(call)) is not None]
        reached += [function for function in called if function not in reached]
    return next(
        (
            attribute
            for function in reached
            for attribute in module.tree.within(function, cst.Attribute)
            if attribute_of_self(attribute) == name
            and module.tree.enclosing(function, cst.ClassDef) is owner
            and _is_draw(attribute, module)
        ),
        None,
    )


def _is_draw(attribute: cst.Attribute, module: FileFacts) -> bool:
    """`self.rng.random()`, or `generator=self.rng`."""
    above = module.tree.parent[attribute]
    return isinstance(above, cst.Arg) or (
        isinstance(above, cst.Attribute) and isinstance(module.tree.parent[above], cst.Call)
    )


def _is_set_again(name: str, klass: cst.ClassDef, init: cst.FunctionDef, module: FileFacts) -> bool:
    """Whether the generator is rebuilt or reseeded after `__init__`, as in a method `set_epoch`, or from outside."""
    others = module.names.beside(f".{name}")
    if len(module.classes.attribute(klass, name)) != 1 or others is None:
        return True
    roots = (module.tree.root, *others)
    seeded = any(
        isinstance(call.func, cst.Attribute)
        and call.func.attr.value in _SEEDING
        and isinstance(call.func.value, cst.Attribute)
        and call.func.value.attr.value == name
        and not module.tree.contains(init, call)
        for root in roots
        for call in module.tree.within(root, cst.Call)
    )
    return seeded or any(
        isinstance(target.target, cst.Attribute)
        and target.target.attr.value == name
        and attribute_of_self(target.target) is None
        for root in roots
        for target in module.tree.within(root, cst.AssignTarget)
    )
