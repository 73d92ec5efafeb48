"""TA306: the last batch of an epoch is a single sample, too few for the statistics of batch norm."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.core.datasets import samples_of
from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.values.loaders import LoaderCall
from ta_lint.syntax.edits import ProposedFix
from ta_lint.syntax.tree import Node, argument

KEYWORDS = ("DataLoader",)
AROUND = (
    ("BatchNorm1d", "BatchNorm2d", "BatchNorm3d"),
    ("*backward", "step"),
)

_NORMS = ("torch.nn.BatchNorm1d", "torch.nn.BatchNorm2d", "torch.nn.BatchNorm3d")


def check(module: FileFacts) -> Iterator[Suspicion]:
    if not module.calls_to(*_NORMS):
        return
    for loader in module.loaders.all:
        length, size = _length(loader, module), _batch_size(loader, module)
        if length is None or size is None or size < 2 or length % size != 1 or _drops(loader, module):
            continue
        found = next(
            (found for found in module.loaders.passes_over(loader) if module.loops.trains(found.loop)), None
        )
        if found is not None:
            message = (
                f"the last batch has 1 of {length} samples, too few for batch norm: set `drop_last=True`"
            )
            related = ((found.loop.iter, "the training loop"),)
            yield Suspicion(loader.call, message, related=related, fix=_fix(loader))


def _batch_size(loader: LoaderCall, module: FileFacts) -> int | None:
    given = loader.given("batch_size")
    size = module.number(given) if given is not None else None
    return int(size) if size is not None else None


def _drops(loader: LoaderCall, module: FileFacts) -> bool:
    """Whether the last batch is or may be dropped, or the samples are not taken one after another."""
    drop, sampler = loader.given("drop_last"), loader.given("sampler")
    if loader.spreads or loader.given("batch_sampler") is not None or sampler is not None:
        return True
    return drop is not None and module.boolean(drop) is not False


def _length(loader: LoaderCall, module: FileFacts) -> int | None:
    """The number of samples, if the source shows it."""
    dataset = loader.given("dataset")
    made = (
        (module.kinds.construction(dataset) or module.kinds.origin(dataset)) if dataset is not None else None
    )
    if isinstance(made, cst.List):
        return len(made.elements)
    if not isinstance(made, cst.Call):
        return None
    called = module.qualified(made.func)
    samples = samples_of(called or "")
    if True in samples:
        train = argument(made, "train", 1)
        wanted = module.boolean(train) if train is not None else True
        return samples[wanted] if wanted is not None else None
    if called == "torch.utils.data.TensorDataset" and made.args and not made.args[0].star:
        shape = module.shapes.shape(made.args[0].value)
        return shape[0] if shape else None
    if called == "builtins.range" and len(made.args) == 1:
        return _whole(made.args[0].value, module)
    klass = module.classes.local(made.func)
    length = module.classes.methods(klass).get("__len__") if klass is not None else None
    returns = module.tree.own(length, cst.Return) if length is not None else []
    return _whole(returns[0].value, module) if len(returns) == 1 and returns[0].value is not None else None


def _whole(node: Node, module: FileFacts) -> int | None:
    number = module.number(node)
    return int(number) if number is not None else None


def _fix(loader: LoaderCall) -> ProposedFix | None:
    edit = loader.switched_on("drop_last")
    return ProposedFix("drop the last batch", (edit,)) if edit is not None else None
