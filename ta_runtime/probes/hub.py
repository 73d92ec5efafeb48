"""Brings listeners to the places that they want to know of: each is wrapped with the first, and let go of with the last."""

from collections.abc import Callable, Container
from functools import partial
from typing import Any

from ta_runtime.probes import (
    backward,
    clipping,
    collectives,
    compile,
    distributions,
    functionals,
    generation,
    loaders,
    logs,
    modes,
    modules,
    processes,
    scaler,
    seeding,
    spectral_norms,
    state,
    steps,
    tensors,
)
from ta_runtime.probes.listener import Listener
from ta_runtime.probes.patching import Call, End, PutOn, Watch
from ta_runtime.probes.undo import Undo

Run = Callable[..., Any]
"""Calls a method with its arguments, or does not."""

_PROBES = (
    backward,
    clipping,
    collectives,
    compile,
    distributions,
    functionals,
    generation,
    loaders,
    logs,
    modes,
    modules,
    processes,
    scaler,
    seeding,
    spectral_norms,
    state,
    steps,
    tensors,
)
_PLACES: dict[str, tuple[PutOn, ...]] = {
    event: places for probe in _PROBES for event, places in probe.PLACES.items()
}
LOOP = frozenset(
    {"backward", "clear", "clear_module", "clip", "scale", "scaler_step", "step", "unscale", "update"}
)
"""What a loop does in each of its steps."""
REST = frozenset(_PLACES) - LOOP


def directly(method: Run, *args: Any) -> Any:
    """Calls a method whose errors are to reach the script."""
    return method(*args)


def subscribe(listener: Listener, run: Run, events: Container[str] = frozenset(_PLACES)) -> Undo:
    """Tell a listener of events from here on; a call of what is returned ends that.

    `run` calls its methods, as `FaultBarrier.run` does: nothing of ours is called without one.
    """
    undo = Undo()
    try:
        for event in _PLACES:
            if event in events and getattr(type(listener), event) is not getattr(Listener, event):
                undo.append(watch(event, getattr(listener, event), run))
    except BaseException:
        undo()
        raise
    return undo


def watch(event: str, method: Watch, run: Run) -> Undo:
    """As `subscribe`, of a single method of a `Listener`; nothing happens where torch lacks what it is of."""
    undo = Undo()
    try:
        for put_on in _PLACES.get(event, ()):
            undo.append(put_on(_guarded(method, run)))
    except BaseException:
        undo()
        raise
    return undo


def _guarded(watch: Watch, run: Run) -> Watch:
    def guarded(call: Call) -> End | None:
        end = run(watch, call)
        return None if end is None else partial(run, end)

    return guarded
