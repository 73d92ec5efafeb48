"""TA332: batch means are averaged although the last batch is shorter than the others."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.loops.totals import added_to, divisions
from ta_lint.facts.torch.losses import unwrapped
from ta_lint.facts.values.calls import called_name
from ta_lint.facts.values.loaders import LoaderCall
from ta_lint.syntax.tree import Node

KEYWORDS = ("len",)
AROUND = (("DataLoader",),)


def check(module: FileFacts) -> Iterator[Suspicion]:
    for division, total, divisor in divisions(module.tree):
        loaders = _counted(module, divisor)
        sizes = [_uneven(module, loader) for loader in loaders]
        added = added_to(total, module.tree)
        if not added or not sizes or any(size is None for size in sizes) or _trains(module, added):
            continue
        if all(_is_mean(module, value) for value in added):
            message = f"a last batch of {sizes[0]} counts like a full one: weight each mean by the size of its batch"
            yield Suspicion(added[0], message, ((division, "the mean of the means"),))


def _counted(module: FileFacts, divisor: Node) -> list[LoaderCall]:
    """The loaders whose batches a number counts: `len(loader)`."""
    counted = module.kinds.origin(divisor)
    if not isinstance(counted, cst.Call) or called_name(counted) != "len" or len(counted.args) != 1:
        return []
    return module.loaders.behind(counted.args[0].value)


def _uneven(module: FileFacts, loader: LoaderCall) -> int | None:
    """The size of the last batch, where the source shows that it is shorter than the others."""
    dataset, size, drops = (
        module.loaders.dataset(loader),
        loader.given("batch_size"),
        loader.given("drop_last"),
    )
    if dataset is None or size is None or loader.spreads or loader.has_sampler:
        return None
    if drops is not None and module.boolean(drops) is not False:
        return None
    made, batch = module.kinds.construction(dataset), module.number(size)
    is_of_tensors = made is not None and module.qualified(made.func) == "torch.utils.data.TensorDataset"
    if made is None or not is_of_tensors or not made.args or not batch:
        return None
    shape = module.shapes.shape(made.args[0].value)
    samples = shape[0] if shape else None
    return int(samples % batch) or None if samples is not None and samples > batch else None


def _is_mean(module: FileFacts, value: Node) -> bool:
    """Whether a number certainly is the mean of a batch."""
    if module.losses.means(value):
        return True
    made = unwrapped(value, module.names)
    return isinstance(made, cst.Call) and called_name(made) == "mean" and isinstance(made.func, cst.Attribute)


def _trains(module: FileFacts, added: list[Node]) -> bool:
    """Whether a loop that adds up also trains: its losses come from different weights anyway."""
    loops = [loop for value in added for loop in module.tree.loops(value)[:1]]
    return any(module.loops.trains(loop.body) for loop in loops)
