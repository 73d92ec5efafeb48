"""Looks at the exception that ended a run: the user's line that it came from, and the embedding that raised it, if one did.

The frames of the error still hold the ids that were looked up. So steps that are not audited need no look at them at all.
"""

import sys
from collections.abc import Iterator
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, TypeGuard

from torch import Tensor, nn

from ta_runtime.facts import FailedLookup, Failure
from ta_runtime.observers.observer import Observer
from ta_runtime.probes.places import Place, is_library, of_trace

if TYPE_CHECKING:
    from ta_runtime.facts import Run


class Failures(Observer):
    """Watches for the end of a session's run."""

    def attach(self) -> None:
        self._earlier = _last_error()

    def report(self, run: "Run") -> None:
        error = _last_error()
        if not run.over or error is None or error is self._earlier:
            return
        passed = list(_passed(error))
        if (place := _innermost(passed)) is not None:
            run.broke_off = True
            run.failure = Failure(place, type(error).__name__, str(error), self._lookup(passed))

    def _lookup(self, passed: list[TracebackType]) -> FailedLookup | None:
        called = [
            (depth, module)
            for depth, trace in enumerate(passed)
            if (module := _called(trace.tb_frame)) is not None
        ]
        if not called:
            return None
        first, model = called[0]
        place = _innermost(passed[:first])
        for depth, module in reversed(called):
            ids = passed[depth].tb_frame.f_locals.get("input")
            if isinstance(module, (nn.Embedding, nn.EmbeddingBag)) and _readable(ids) and place is not None:
                layer = self.session.names.layer_of(model, module)
                return FailedLookup(place, layer, int(ids.min()), int(ids.max()), module.num_embeddings)
        return None


def _last_error() -> BaseException | None:
    return getattr(sys, "last_value", None)


def _passed(error: BaseException) -> Iterator[TracebackType]:
    """From the outermost frame that an error passed to the one that raised it."""
    trace = error.__traceback__
    while trace is not None:
        yield trace
        trace = trace.tb_next


def _innermost(passed: list[TracebackType]) -> Place | None:
    """The user's line that is nearest to the error."""
    own = (trace for trace in reversed(passed) if not is_library(trace.tb_frame.f_code.co_filename))
    return next(map(of_trace, own), None)


def _called(frame: FrameType) -> nn.Module | None:
    """The module that a frame calls, or runs the `forward` of."""
    module = frame.f_locals.get("self")
    calls = frame.f_code.co_name in ("_wrapped_call_impl", "forward")
    return module if calls and isinstance(module, nn.Module) else None


def _readable(ids: object) -> TypeGuard[Tensor]:
    """Whether they are ids on the CPU; those of another device may be lost with the error."""
    return (
        isinstance(ids, Tensor)
        and ids.device.type == "cpu"
        and ids.numel() > 0
        and not ids.is_floating_point()
    )
