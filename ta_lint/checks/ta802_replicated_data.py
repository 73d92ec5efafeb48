"""TA802: `DistributedDataParallel` trains with loaders that give every rank all samples."""

import re
from collections.abc import Iterator

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.facts import FileFacts, Kind, Suspicion
from ta_lint.facts.torch.wrappers import ParallelWrapper
from ta_lint.facts.values.loaders import LoaderCall
from ta_lint.syntax.layout import plain
from ta_lint.syntax.tree import Node, is_name

# Words of files that split their data among ranks, or seed the ranks differently.
_SPLITS = regex(
    r"Distributed\w*Sampler|split_dataset_by_node|split_by_node|dataset_from_shards|seed\w*\W[^\n]*rank"
)
KEYWORDS = ("DataLoader",)
AROUND = (
    "DistributedDataParallel",
    ("*backward", "step"),
)

_RANK = regex(r"rank|world|shard|node|replica|process_index", re.IGNORECASE)


def check(module: FileFacts) -> Iterator[Suspicion]:
    if module.is_test or module.loaders.replaced or module.loops.framework is not None:
        return
    if _SPLITS.search(module.source.text):
        return
    for loader in module.loaders.all:
        if _gives_all(loader, module) and not module.ranks.only_main(loader.call):
            passes = [
                found for found in module.loaders.passes_over(loader) if module.loops.trains(found.loop)
            ]
            wrapped = next((call for found in passes for call in _wrapping(module, found.loop)), None)
            if wrapped is not None:
                message = "every rank trains on all samples of this loader: give it a `DistributedSampler`"
                yield Suspicion(loader.call, message, related=((wrapped, "the ranks replicate a model"),))


def _wrapping(module: FileFacts, loop: cst.For) -> list[cst.Call]:
    """The calls that replicate a model among the ranks, in this file or in that of a loop, if neither splits data."""
    if _SPLITS.search(module.parsed(loop).source.text):
        return []
    roots = dict.fromkeys([module.tree.root, module.tree.root_of(loop)])
    found = [wrapping for root in roots for wrapping in module.wrappers.made_in(root)]
    return [wrapping.call for wrapping in found if wrapping.wrapper is ParallelWrapper.REPLICATED]


def _gives_all(loader: LoaderCall, module: FileFacts) -> bool:
    """Whether a loader certainly goes over a whole dataset on every rank."""
    if loader.spreads or any(_is_given(loader.given(name)) for name in ("sampler", "batch_sampler")):
        return False
    given = loader.given("dataset")
    datasets = module.loaders.alternatives(given) if given is not None else []
    if not datasets or _RANK.search(plain(loader.call)):
        return False
    shuffle = loader.given("shuffle")
    shuffles = shuffle is not None and module.boolean(shuffle) is True
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


def _is_given(value: cst.BaseExpression | None) -> bool:
    return value is not None and not is_name(value, "None")


def _is_iterable(dataset: cst.Call, module: FileFacts) -> bool:
    """Whether a dataset decides the order of its samples, and so may split them itself."""
    klass = module.classes.local(dataset.func)
    if klass is not None:
        return "__getitem__" not in module.classes.methods(klass)
    return "Iterable" in (module.qualified(dataset.func) or "")
