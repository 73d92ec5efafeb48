"""What a loader has to do for a batch, as far as the source says it."""

import ast
from functools import cache

from ta_lint.dryrun.streams import Stream
from ta_lint.dryrun.stubs.torch.data import PART, TENSORS
from ta_lint.dryrun.stubs.torch.datasets import JOINED
from ta_lint.dryrun.stubs.torch.devices import ELSEWHERE
from ta_lint.dryrun.stubs.torch.tensors import Tensor
from ta_lint.dryrun.values import FALSE, NONE, Bound, Function, Known, Object, Sequence, Value


def workers_of(loader: Object) -> int | None:
    """Its `num_workers`, None if nobody knows it."""
    workers = loader.fields.get("num_workers", Known(0))
    return workers.value if isinstance(workers, Known) and isinstance(workers.value, int) else None


def is_cheap(dataset: Value) -> bool:
    """Whether the samples of a data set are in memory, or go to a device, which workers must not touch."""
    if (
        not isinstance(dataset, Object)
        or isinstance(dataset, Sequence | Stream | Tensor)
        or dataset.cls.is_a(TENSORS)
    ):
        return isinstance(dataset, Object | Known)
    if dataset.cls.is_a(PART):
        return is_cheap(dataset.fields.get("dataset", FALSE))
    if dataset.cls.is_a(JOINED):
        parts = dataset.fields.get("datasets", NONE)
        return isinstance(parts, Sequence) and all(map(is_cheap, parts.every))
    getter = dataset.cls.find("__getitem__")
    return isinstance(getter, Function) and (not _called(getter.node) or _moves(getter))


def is_elsewhere(loader: Object) -> bool:
    """Whether its batches are on a device already: its tensors are, or its data set or collate function moves them."""
    dataset = loader.fields.get("dataset", NONE)
    own = dataset.fields if isinstance(dataset, Object) else {}
    tensors = own.get("tensors")
    moved = isinstance(tensors, Sequence) and any(
        isinstance(one, Tensor) and one.facts.source is ELSEWHERE for one in tensors.every
    )
    getter = dataset.cls.find("__getitem__") if isinstance(dataset, Object) else None
    collate = loader.fields.get("collate_fn", NONE)
    return moved or any(map(_moves, (getter, collate.function if isinstance(collate, Bound) else collate)))


def _moves(function: Value | None) -> bool:
    """Whether a function moves something to a device."""
    return isinstance(function, Function) and not _called(function.node).isdisjoint(("cuda", "to"))


@cache
def _called(node: ast.AST) -> frozenset[str]:
    """The names of the functions and methods that a function calls; empty for those of something computed."""
    calls = [part.func for part in ast.walk(node) if isinstance(part, ast.Call)]
    return frozenset(getattr(one, "attr", getattr(one, "id", "")) for one in calls)
