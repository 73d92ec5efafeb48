"""Sees the graphs that backward passes go through: whether they lead to the model, into earlier steps, and how long they live.

On thorough steps a graph is walked. Beside that the loss of each of the first steps, and of audited ones, is marked: a
mark lies in the metadata of the loss's node and lives exactly as long as that.
"""

import gc
import weakref
from collections import deque
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from ta_runtime.facts import Backward, GradientReach
from ta_runtime.observers.observer import Observer
from ta_runtime.observers.walks import walk
from ta_runtime.probes import construction
from ta_runtime.probes.places import Place

if TYPE_CHECKING:
    from ta_runtime.facts import Forward, Run, Step
    from ta_runtime.observers.context import Context
    from ta_runtime.observers.window import Window

_FIRST = 32
"""Steps at the beginning whose losses are marked, audited or not."""
_MARKS = 16
"""Steps of one line whose graphs are watched at a time."""
_CYCLES = 4
"""From so many graphs alive on, at each power of two, Python's cycles are collected first: those may hold them as well."""


class _Mark:
    """Lies in the metadata of a loss's node, and is gone when that is."""

    __slots__ = ("__weakref__",)


@dataclass(slots=True)
class _Trail:
    """The marks of one line, one a step, and the step of the last."""

    marks: deque[weakref.ref[_Mark]] = field(default_factory=lambda: deque(maxlen=_MARKS))
    last: int = -1
    freed: bool = False
    """Whether one was ever gone when the next was made."""

    @property
    def alive(self) -> int:
        """How many of the last ones are there, up to the first that is not."""
        alive = 0
        for mark in reversed(self.marks):
            if mark() is None:
                break
            alive += 1
        return alive


class GraphObserver(Observer):
    """Watches the backward passes of a session."""

    def __init__(self, session: "Context") -> None:
        super().__init__(session)
        self._passes: dict[Place, Backward] = {}
        self._reaches: dict[Place, GradientReach] = {}
        self._trails: dict[tuple[Place, bool], _Trail] = {}  # of losses and of buffers
        self._mark_key, self._step_key = (
            object(),
            object(),
        )  # of nodes' metadata, other sessions have their own
        self._doubted: set[Place] = (
            set()
        )  # lines that had a loss without a graph: all their passes are counted
        self._running: tuple[weakref.ref[Tensor], Backward, int] | None = None
        self._walked = self._walked_before = -1  # the last steps with a walk
        self._met: set[int] = set()  # leaves that the walks of this window came to
        self._opaque = False

    def detach(self) -> None:
        self._look_back()
        super().detach()

    def begin(self, window: "Window") -> None:
        self._met, self._opaque = set(), False

    def before_backward(self, loss: Tensor) -> None:
        self._look_back()
        window, node = self.session.window, loss.grad_fn
        looks = window.index < _FIRST or window.step is not None
        if node is not None and not looks and not self._doubted:
            return
        place = self.session.backwards.place
        passes = self._passes.setdefault(place, Backward(place))
        if node is None:
            self._doubted.add(place)
            self._classify(loss, passes, window.step)
            return
        passes.recorded += 1
        if looks:
            self._mark(node, passes, window.index)
            if window.thorough or (place, True) in self._trails:
                self._mark_buffer(passes, window.index)
            if window.thorough:
                self._follow(node, passes, window.index)
            self._running = weakref.ref(loss), passes, window.index

    def after_backward(self, loss: Tensor) -> None:
        self._running = None

    def before_step(self, optimizer: torch.optim.Optimizer, window: "Window") -> None:
        if window.index < _FIRST or window.step is not None:
            self._spare_higher_orders(optimizer, window.index)
        if window.step is not None and window.step.thorough and window.loss_place is not None:
            self._see_reach(optimizer, window.step.forwards, window.loss_place)

    def report(self, run: "Run") -> None:
        run.backwards = list(self._passes.values())
        run.reaches = list(self._reaches.values())
        for reach in run.reaches:
            reach.starved = run.steps_without_gradient(reach.parameters)

    # -- losses without a graph -------------------------------------------------------------------------------

    def _classify(self, loss: Tensor, passes: Backward, step: "Step | None") -> None:
        if loss.requires_grad:
            if (
                loss.numel() == 1
                and not isinstance(loss, nn.Parameter)
                and id(loss) not in construction.held_ids()
            ):
                passes.forced += 1
            return
        forwards = [forward for forward in step.forwards if _learns(forward)] if step is not None else []
        if any(value.requires_grad for forward in forwards for value in forward.outputs):
            passes.cut += 1
        elif forwards and not any(forward.grad_enabled for forward in forwards):
            passes.unrecorded += 1

    # -- where a graph leads ----------------------------------------------------------------------------------

    def _follow(self, node: Any, passes: Backward, step: int) -> None:
        found = walk(node, self._step_key, step, marking=True, others=construction.held_ids())
        if step != self._walked:
            self._walked_before, self._walked = self._walked, step
        self._met |= found.through | found.stepped
        self._opaque |= found.opaque
        passes.parameters = max(passes.parameters, len(found.through))
        if found.through:
            passes.through += 1
        elif found.stepped and not found.opaque:
            passes.stepped += 1
        if self._walked_before == step - 1:
            passes.followed += 1
        if found.recurs:
            passes.earlier = max(passes.earlier, len(found.earlier))

    def _look_back(self) -> None:
        """At a pass that raised: the frames that the error holds keep its loss."""
        running, self._running = self._running, None
        if running is None:
            return
        reference, passes, step = running
        loss = reference()
        if loss is not None and loss.grad_fn is not None:
            found = walk(loss.grad_fn, self._step_key, step, marking=False)
            if found.recurs:
                passes.failed = max(passes.failed, len(found.earlier))

    def _see_reach(
        self, optimizer: torch.optim.Optimizer, forwards: "list[Forward]", backward: Place
    ) -> None:
        """Whether what the optimizer is about to change has any gradient, model by model."""
        held = construction.held(optimizer)
        for module in dict.fromkeys(forward.model.module for forward in forwards if forward.training):
            learning = [p for p in module.parameters() if p.requires_grad and id(p) in held]
            if not learning:
                continue
            calls = [forward for forward in forwards if forward.model.module is module]
            place = calls[-1].place
            reach = self._reaches.setdefault(
                place, GradientReach(place, backward, frozenset(map(id, learning)))
            )
            if any(parameter.grad is not None for parameter in learning):
                reach.reached += 1
            elif self._opaque or not self._met.isdisjoint(map(id, learning)):
                continue
            elif any(value.requires_grad for forward in calls for value in forward.outputs):
                reach.cut += 1
            elif not any(forward.grad_enabled for forward in calls):
                reach.unrecorded += 1

    # -- how long a graph lives -------------------------------------------------------------------------------

    def _mark_buffer(self, passes: Backward, step: int) -> None:
        """A buffer that was computed from itself and the batch keeps the graphs of all steps so far."""
        buffers = chain.from_iterable(model.buffers() for model in self.session.names.models)
        node = next((buffer.grad_fn for buffer in buffers if buffer.grad_fn is not None), None)
        if node is not None:
            self._mark(node, passes, step, is_buffer=True)

    def _mark(self, node: Any, passes: Backward, step: int, *, is_buffer: bool = False) -> None:
        trail = self._trails.setdefault((passes.place, is_buffer), _Trail())
        if trail.last == step:
            return
        alive = trail.alive
        if alive > passes.alive and alive >= _CYCLES and alive & (alive - 1) == 0:
            gc.collect()
            alive = trail.alive
        passes.alive = max(passes.alive, alive)
        trail.freed |= alive < len(trail.marks)
        if not trail.freed:
            passes.unfreed = alive
        mark = node.metadata[self._mark_key] = _Mark()
        trail.marks.append(weakref.ref(mark))
        trail.last = step
        passes.graphs += not is_buffer

    def _spare_higher_orders(self, optimizer: torch.optim.Optimizer, step: int) -> None:
        """A gradient that has a graph (`create_graph=True`) is to be gone back through: what it needs has to live."""
        held = chain.from_iterable(group["params"] for group in optimizer.param_groups)
        gradient = next((parameter.grad for parameter in held if parameter.grad is not None), None)
        if gradient is not None and gradient.requires_grad:
            for trail in self._trails.values():
                trail.marks.clear()


def _learns(forward: "Forward") -> bool:
    return any(parameter.requires_grad for parameter in forward.model.module.parameters())
