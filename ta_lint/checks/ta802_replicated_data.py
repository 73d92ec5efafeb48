"""TA802: a model that ranks share trains with loaders that give every rank all samples."""

import re
from collections.abc import Iterator

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.core.protocol import Action
from ta_lint.facts import FileFacts, Kind, Suspicion
from ta_lint.facts.torch.preparing import PrepareCall, Preparer
from ta_lint.facts.torch.wrappers import ParallelWrapper
from ta_lint.facts.values.calls import called_name
from ta_lint.facts.values.loaders import LoaderCall, LoaderLoop
from ta_lint.syntax.layout import plain
from ta_lint.syntax.tree import Node, argument, is_name, spreads

# What splits data among ranks, and lines that seed the ranks differently.
_SPLITS = regex(r"\w*Distributed\w*Sampler\w*|split_dataset_by_node|split_by_node|dataset_from_shards")
_SEEDS = regex(r"seed\w*\W[^\n]*rank", re.IGNORECASE)
KEYWORDS = ("DataLoader",)
AROUND = (
    ("DistributedDataParallel", "*prepare*", "setup"),
    ("*backward", "step"),
)

_PREPARERS = (Preparer.ACCELERATE, Preparer.FABRIC)

_RANK = regex(r"rank|world|shard|node|replica|process_index", re.IGNORECASE)


def check(module: FileFacts) -> Iterator[Suspicion]:
    if module.loops.framework is not None or _splits(module.tree.root, module):
        return
    yield from _left_unprepared(module)
    if module.loaders.replaced:
        return
    for loader in module.loaders.all:
        if _gives_all(loader, module) and not module.ranks.only_main(loader.call):
            passes = [
                found for found in module.loaders.passes_over(loader) if module.loops.trains(found.loop)
            ]
            wrapped = next((call for found in passes for call in _wrapping(module, found.loop)), None)
            if wrapped is not None:
                seeded = [root for root in _roots(passes, module) if _seeds(root, module)]
                if seeded and _may_be_drawn(loader, module):
                    continue
                own_order = bool(seeded) and _shuffles(loader, module)
                trains = "goes over all samples, in its own order," if own_order else "trains on all samples"
                message = f"every rank {trains} of this loader: give it a `DistributedSampler`"
                related = ((wrapped, "the ranks replicate a model"),)
                yield Suspicion(loader.call, message, related, is_note=own_order)


def _roots(passes: list[LoaderLoop], module: FileFacts) -> list[cst.Module]:
    """This file, and those of the loops over a loader."""
    return list(dict.fromkeys([module.tree.root, *(module.tree.root_of(found.loop) for found in passes)]))


def _seeds(root: cst.Module, module: FileFacts) -> bool:
    """Whether a file seeds the ranks differently."""
    return _SEEDS.search(module.parsed(root).source.text) is not None


def _may_be_drawn(loader: LoaderCall, module: FileFacts) -> bool:
    """Whether each rank may draw its own samples, as the ranks are seeded differently before: `TensorDataset(torch.randn(8, 4))`."""
    given = loader.given("dataset")
    for dataset in module.loaders.alternatives(given) if given is not None else ():
        made = module.loaders.samples(dataset)
        tree, home = module.tree, module.tree.home(made)
        seeding = [call for call in tree.own(home, cst.Call) if _SEEDS.search(plain(call))]
        rows = [arg.value for arg in getattr(made, "args", ())]
        if seeding and all(tree.before(made, call) for call in seeding):
            continue
        if rows and all(_is_fixed(one, module) for one in rows):
            continue
        parts = [made, *map(module.kinds.origin, rows)]
        klass = module.classes.local(made.func) if isinstance(made, cst.Call) else None
        parts += [klass] if klass is not None else []
        is_of_tensors = isinstance(made, cst.Call) and called_name(made) == "TensorDataset"
        if is_of_tensors or any("rand" in plain(part) for part in parts):
            return True
    return False


def _is_fixed(samples: Node, module: FileFacts) -> bool:
    """Whether each rank draws the same samples, by a generator with a seed of its own: `torch.randn(8, 4, generator=generator)`."""
    given = [
        argument(call, "generator")
        for call in module.tree.within(module.kinds.origin(samples), cst.Call)
        if "rand" in (called_name(call) or "")
    ]
    made = [None if one is None else plain(module.kinds.origin(one)) for one in given]
    return bool(made) and all(one and "seed" in one and not _RANK.search(one) for one in made)


def _shuffles(loader: LoaderCall, module: FileFacts) -> bool:
    shuffle = loader.given("shuffle")
    is_told = shuffle is not None and module.boolean(shuffle) is True
    return is_told or any(_drawn_by(one, module) == "RandomSampler" for one in _samplers(loader))


def _samplers(loader: LoaderCall) -> list[Node]:
    given = (loader.given(name) for name in ("sampler", "batch_sampler"))
    return [one for one in given if one is not None and not is_name(one, "None")]


def _drawn_by(sampler: Node, module: FileFacts) -> str | None:
    """The class of torch that draws each sample once, also in batches; None where it is another, or draws fewer, or asks for a rank."""
    made = module.kinds.origin(sampler)
    called = module.qualified(made.func) if isinstance(made, cst.Call) else None
    if not isinstance(made, cst.Call) or called is None or spreads(made) or _RANK.search(plain(made)):
        return None
    name = called.removeprefix("torch.utils.data.").removeprefix("sampler.")
    if name == "BatchSampler":
        inner = argument(made, "sampler", 0)
        return None if inner is None else _drawn_by(inner, module)
    return name if name in ("RandomSampler", "SequentialSampler") and len(made.args) == 1 else None


def _left_unprepared(module: FileFacts) -> Iterator[Suspicion]:
    """Loaders that train a model prepared by Accelerate or Fabric, but that neither prepares."""
    for loader in module.loaders.all:
        if not _gives_all(loader, module) or module.ranks.only_main(loader.call):
            continue
        passes = (one for one in module.tree.all(cst.For) if _goes_over(one, loader, module))
        wrapped = next((found for one in passes if (found := _trained_in(one, module)) is not None), None)
        if wrapped is not None and not _may_be_prepared(loader, module):
            name = module.code(wrapped.call.func)
            message = f"every rank trains on all samples of this loader: pass `{name}` to it as `sampler`"
            yield Suspicion(loader.call, message, related=((wrapped.call, "the model is prepared here"),))


def _goes_over(loop: cst.For, loader: LoaderCall, module: FileFacts) -> bool:
    """Whether a loop certainly iterates over an unchanged loader."""
    iterable = loop.iter
    while isinstance(iterable, cst.Call) and iterable.args and called_name(iterable) in ("enumerate", "tqdm"):
        iterable = iterable.args[0].value
    return {origin.node for origin in module.flow.of(iterable).tensors} == {loader.call}


def _trained_in(loop: cst.For, module: FileFacts) -> PrepareCall | None:
    """The call that prepared a model or an optimizer that a loop trains by the `backward` of the framework."""
    calls = [event.call for path in module.order.paths(loop) for event in path]
    if not any(module.preparing.backwards_by(call) in _PREPARERS for call in calls):
        return None
    steps = [event for path in module.order.paths(loop) for event in path if event.action is Action.STEP]
    prepared = (module.preparing.of(step.subject) for step in steps)
    return next((one for one in prepared if one is not None and one.preparer in _PREPARERS), None)


def _may_be_prepared(loader: LoaderCall, module: FileFacts) -> bool:
    """Whether a preparing call gets a loader, or does not show its arguments."""
    calls = [
        call
        for call in module.tree.all(cst.Call)
        if any(word in (called_name(call) or "") for word in ("prepare", "setup"))
    ]
    return any(
        arg.star or any(origin.node is loader.call for origin in module.flow.of(arg.value).origins)
        for call in calls
        for arg in call.args
    )


def _splits(root: cst.Module, module: FileFacts) -> bool:
    """Whether a file splits its data among ranks. An import does not, nor does a sampler that no loader gets."""
    text = module.parsed(root).source.text
    return _SPLITS.search(text) is not None and any(
        _SPLITS.fullmatch(name.value)
        and module.tree.enclosing(name, cst.Import, cst.ImportFrom) is None
        and not _is_left_over(name, module)
        for name in module.tree.within(root, cst.Name)
    )


def _is_left_over(name: cst.Name, module: FileFacts) -> bool:
    """Whether a name makes a sampler for a variable that nothing uses, but for its `set_epoch`."""
    parent = module.tree.parent
    node: Node = name
    while isinstance(parent[node], cst.Attribute):
        node = parent[node]
    assign = parent[parent[node]] if isinstance(parent[node], cst.Call) else None
    target = assign.targets[0].target if isinstance(assign, cst.Assign) else None
    if not isinstance(target, cst.Name):
        return False
    uses = [parent[use] for use in module.names.mentions(target) if use is not target]
    return all(isinstance(use, cst.Attribute) and use.attr.value == "set_epoch" for use in uses)


def _wrapping(module: FileFacts, loop: cst.For) -> list[cst.Call]:
    """The calls that replicate a model on the ranks, in this file or in that of a loop, if neither splits data."""
    roots = dict.fromkeys([module.tree.root, module.tree.root_of(loop)])
    if any(_splits(root, module) for root in roots):
        return []
    found = [wrapping for root in roots for wrapping in module.wrappers.made_in(root)]
    return [wrapping.call for wrapping in found if wrapping.wrapper is ParallelWrapper.REPLICATED]


def _gives_all(loader: LoaderCall, module: FileFacts) -> bool:
    """Whether a loader certainly iterates over a whole dataset on every rank."""
    if loader.spreads or any(_drawn_by(one, module) is None for one in _samplers(loader)):
        return False
    given = loader.given("dataset")
    datasets = module.loaders.alternatives(given) if given is not None else []
    if not datasets or _RANK.search(plain(loader.call)):
        return False
    shuffles = _shuffles(loader, module)
    return all(_is_whole(module.loaders.samples(dataset), shuffles, module) for dataset in datasets)


def _is_whole(dataset: Node, shuffled: bool, module: FileFacts) -> bool:
    """Whether a dataset has all samples on each rank and is indexed: only indexed datasets can be shuffled."""
    if not isinstance(dataset, cst.Call):
        return False
    klass = module.classes.local(dataset.func)
    parts = [dataset, *(module.kinds.origin(arg.value) for arg in dataset.args), *([klass] if klass else [])]
    if any(_RANK.search(plain(part)) for part in parts):
        return False
    return shuffled or (module.kind(dataset) is Kind.DATASET and not _is_iterable(dataset, module))


def _is_iterable(dataset: cst.Call, module: FileFacts) -> bool:
    """Whether a dataset decides the order of its samples, and so may split them itself."""
    klass = module.classes.local(dataset.func)
    if klass is not None:
        return "__getitem__" not in module.classes.methods(klass)
    return "Iterable" in (module.qualified(dataset.func) or "")
