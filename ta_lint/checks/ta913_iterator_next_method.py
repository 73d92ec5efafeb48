"""TA913: `iter(loader).next()` is the method of Python 2, which iterators no longer have."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.facts import FileFacts, Kind, Suspicion
from ta_lint.syntax.edits import ProposedFix, replace
from ta_lint.syntax.tree import Node, dotted

KEYWORDS = ("next",)

# Iterators of Python, which have the method in no release.
_ITERATORS = frozenset(
    "builtins.enumerate builtins.filter builtins.map builtins.reversed builtins.zip itertools.chain itertools.cycle "
    "itertools.islice itertools.repeat".split()
)
_LOADERS = ("loader", "dataset")


def check(module: FileFacts) -> Iterator[Suspicion]:
    for call in module.tree.all(cst.Call):
        if not isinstance(call.func, cst.Attribute) or call.func.attr.value != "next" or call.args:
            continue
        origins = module.flow.of(call.func.value).tensors
        if not origins or any(origin.path or not _lacks_it(origin.node, module) for origin in origins):
            continue
        if module.fallbacks.around(call):
            continue
        code = f"next({module.verbatim(call.func.value)})"
        message = f"`{module.code(call.func)}` is Python 2: iterators have no method `next`, write `{code}`"
        yield Suspicion(call, message, fix=ProposedFix(f"write `{code}`", (replace(call, code),)))


def _lacks_it(made: Node, module: FileFacts) -> bool:
    """Whether an expression makes an iterator that certainly has no method `next`."""
    if not isinstance(made, cst.Call):
        return False
    called = module.qualified(made.func)
    if called in _ITERATORS:
        return True
    if called == "builtins.iter" and len(made.args) == 1:
        return _is_loader(made.args[0].value, module)
    is_explicit = isinstance(made.func, cst.Attribute) and made.func.attr.value == "__iter__"
    return isinstance(made.func, cst.Attribute) and is_explicit and _is_loader(made.func.value, module)


def _is_loader(iterable: Node, module: FileFacts) -> bool:
    """Whether an iterable is a loader or dataset of torch, or is named so where nothing is known of it."""
    kind = module.kind(iterable)
    if kind is not Kind.DATASET and module.targets_before(1, 13):
        return False  # the iterator of a loader had the method until torch 1.12
    if kind is None and isinstance(iterable, cst.Subscript):
        held = module.flow.of(iterable).tensors
        return bool(held) and all(not one.path and _is_entry(one.node, module) for one in held)
    if kind is None:
        origin = module.kinds.origin(iterable)
        name = (dotted(iterable) or "").rpartition(".")[2].lower()
        is_unknown = isinstance(origin, (cst.Param, cst.Name, cst.Attribute)) and name.endswith(_LOADERS)
        return is_unknown and not _may_have_own_method(module)
    made = module.kinds.construction(iterable)
    is_of_library = made is not None and module.qualified(made.func) is not None
    return kind in (Kind.DATALOADER, Kind.DATASET) and (is_of_library or not _may_have_own_method(module))


def _is_entry(held: Node, module: FileFacts) -> bool:
    """Whether what a dictionary or list holds is a loader or dataset that is made there."""
    return isinstance(held, cst.Call) and module.kind(held) is not None and _is_loader(held, module)


def _may_have_own_method(module: FileFacts) -> bool:
    """Whether a class of the program defines a method of this name, or DALI is used, whose iterators have one."""
    roots = [module.tree.root, *(module.names.beside("def next") or ())]
    if any(name.startswith("nvidia.dali") for root in roots for name in module.names.imported_by(root)):
        return True
    functions = (function for root in roots for function in module.tree.within(root, cst.FunctionDef))
    return any(function.name.value == "next" for function in functions)
