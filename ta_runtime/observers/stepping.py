"""Observes what happens around the steps of each optimizer: backward passes, clearing, clipping and gradient scalers.

Lines and order are recorded at every step, in Python alone. Gradients are measured only a few times in a run, when a backward
pass is about to add to gradients that a step has used, because zeroing `.grad.data` can be seen in no other way.
"""

import weakref
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.utils.data import IterableDataset

from ta_lint.core.protocol import Action
from ta_runtime.facts import Condition, Loader, ObservedAction
from ta_runtime.observers import construction
from ta_runtime.observers.gradient_state import GradientState
from ta_runtime.observers.observer import Observer
from ta_runtime.observers.reductions import divisor
from ta_runtime.places import Place, here
from ta_runtime.readings import local, measurable

if TYPE_CHECKING:
    from ta_runtime.facts import Run
    from ta_runtime.session import Session
    from ta_runtime.window import Window

_MOST = 256  # optimizers of a run, which may have one for each parameter: of more, the first
_LOOKS = 8  # at gradients that seem not to have been cleared
_SCALED = 16
_NOT_FOUND = -1.0


class Stepping(Observer):
    """Watches the training loops of a session."""

    def __init__(self, session: "Session") -> None:
        super().__init__(session)
        self._states: dict[int, GradientState] = {}
        self._all: list[GradientState] = []
        self._loader: Loader | None = None
        self._length: int | None = None  # its batches in a pass, asked while it is there
        self._loss: tuple[float | None, bool | None] = (None, None)  # as of `ObservedAction`
        # losses that a scaler has scaled since its last update, and what they were divided by
        self._scaled: deque[tuple[weakref.ref[Tensor] | None, float | None]] = deque(maxlen=_SCALED)
        self._scaler: weakref.ref[Any] | None = None
        self._made: set[tuple[int, int]] = (
            set()
        )  # steps of scalers since their last update: scaler, optimizer

    def attach(self) -> None:
        guarded = self.session.guarded
        scaler = torch.amp.GradScaler
        patch = self.undo.patch
        patch(torch.optim.Optimizer, "zero_grad", _around(guarded(self._look), guarded(self._cleared)))
        patch(nn.Module, "zero_grad", _around(guarded(self._look_all), guarded(self._all_cleared)))
        patch(scaler, "unscale_", _around(guarded(self._unscales), guarded(self._unscaled)))
        patch(scaler, "update", _around(_nothing, guarded(self._updates)))

    def detach(self) -> None:
        super().detach()
        self._states.clear()

    def report(self, run: "Run") -> None:
        for state in self._all:
            state.history.epoch_is_over = self._is_over
            run.loop.histories.append(state.report())

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
        for state in self._states.values():
            state.look()
            if state.condition in (Condition.USED, Condition.STALE):
                self._measure(state)

    def after_backward(self, loss: Tensor) -> None:
        by, is_scaled = self._loss
        current = self.session.loaders.current
        position = None if current is None else (id(current), current.epochs, current.batches)
        for state in self._states.values():
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

    def before_step(self, optimizer: torch.optim.Optimizer, window: "Window") -> None:
        if (state := self._state(optimizer)) is not None:
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
        if not measurable(values):
            return
        state.looks += 1
        history = state.history

        def deliver(norms: list[float]) -> None:
            history.kept += norms[0] > 0
            history.emptied += norms[0] == 0

        window.readings.norms([values], deliver)

    # -- clearings --------------------------------------------------------------------------------------------

    def _look(self, optimizer: torch.optim.Optimizer, *args: Any, **kwargs: Any) -> None:
        if (state := self._state(optimizer)) is not None:
            state.look()

    def _cleared(self, result: Any, optimizer: torch.optim.Optimizer, *args: Any, **kwargs: Any) -> None:
        if (state := self._state(optimizer)) is not None:
            state.may_be_cleared(here())

    def _look_all(self, *args: Any, **kwargs: Any) -> None:
        self._find()
        for state in self._states.values():
            state.look()

    def _all_cleared(self, result: Any, module: nn.Module, *args: Any, **kwargs: Any) -> None:
        place = here()
        for state in self._states.values():
            if state.condition is not Condition.EMPTY or state.history.first is None:
                state.may_be_cleared(place)

    # -- clippings --------------------------------------------------------------------------------------------

    def before_clipping(self, parameters: list[Tensor]) -> None:
        for state in self._among(parameters):
            state.look()

    def after_clipping(self, parameters: list[Tensor], limit: object) -> None:
        bounds = isinstance(limit, (int, float)) and limit < float("inf")  # else it is for the norm alone
        for state in self._among(parameters):
            state.written()
            if isinstance(limit, (int, float)) and bounds:
                event = ObservedAction(Action.CLIP, here(), state.condition, state.is_scaled)
                state.add(event)
                if state.is_scaled:
                    self._note_limit(state, event.place, float(limit))

    def _among(self, parameters: list[Tensor]) -> list[GradientState]:
        given = set(map(id, parameters))
        return [state for state in self._states.values() if state.is_among(given)]

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

    def scaled(self, scaler: torch.amp.GradScaler, loss: Any, result: Any) -> None:
        if not scaler.is_enabled():
            return
        self._scaler = weakref.ref(scaler)
        if isinstance(result, Tensor) and isinstance(loss, Tensor):
            by = divisor(loss, self.session.window.step is not None)
            self._scaled.append((weakref.ref(result), by))
        else:
            self._scaled.append((None, None))

    def _unscales(self, scaler: Any, optimizer: Any) -> None:
        if scaler.is_enabled() and (state := self._state(optimizer)) is not None:
            state.look()

    def _unscaled(self, result: Any, scaler: Any, optimizer: Any) -> None:
        if scaler.is_enabled() and (state := self._state(optimizer)) is not None:
            state.written()
            state.is_scaled = False
            state.add(ObservedAction(Action.UNSCALE, here(), state.condition, False))

    def before_scaler_step(self, scaler: torch.amp.GradScaler, optimizer: torch.optim.Optimizer) -> None:
        key = (id(scaler), id(optimizer))
        if key in self._made and (state := self._state(optimizer)) is not None:
            state.history.without_update = here()
        self._made.add(key)

    def _updates(self, result: Any, scaler: Any, *args: Any, **kwargs: Any) -> None:
        self._made = {key for key in self._made if key[0] != id(scaler)}
        self._scaled.clear()

    # -- traces -----------------------------------------------------------------------------------------------

    def _find(self) -> None:
        """Follow optimizers that were built and have not stepped yet."""
        if len(self._all) < _MOST:
            for optimizer in construction.optimizers():
                if id(optimizer) not in self._states:
                    self._state(optimizer)

    def _state(self, optimizer: torch.optim.Optimizer) -> GradientState | None:
        state = self._states.get(id(optimizer))
        if state is not None and state.optimizer() is optimizer:
            return state
        if not self.session.watches(optimizer) or len(self._all) == _MOST:
            return None
        self._states = {key: state for key, state in self._states.items() if state.optimizer() is not None}
        state = self._states[id(optimizer)] = GradientState(optimizer)
        self._all.append(state)
        return state


_Before = Callable[..., None]


def _around(before: _Before, after: _Before) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A wrapper that calls `before` with the arguments, and `after` with the result as well."""

    def wrapper(original: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any, **kwargs: Any) -> Any:
            if torch.compiler.is_compiling():
                return original(*args, **kwargs)
            before(*args, **kwargs)
            result = original(*args, **kwargs)
            after(result, *args, **kwargs)
            return result

        return run

    return wrapper


def _nothing(*args: Any, **kwargs: Any) -> None:
    pass


def _length(loader: Loader | None) -> int | None:
    """The number of batches in an epoch; None if the loader does not know it."""
    found = loader.loader() if loader is not None else None
    return None if found is None or isinstance(found.dataset, IterableDataset) else len(found)
