"""How many values a batch norm takes its statistics from."""

from math import prod

from ta_lint.dryrun.machine.batches import batch_of
from ta_lint.dryrun.machine.call import Call
from ta_lint.dryrun.stubs.torch.pairs import ROWS, grows
from ta_lint.dryrun.stubs.torch.tensors import Tensor
from ta_lint.dryrun.values import NONE, TRUE, Hidden, Known, Object, Setting, Value

SYNCHRONISES = Hidden("that its statistics are of all ranks")


def counted(made: Call, norm: Object, given: Value | None) -> None:
    """A batch norm that learns gets a tensor: how many values of each channel it has, if that is known."""
    sizes = norm.fields.get("sizes") or {}
    learns = norm.fields.get("training", TRUE) == TRUE and sizes.get("track_running_stats") is True
    if not isinstance(given, Tensor) or not learns or SYNCHRONISES in norm.fields or made.machine.by_library:
        return
    shape, ends = given.facts.shape, given.facts.ends
    if shape is None and ends is not None and ends[0] > 1 and ends[1] == sizes.get("num_features"):
        shape = (ROWS, ends[1])  # the last dimension has the channels, so it is the second
    if shape is None or len(shape) < 2:
        return
    rows, loader = (shape[0], None) if shape[0] != ROWS else _rows(made)
    each = [rows, *shape[2:]]
    values = prod(each) if all(isinstance(one, int) for one in each) else None
    made.emit("norm", norm, values=values, loader=loader)


def _rows(made: Call) -> tuple[int | None, Object | None]:
    """How many samples a batch has, but for a last one that is shorter, and the loader that gives it."""
    found = batch_of(made.machine)
    loader = None if found is None else found.over
    if not isinstance(loader, Object) or not grows(loader):
        return None, None
    size = loader.fields.get("batch_size", Known(1))
    is_plain = type(size) is Known and not isinstance(size, Setting) and isinstance(size.value, int)
    is_own = loader.fields.get("batch_sampler", NONE) == NONE
    return (size.value, loader) if is_plain and is_own else (None, None)
