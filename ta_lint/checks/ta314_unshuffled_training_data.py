"""TA314: the loader of a training loop yields the samples in the same order in each epoch."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.values.loaders import LoaderCall
from ta_lint.syntax.edits import ProposedFix
from ta_lint.syntax.layout import plain
from ta_lint.syntax.tree import Node

KEYWORDS = ("DataLoader",)
AROUND = (("*backward", "step"),)

_ITERABLE = "torch.utils.data.IterableDataset"
_INDEXED = regex(r"torch\.utils\.data\.(TensorDataset|ConcatDataset)|torchvision\.datasets\.(\w+\.)*[A-Z]\w*")


def check(module: FileFacts) -> Iterator[Suspicion]:
    for loader in module.loaders.all:
        if not _keeps_order(loader, module):
            continue
        for found in module.loaders.passes_over(loader):
            if module.loops.trains(found.loop) and all(
                _keeps_order(other, module) for other in found.loaders
            ):
                message = "training reads the samples in the same order in every epoch: set `shuffle=True`"
                related = ((found.loop.iter, "the training loop"),)
                yield Suspicion(loader.call, message, related=related, fix=_fix(loader))
                break


def _keeps_order(loader: LoaderCall, module: FileFacts) -> bool:
    """Whether a loader certainly goes through an indexed dataset from start to end."""
    size = loader.given("batch_size")
    if loader.spreads or module.loaders.shuffles(loader) is not False:
        return False
    if any(_is_given(loader.given(name), module) for name in ("sampler", "batch_sampler")):
        return False
    # all data in one batch, or batches made by the dataset
    whole = isinstance(size, cst.Call) or (size is not None and plain(size) == "None")
    return not whole and _is_indexed(loader, module)


def _is_given(value: Node | None, module: FileFacts) -> bool:
    return value is not None and bool(module.loaders.alternatives(value))


def _is_indexed(loader: LoaderCall, module: FileFacts) -> bool:
    made = module.loaders.dataset(loader)
    if isinstance(made, (cst.List, cst.ListComp)):
        return True
    klass = module.loaders.dataset_class(loader)
    if klass is not None:
        if module.classes.derives(klass, _ITERABLE) or module.classes.method(klass, "__iter__") is not None:
            return False
        derives = module.classes.derives(klass, "torch.utils.data.Dataset")
        return derives or module.classes.method(klass, "__getitem__") is not None
    if isinstance(made, cst.Call):
        return _INDEXED.fullmatch(module.qualified(made.func) or "") is not None
    return _has_length(loader, module)


def _has_length(loader: LoaderCall, module: FileFacts) -> bool:
    """Whether the function around a loader takes its length, which one over an `IterableDataset` does not have."""
    return not module.names.is_mentioned("IterableDataset") and loader.call in module.loaders.measured


def _fix(loader: LoaderCall) -> ProposedFix | None:
    edit = loader.switched_on("shuffle")
    return ProposedFix("shuffle the samples", (edit,)) if edit is not None else None
