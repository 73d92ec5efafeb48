"""Sees whether the ranks that share a model still have the same one, and which models `DistributedDataParallel` wraps.

After the optimizer steps 1, 2, 4, 8 and so on each rank puts digests of its parameters into the store of the process group, and the
first of the ranks that share a model compares them, a few steps later and without waiting. Shared is what is wrapped; and
what nobody wraps, if the gradients of ranks that communicate show it (`sharing`).
"""

import weakref
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.tensor import DTensor
from torch.nn.parallel import DistributedDataParallel

from ta_runtime import ranks
from ta_runtime.facts import DivergedReplicas, Replica, ReplicaState, Run, Wrapper
from ta_runtime.measure.digests import Digest, Digests
from ta_runtime.measure.kinds import measurable
from ta_runtime.measure.memory import address
from ta_runtime.observers.collectives import CollectiveObserver
from ta_runtime.observers.observer import Observer
from ta_runtime.observers.sharing import shared
from ta_runtime.probes import construction
from ta_runtime.probes.patching import Call, End
from ta_runtime.probes.places import NOWHERE, Place, here
from ta_runtime.probes.registers import BUILT

if TYPE_CHECKING:
    from ta_runtime.observers.context import Context
    from ta_runtime.observers.window import Window

_LATER = 3
"""Steps from a snapshot to its comparison: by then the step itself is judged, whose findings say why ranks differ."""
_LOOKS = 8  # at what other ranks show, a step each: who is not there then is left out
_SLOTS = 4  # snapshots of a rank that are there at a time
_ROUNDING = 1e-6
"""Relative to the largest weight: what different devices may make of one update. The ranks of a wrapped model have no such excuse."""


@dataclass(slots=True)
class _Taken:
    """Digests of some parameters, on their way: which of their states they are, and their names."""

    state: str
    names: list[str]
    digests: Digests


@dataclass(slots=True)
class _Pending:
    """A snapshot on its way to the other ranks, and then theirs on the way here."""

    step: int
    window: int
    taken: list[_Taken]
    wrapped: dict[str, int]
    groups: dict[int, tuple[int, ...]]
    snapshot: ReplicaState | None = None
    others: dict[int, ReplicaState] = field(default_factory=dict)
    looks: int = 0


class Replicas(Observer):
    """Watches the models of a session that several ranks share."""

    def __init__(self, session: "Context") -> None:
        super().__init__(session)
        self._wrappers: list[weakref.ref[DistributedDataParallel]] = []
        self._local: set[int] = set()  # wrapped models that took steps of their own on purpose, by number
        self._unsynced: set[int] = set()  # those whose last backward pass was not reduced on purpose
        self._tensors: dict[str, weakref.ref[Tensor]] = {}
        self._taken: list[_Taken] = []
        self._computed: dict[tuple[int, int], str] = {}  # parameter of each gradient, by its memory
        self._stepped_at = NOWHERE
        self._pending: list[_Pending] = []
        self._shared: set[tuple[int, str]] = set()  # rank and parameter, of what nobody wraps

    def replicate(self, call: Call) -> End:
        return self._wrapped

    def _wrapped(self, call: Call) -> None:
        if not call.raised:
            self._wrappers.append(weakref.ref(call.args[0]))

    @property
    def _alive(self) -> Iterator[tuple[int, DistributedDataParallel]]:
        """The wrapped models, each with its number, which is the same on all ranks."""
        for number, reference in enumerate(self._wrappers):
            if (wrapper := reference()) is not None:
                yield number, wrapper

    @property
    def _due(self) -> bool:
        """Whether the next optimizer step is one to look at."""
        count = self.session.step_count
        return count & (count + 1) == 0 and ranks.connected()

    @property
    def _communicates(self) -> bool:
        return self._collectives.count > 0

    @property
    def _collectives(self) -> CollectiveObserver:
        return next(
            observer for observer in self.session.observers if isinstance(observer, CollectiveObserver)
        )

    # -- around a step ----------------------------------------------------------------------------------------

    def after_backward(self, loss: Tensor) -> None:
        for number, wrapper in self._alive:
            (self._unsynced.discard if wrapper.require_backward_grad_sync else self._unsynced.add)(number)
        if self._due:  # the first message may be that of these gradients
            gradients = dict(chain.from_iterable(map(self._gradients, construction.optimizers())))
            self._computed = {_memory(gradient): name for name, gradient in gradients.items()}
            self._taken = []
            self._take("computed", gradients)

    def all_reduced(self, tensor: Tensor) -> None:
        name = self._computed.get(_memory(tensor)) if self._computed else None
        if name is None:
            return
        parameter = self._tensors[name]()
        gradient = parameter.grad if parameter is not None else None
        if gradient is not None and _memory(gradient) == _memory(tensor):
            self._take("reduced", {name: gradient})

    def before_step(self, optimizer: torch.optim.Optimizer, window: "Window") -> None:
        self._local |= self._unsynced
        if window.step is not None and not window.step.wrappers:
            window.step.wrappers = [
                Wrapper(wrapper, BUILT.get(wrapper) or NOWHERE, self._collectives.reduced)
                for _, wrapper in self._alive
            ]
        if self._due and self._communicates:
            self._stepped_at = here()
            self._take("before", dict(self._unwrapped(optimizer)))
            self._take("used", dict(self._gradients(optimizer)))
        self._computed = {}

    def after_step(self, optimizer: torch.optim.Optimizer, window: "Window") -> None:
        count = self.session.step_count
        if count & (count - 1) or not ranks.connected() or not (self._wrappers or self._communicates):
            return
        self._pending.append(self._snapshot(dict(self._unwrapped(optimizer)) if self._communicates else {}))
        self._publish()

    def begin(self, window: "Window") -> None:
        if self._pending:
            self._publish()
            for pending in [pending for pending in self._pending if window.index >= pending.window + _LATER]:
                self._look(pending)

    def report(self, run: Run) -> None:
        if not run.over or not ranks.connected():
            return
        held = {
            name: tensor for name, reference in self._tensors.items() if (tensor := reference()) is not None
        }
        last = self._snapshot({name: held[name] for _, name in self._shared if name in held})
        run.told.snapshot = last.snapshot = _read(last, self._communicates)
        for pending in (*self._pending, last):
            told = {rank: peer.snapshot for rank, peer in run.peers.items() if peer.snapshot is not None}
            if pending is last:
                pending.others = {rank: other for rank, other in told.items() if other.step == last.step}
            elif pending.snapshot is not None:
                self._receive(pending)
            self._compare(pending)
        self._pending = []

    # -- taking and exchanging --------------------------------------------------------------------------------

    def _unwrapped(self, optimizer: torch.optim.Optimizer) -> Iterator[tuple[str, Tensor]]:
        """The parameters of an optimizer that no wrapper and no sharding takes care of, by names that all ranks have."""
        known = construction.optimizers()
        number = next((index for index, other in enumerate(known) if other is optimizer), None)
        if number is None:
            return
        wrapped = {id(tensor) for _, wrapper in self._alive for tensor in wrapper.parameters()}
        for group, entries in enumerate(optimizer.param_groups):
            for position, tensor in enumerate(entries["params"]):
                if id(tensor) not in wrapped and _whole(tensor):
                    name = f"parameter {position} of group {group} of optimizer {number}"
                    self._tensors.setdefault(name, weakref.ref(tensor))
                    yield name, tensor

    def _gradients(self, optimizer: torch.optim.Optimizer) -> Iterator[tuple[str, Tensor]]:
        for name, tensor in self._unwrapped(optimizer):
            if tensor.grad is not None and _whole(tensor.grad):
                yield name, tensor.grad

    def _take(self, state: str, tensors: dict[str, Tensor]) -> None:
        if tensors:
            self._taken.append(_Taken(state, list(tensors), Digests(list(tensors.values()))))

    def _snapshot(self, tensors: dict[str, Tensor]) -> _Pending:
        """The parameters as they are now: these, and those of all wrapped models."""
        wrapped: dict[str, int] = {}
        groups: dict[int, tuple[int, ...]] = {}
        for number, wrapper in self._alive:
            if number in self._local or _averages(wrapper):
                continue
            groups[number] = tuple(dist.get_process_group_ranks(wrapper.process_group))
            for name, tensor in wrapper.module.named_parameters():
                if name not in wrapper.parameters_to_ignore and _whole(tensor):
                    full = f"{number}.{name}"
                    tensors[full], wrapped[full] = tensor, number
        taken, self._taken = self._taken, []
        taken.append(_Taken("after", list(tensors), Digests(list(tensors.values()))))
        return _Pending(self.session.step_count, self.session.window.index, taken, wrapped, groups)

    def _publish(self) -> None:
        """Show the others what has arrived from the device."""
        for pending in self._pending:
            if pending.snapshot is None and all(taken.digests.arrived for taken in pending.taken):
                pending.snapshot = _read(pending, self._communicates)
                ranks.post(_topic(pending.step), pending.snapshot)

    def _look(self, pending: _Pending) -> None:
        pending.looks += 1
        complete = pending.snapshot is not None and self._receive(pending)
        if complete or pending.looks == _LOOKS:
            self._pending.remove(pending)
            self._compare(pending)

    def _receive(self, pending: _Pending) -> bool:
        """Take what the ranks that this one compares itself with show; True if all do."""
        assert pending.snapshot is not None
        own = ranks.rank()
        wanted = {rank for members in pending.groups.values() if own == min(members) for rank in members}
        if own == 0 and self._communicates:
            wanted |= set(range(ranks.world_size()))
        for rank in wanted - {own} - pending.others.keys():
            other = ranks.looked(_topic(pending.step), rank)
            if isinstance(other, ReplicaState) and other.step == pending.step:
                pending.others[rank] = other
        return wanted - {own} == pending.others.keys()

    # -- comparing --------------------------------------------------------------------------------------------

    def _compare(self, pending: _Pending) -> None:
        mine, own = pending.snapshot, ranks.rank()
        if mine is None or not pending.others:
            return
        for number, members in mine.groups.items():
            if own == min(members):
                names = [name for name, replica in mine.replicas.items() if replica.wrapped == number]
                others = {rank: other for rank, other in pending.others.items() if rank in members}
                self._tell(mine, others, names, number)
        if own == 0 and mine.unwrapped:
            sharing = {rank: other for rank, other in pending.others.items() if other.communicates}
            for rank, other in sharing.items():
                self._shared |= {(rank, name) for name in shared(mine.unwrapped, other.unwrapped)}
                names = [name for name in mine.unwrapped if (rank, name) in self._shared]
                self._tell(mine, {rank: other}, names, None)

    def _tell(
        self, mine: ReplicaState, others: dict[int, ReplicaState], names: list[str], number: int | None
    ) -> None:
        apart: dict[str, float] = {}
        strange: set[int] = set()
        for rank, other in others.items():
            for name in names:
                after, there = mine.replicas[name].after, other.replicas.get(name)
                if there is None or after.shape != there.after.shape or after.bits == there.after.bits:
                    continue
                gap = after.apart(there.after)
                if number is not None or gap > _ROUNDING:
                    apart[name] = max(gap, apart.get(name, 0.0))
                    strange.add(rank)
        if apart:
            first = next(name for name in names if name in apart)
            made, called = self._named(first, number)
            involved = tuple(sorted({ranks.rank(), *strange}))
            widest = max(apart.values())
            divergence = DivergedReplicas(
                made if number is not None else self._stepped_at,
                called,
                len(apart),
                len(names),
                widest,
                involved,
                made if number is None else None,
            )
            self.session.ask("replicas", divergence)

    def _named(self, name: str, number: int | None) -> tuple[Place, str]:
        """The line that made what differs, and its name in the model."""
        if number is not None:
            wrapper = self._wrappers[number]()
            return BUILT.get(wrapper) or NOWHERE, name.partition(".")[2]
        tensor = self._tensors[name]()
        if tensor is None:
            return NOWHERE, name
        parameter = self.session.names.parameter(tensor)
        return parameter.place, parameter.name


def _read(pending: _Pending, communicates: bool) -> ReplicaState:
    states: dict[str, dict[str, Digest]] = {}
    for taken in pending.taken:
        states.setdefault(taken.state, {}).update(zip(taken.names, taken.digests.read(), strict=True))
    after = states.pop("after")
    replicas = {
        name: Replica(
            pending.wrapped.get(name), digest, **{state: by.get(name) for state, by in states.items()}
        )
        for name, digest in after.items()
    }
    return ReplicaState(pending.step, replicas, pending.groups, communicates)


def _memory(tensor: Tensor) -> tuple[int, int]:
    """Where a tensor is, and its elements: the same for a tensor and its `data`."""
    return address(tensor), tensor.numel()


def _topic(step: int) -> str:
    return f"replicas/{step.bit_length() % _SLOTS}"


def _whole(tensor: Tensor) -> bool:
    """Whether a tensor is no part of one that ranks have between them."""
    sharded = isinstance(tensor, DTensor) or getattr(tensor, "_is_flat_param", False)
    return not sharded and measurable(tensor.detach()) and tensor.numel() > 0


def _averages(wrapper: DistributedDataParallel) -> bool:
    """Whether ranks take steps of their own and average the models from time to time."""
    hooks = getattr(wrapper, "_comm_hooks", ())
    return any("localsgd" in getattr(hook, "__qualname__", "").lower().replace("_", "") for hook, _ in hooks)
