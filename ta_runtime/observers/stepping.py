"""Observes what happens around the steps of each optimizer: backward passes, clearing, clipping and gradient scalers.

Lines and order are recorded at every step, in Python alone. Gradients are measured only a few times in a run, when a backward
pass is about to add to gradients that a step has used, because zeroing `.grad.data` can be seen in no other way.
"""

import weakref
from collections import deque
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.utils.data import IterableDataset

from ta_lint.core.protocol import Action
from ta_runtime.facts import Condition, Loader, ObservedAction
from ta_runtime.measure.kinds import local, measurable
from ta_runtime.measure.memory import part
from ta_runtime.observers.accumulations import accumulations_of
from ta_runtime.observers.gradient_state import GradientState
from ta_runtime.observers.leftovers import leftovers_of
from ta_runtime.observers.observer import Observer
from ta_runtime.observers.reductions import divisor
from ta_runtime.probes import construction, registers
from ta_runtime.probes.patching import Call, End
from ta_runtime.probes.places import Place, here
from ta_runtime.probes.registers import Register

if TYPE_CHECKING:
    from ta_runtime.facts import Run
    from ta_runtime.observers.context import Context
    from ta_runtime.observers.window import Window

_MOST = 256  # optimizers of a run, which may have one for each parameter: of more, the first
_NEAR = 8
"""Optimizers that are looked at in each backward pass where there are more: the last that did anything. All are looked at if so
many have stepped since the backward pass before that this costs each of them no more."""
_LOOKS = 8  # at gradients that seem not to have been cleared
_SCALED = 16
_NOT_FOUND = -1.0


class Stepping(Observer):
    """Watches the training loops of a session."""

    def __init__(self, session: "Context") -> None:
        super().__init__(session)
        self._states: Register[GradientState] = Register()
        self._all: list[GradientState] = []
        self._acted: dict[
            int, GradientState
        ] = {}  # by the ids of their optimizers, the last to do anything at the end
        self._steps = 0  # since the last backward pass
        self._near: list[GradientState] = []  # those that were looked at in it
        self._built = -1  # optimizers when it was last looked for new ones
        self._loader: Loader | None = None
        self._length: int | None = None  # its batches in a pass, asked while it is there
        self._loss: tuple[float | None, bool | None] = (None, None)  # as of `ObservedAction`
        # losses that a scaler has scaled since its last update, and what they were divided by
        self._scaled: deque[tuple[weakref.ref[Tensor] | None, float | None]] = deque(maxlen=_SCALED)
        self._scaler: weakref.ref[Any] | None = None
        self._scales: bool | None = None  # as of `LoopHistory`
        self._parts: list[tuple[int, int]] = []  # that models were given: what they are of, and from where on
        self._made: set[tuple[int, int]] = (
            set()
        )  # steps of scalers since their last update: scaler, optimizer

    def begin(self, window: "Window") -> None:
        self._parts = []

    def detach(self) -> None:
        super().detach()
        self._states.clear()

    def report(self, run: "Run") -> None:
        for state in self._all:
            optimizer = state.optimizer()
            if optimizer is not None and registers.is_left(optimizer):
                continue
            state.history.epoch_is_over = self._is_over
            state.history.scaler = self._scales
            history = state.report()
            run.loop.histories.append(history)
            run.accumulations += accumulations_of(history)
            if run.over:
                run.leftovers += leftovers_of(history)

    @property
    def settled(self) -> bool:
        return all(state.settled for state in self._states.values())

    def loses_track(self) -> None:
        for state in self._states.values():
            state.lose_track()
        self._scaled.clear()
        self._made.clear()

    @property
    def _is_over(self) -> bool:
        """Whether the loader has handed out all batches of its last epoch; False if their number is unknown."""
        loader = self._loader
        return (
            loader is not None and self._length is not None and loader.batches == loader.epochs * self._length
        )

    # -- backward passes and steps ----------------------------------------------------------------------------

    def before_backward(self, loss: Tensor) -> None:
        self._find()
        by = next((by for scaled, by in self._scaled if scaled is not None and scaled() is loss), _NOT_FOUND)
        if by is not _NOT_FOUND:
            self._loss = (by, True)
        elif self._scaled:  # it may have been made of one that was scaled
            self._loss = (None, None)
        else:
            self._loss = (divisor(loss, self.session.window.step is not None), False)
        self._near = self._nearest()
        self._steps = 0
        for state in self._near:
            state.look()
            if state.condition in (Condition.USED, Condition.STALE):
                self._measure(state)

    def after_backward(self, loss: Tensor) -> None:
        by, is_scaled = self._loss
        current = self.session.loaders.current
        position = None if current is None else (id(current), current.epochs, current.batches)
        for state in self._near:
            last = state.position
            same = last is not None and position is not None and last[0] == position[0]
            starts = same and last is not None and position is not None and last[1] != position[1]
            follows = last is None or (same and position is not None and last[2] + 1 == position[2])
            event = ObservedAction(
                Action.BACKWARD,
                self.session.backwards.place,
                is_scaled=is_scaled,
                is_next_batch=position is not None and follows,
                divisor=by,
            )
            before = [ObservedAction(Action.EPOCH, current.place)] if starts and current is not None else []
            if state.computed([*before, event]):
                state.position = position
                if current is not self._loader:
                    self._loader, self._length = current, _length(current)
                if is_scaled is not False and state.is_scaled is not True:
                    state.is_scaled = is_scaled

    def passed(self, module: nn.Module, args: tuple[Any, ...], result: Any) -> None:
        given = args[0] if args else None
        learns = module.training and torch.is_grad_enabled() and next(module.parameters(), None) is not None
        if learns and type(given) is Tensor and (place := part(given)) is not None:
            self._parts.append(place)

    def before_step(self, optimizer: torch.optim.Optimizer, window: "Window") -> None:
        self._steps += 1
        if (state := self._state(optimizer)) is not None:
            whole = {storage for storage, _ in self._parts}
            if len(whole) == 1 and 1 < len(set(self._parts)) == len(self._parts):
                state.history.chunked += 1
            state.look()
            state.steps(
                ObservedAction(
                    Action.STEP,
                    self.session.optimizers.place,
                    state.condition,
                    state.is_scaled,
                    self.session.optimizers.by_scaler,
                )
            )

    def after_step(self, optimizer: torch.optim.Optimizer, window: "Window") -> None:
        if (state := self._state(optimizer)) is not None:
            state.stepped()

    def skipped(self, optimizer: torch.optim.Optimizer) -> None:
        if (state := self._state(optimizer)) is not None:
            state.skipped(here())

    @torch.no_grad()
    def _measure(self, state: GradientState) -> None:
        """Measure whether the gradients that the last step used are zero now."""
        window = self.session.window
        gradient = state.gradient
        if gradient is None or state.looks >= _LOOKS or not self.session.looks_at(window):
            return
        values = local(gradient)
        if values.layout is torch.sparse_coo:
            values = values._values()
        if not measurable(values):
            return
        state.looks += 1
        history = state.history

        def deliver(norms: list[float]) -> None:
            history.kept += norms[0] > 0
            history.emptied += norms[0] == 0

        window.readings.norms([values], deliver)

    # -- clearings --------------------------------------------------------------------------------------------

    def clear(self, call: Call) -> End:
        if (state := self._state(call.args[0])) is not None:
            state.look()
        return self._cleared

    def _cleared(self, call: Call) -> None:
        if not call.raised and (state := self._state(call.args[0])) is not None:
            state.may_be_cleared(here())

    def clear_module(self, call: Call) -> End:
        self._find()
        self._near = self._nearest()
        for state in self._near:
            state.look()
        return self._all_cleared

    def _all_cleared(self, call: Call) -> None:
        if call.raised:
            return
        place = here()
        for state in self._near:
            if state.condition is not Condition.EMPTY or state.history.first is None:
                state.may_be_cleared(place)

    # -- clippings --------------------------------------------------------------------------------------------

    def clip(self, call: Call) -> End:
        for state in self._among(call.args[0]):
            state.look()
        return self._clipped

    def _clipped(self, call: Call) -> None:
        if call.raised:
            return
        limit = (*call.args[1:], *call.kwargs.values(), None)[0]
        bounds = isinstance(limit, (int, float)) and limit < float("inf")  # else it is for the norm alone
        for state in self._among(call.args[0]):
            state.written()
            if isinstance(limit, (int, float)) and bounds:
                event = ObservedAction(Action.CLIP, here(), state.condition, state.is_scaled)
                state.add(event)
                if state.is_scaled:
                    self._note_limit(state, event.place, float(limit))

    def _among(self, parameters: Any) -> list[GradientState]:
        """The optimizers of these parameters, or of this one."""
        listed = [parameters] if isinstance(parameters, Tensor) else parameters
        given = set(map(id, listed)) if isinstance(listed, Iterable) else set()
        return [state for state in self._nearest() if state.is_among(given)]

    def _note_limit(self, state: GradientState, place: Place, limit: float) -> None:
        """Record the limit of a clipping with the current factor of the scaler."""
        scaler = self._scaler() if self._scaler is not None else None
        scale = getattr(scaler, "_scale", None)  # not public: `get_scale` waits for the device
        window, limits = self.session.window, state.history.limits
        if not isinstance(scale, Tensor) or place in limits or not self.session.looks_at(window):
            return

        def deliver(values: list[float]) -> None:
            limits.setdefault(place, (limit, values[0]))

        window.readings.scalars([scale], deliver)

    # -- gradient scalers -------------------------------------------------------------------------------------

    def scale(self, call: Call) -> End:
        return self._note_scaled

    def _note_scaled(self, call: Call) -> None:
        scaler, loss, result = call.args[0], call.given(1, "outputs"), call.result
        if call.raised:
            return
        self._scales = bool(self._scales or scaler.is_enabled())
        if not scaler.is_enabled():
            return
        self._scaler = weakref.ref(scaler)
        if isinstance(result, Tensor) and isinstance(loss, Tensor):
            by = divisor(loss, self.session.window.step is not None)
            self._scaled.append((weakref.ref(result), by))
        else:
            self._scaled.append((None, None))

    def unscale(self, call: Call) -> End | None:
        if not call.args[0].is_enabled():
            return None
        if (state := self._state(call.given(1, "optimizer"))) is not None:
            state.look()
        return self._unscaled

    def _unscaled(self, call: Call) -> None:
        if not call.raised and (state := self._state(call.given(1, "optimizer"))) is not None:
            state.written()
            state.is_scaled = False
            state.add(ObservedAction(Action.UNSCALE, here(), state.condition, False))

    def scaler_step(self, call: Call) -> None:
        scaler, optimizer = call.args[0], call.given(1, "optimizer")
        if not scaler.is_enabled():
            return
        key = (id(scaler), id(optimizer))
        if key in self._made and (state := self._state(optimizer)) is not None:
            state.history.without_update = here()
        self._made.add(key)

    def update(self, call: Call) -> End:
        return self._updated

    def _updated(self, call: Call) -> None:
        if not call.raised:
            self._made = {key for key in self._made if key[0] != id(call.args[0])}
            self._scaled.clear()

    # -- traces -----------------------------------------------------------------------------------------------

    def _find(self) -> None:
        """Follow optimizers that were built and have not stepped yet."""
        if self._built != registers.count_built():
            self._built = registers.count_built()
            for optimizer in construction.optimizers():
                self._known(optimizer)

    def _nearest(self) -> list[GradientState]:
        """The optimizers that a backward pass may be for; none that another thread uses."""
        few = len(self._states) <= _NEAR * (1 + self._steps)
        states = self._states.values() if few else list(self._acted.values())
        return [state for state in states if registers.is_ours(state.optimizer())]

    def _state(self, optimizer: torch.optim.Optimizer) -> GradientState | None:
        """What is known of an optimizer that does something, or has something done to it."""
        state = self._known(optimizer)
        if state is not None:
            self._acted.pop(id(optimizer), None)
            self._acted[id(optimizer)] = state
            if len(self._acted) > _NEAR:
                del self._acted[next(iter(self._acted))]
        return state

    def _known(self, optimizer: torch.optim.Optimizer) -> GradientState | None:
        state = self._states.get(optimizer)
        if state is None and self.session.watches(optimizer) and len(self._all) < _MOST:
            state = GradientState(optimizer)
            self._states.add(optimizer, state)
            self._all.append(state)
        return state


def _length(loader: Loader | None) -> int | None:
    """The number of batches in an epoch; None if the loader does not know it."""
    found = loader.loader() if loader is not None else None
    return None if found is None or isinstance(found.dataset, IterableDataset) else len(found)
