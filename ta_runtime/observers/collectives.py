"""Sees the collectives that the training code calls, and whether the ranks of a group agree on their arguments.

Each rank counts the calls of each group. The first ones, and later what it calls for the first time or with other sizes than
before, it writes into the store of the process group before the call goes through, and looks at what the others wrote: of
two ranks that disagree the later one sees it, before the call aborts, hangs or hands out memory that nobody wrote. Nobody
waits for anybody.
"""

from collections import deque
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed import distributed_c10d

from ta_runtime import ranks
from ta_runtime.facts import Collective, Mismatch, Run
from ta_runtime.observers.observer import Observer
from ta_runtime.probes.patching import Call, End
from ta_runtime.probes.places import NOWHERE, Place, here

if TYPE_CHECKING:
    from ta_runtime.observers.context import Context

_MOST = 64
"""Calls that are told to the others: of the first and of those with new sizes, the last."""
_EARLIEST = 64  # calls of a group that are told, also if their sizes are known
_REMEMBERED = 256  # calls of a rank, to compare with what the others tell
_TELLINGS = 256  # of a run, in which sizes may be new each time: of more, the first
_PEERS = 8  # ranks that one looks at: of more, those after it

Alike = tuple[tuple[str, int | str | tuple[int, ...]], ...]
Parts = tuple[int, ...]


class CollectiveObserver(Observer):
    """Watches the functions of `torch.distributed`."""

    def __init__(self, session: "Context") -> None:
        super().__init__(session)
        self.count = 0
        """Calls so far, those included that send to one rank or receive from one."""
        self.reduced = 0
        """Elements that `all_reduce` was given since the last optimizer step."""
        self._running = False
        self._numbers: dict[str, int] = {}  # of the next call in each group
        self._early: set[str] = set()  # groups that were there before
        self._calls: deque[Collective] = deque(maxlen=_REMEMBERED)
        self._news: deque[Collective] = deque(maxlen=_MOST)
        self._known: dict[object, Place] = {}  # the line that first called something so
        self._told = 0
        self._reported: set[tuple[Place, int]] = set()

    def attach(self) -> None:
        if not dist.is_available():
            return
        if dist.is_initialized():
            self._early = set(distributed_c10d._world.pg_names.values())

    def after_step(self, optimizer: torch.optim.Optimizer, window: Any) -> None:
        self.reduced = 0
        count = self.session.step_count
        if self._news and count & (count - 1) == 0:
            self._compare()

    def report(self, run: Run) -> None:
        run.told.collectives = [*self._news, *self._calls]
        for rank, told in run.peers.items():
            self._judge(rank, told.collectives)

    def collective(self, call: Call) -> End | None:
        name = call.function.__name__
        if self._running or name not in _ARGUMENTS:
            return None
        self._note(name, _ARGUMENTS[name], call.args, call.kwargs)
        self._running = True
        return self._called

    def _called(self, call: Call) -> None:
        self._running = False
        # an asynchronous one gives what to wait for
        if call.function.__name__ == "all_reduce" and not call.raised and call.result is None:
            self.session.tell("all_reduced", call.given(0, "tensor"))

    def message(self, call: Call) -> None:
        self.count += 1

    def _note(
        self, name: str, arguments: tuple[str, ...], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        self.count += 1
        given = {**dict(zip(arguments, args, strict=False)), **kwargs}
        if name == "all_reduce":
            self.reduced += given["tensor"].numel()
        group = given.get("group") or distributed_c10d._get_default_group()
        if group is dist.GroupMember.NON_GROUP_MEMBER or group.size() == 1:
            return
        alike, sent, received = _sizes(name, given, group)
        known = (name, alike, sent, received)
        place = self._known.get(known, NOWHERE)
        number = self._numbers.get(group.group_name, 0)
        self._numbers[group.group_name] = number + 1
        is_told = (place is NOWHERE or number < _EARLIEST) and self._told < _TELLINGS
        if is_told:
            place = self._known[known] = here()
            self._told += 1
        call = Collective(
            group.group_name,
            number,
            name,
            place,
            alike,
            sent,
            received,
            group.rank(),
            group.group_name in self._early,
        )
        self._calls.append(call)
        if is_told:
            self._news.append(call)
            ranks.post("collectives", list(self._news))
            self._compare()

    def _compare(self) -> None:
        """Look at what the other ranks told, as far as it is there."""
        own, size = ranks.rank(), ranks.world_size()
        for other in [(own + step) % size for step in range(1, min(size, _PEERS + 1))]:
            self._judge(other, ranks.looked("collectives", other) or ())

    def _judge(self, rank: int, calls: Iterable[Collective]) -> None:
        mine = {(own.group, own.number): own for own in (*self._news, *self._calls)}
        for other in calls:
            own = mine.get((other.group, other.number))
            mismatch = _mismatch(own, other, rank) if own is not None else None
            if mismatch is not None and (mismatch.own.place, rank) not in self._reported:
                self._reported.add((mismatch.own.place, rank))
                self.session.ask("collective", mismatch)


def _mismatch(own: Collective, other: Collective, rank: int) -> Mismatch | None:
    """What does not fit, if both are calls of one line, counted from the same call on."""
    same = (own.name, own.place.path, own.place.line) == (other.name, other.place.path, other.place.line)
    if not same or own.early != other.early:
        return None
    for (what, value), (_, other_value) in zip(own.alike, other.alike, strict=False):
        if value != other_value:
            return Mismatch(own, ranks.rank(), rank, what, value, other_value)
    if own.sent and other.sent and max(own.member, other.member) < min(len(own.sent), len(other.sent)):
        for sent, received, there, back in (
            (own.sent, other.received, other.member, own.member),
            (other.sent, own.received, own.member, other.member),
        ):
            if sent[there] != received[back]:
                values = (sent[there], received[back])
                mine, theirs = values if sent is own.sent else reversed(values)
                return Mismatch(own, ranks.rank(), rank, "elements between the two", mine, theirs)
    return None


# The names of the parameters, in order.
_ARGUMENTS: dict[str, tuple[str, ...]] = {
    "all_reduce": ("tensor", "op", "group"),
    "broadcast": ("tensor", "src", "group"),
    "reduce": ("tensor", "dst", "op", "group"),
    "all_gather": ("tensor_list", "tensor", "group"),
    "all_gather_into_tensor": ("output_tensor", "input_tensor", "group"),
    "all_gather_single": ("output_tensor", "input_tensor", "group"),
    "reduce_scatter": ("output", "input_list", "op", "group"),
    "reduce_scatter_tensor": ("output", "input", "op", "group"),
    "reduce_scatter_single": ("output", "input", "op", "group"),
    "all_to_all_single": ("output", "input", "output_split_sizes", "input_split_sizes", "group"),
    "all_to_all": ("output_tensor_list", "input_tensor_list", "group"),
}


def _sizes(name: str, given: dict[str, Any], group: Any) -> tuple[Alike, Parts, Parts]:
    """What must be alike on all ranks, and of an all-to-all the elements sent to and received from each."""
    if name == "all_to_all_single":
        sent = _split(given["input"], given.get("input_split_sizes"), group.size())
        received = _split(given["output"], given.get("output_split_sizes"), group.size())
        return (("dtype", str(given["input"].dtype)),), sent, received
    if name == "all_to_all":
        sent, received = _elements(given["input_tensor_list"]), _elements(given["output_tensor_list"])
        return (("dtype", str(given["input_tensor_list"][0].dtype)),), sent, received
    alike: list[tuple[str, int | str | tuple[int, ...]]] = []
    for parameter, value in given.items():
        if isinstance(value, Tensor):
            if not (
                name in ("all_gather", "reduce_scatter")
            ):  # there each rank may have a part of its own size
                alike.append(("elements", value.numel()))
            alike.append(("dtype", str(value.dtype)))
        elif isinstance(value, Sequence) and value and isinstance(value[0], Tensor):
            alike.append(("elements of each part", _elements(value)))
        elif parameter in ("src", "dst") and value is not None:
            alike.append(("root", int(value)))
        elif parameter == "op":
            alike.append(("operation", str(value)))
    return tuple(alike), (), ()


def _elements(tensors: Sequence[Tensor]) -> Parts:
    return tuple(tensor.numel() for tensor in tensors)


def _split(tensor: Tensor, sizes: Sequence[int] | None, size: int) -> Parts:
    """The elements of each part of a tensor that is split along its first dimension, by default evenly."""
    rows = tensor.shape[0] if tensor.dim() else 1
    row = tensor.numel() // rows if rows else 0
    return tuple(int(part) * row for part in sizes) if sizes else (rows // size * row,) * size
