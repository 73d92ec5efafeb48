"""Looks, after an error that ended the run, at the embedding that raised it: the frames of the error still hold its ids.

So steps that are not audited need no look at all.
"""

import sys
from collections.abc import Iterator
from types import FrameType, TracebackType
from typing import TYPE_CHECKING

from torch import Tensor, nn

from ta_runtime.facts import FailedLookup
from ta_runtime.observers.observer import Observer
from ta_runtime.places import is_library, of_frame

if TYPE_CHECKING:
    from ta_runtime.facts import Run

_LOOKUPS = (nn.Embedding, nn.EmbeddingBag)


class Lookups(Observer):
    """Watches for the end of a session's run."""

    def attach(self) -> None:
        self._earlier = _last_error()

    def report(self, run: "Run") -> None:
        error = _last_error()
        if not run.over or not isinstance(error, (IndexError, RuntimeError)) or error is self._earlier:
            return
        place = model = None
        for frame in _frames(error.__traceback__):
            called = _called(frame)
            if called is None:
                if model is None and not is_library(frame.f_code.co_filename):
                    place = of_frame(frame)
                continue
            module, ids = called
            model = model if model is not None else module
            if place is None or not isinstance(module, _LOOKUPS) or ids is None:
                continue
            if ids.device.type == "cpu" and ids.numel() and not ids.is_floating_point():
                layer, rows = self.session.names.layer_of(model, module), module.num_embeddings
                failed = FailedLookup(place, layer, int(ids.min()), int(ids.max()), rows)
                run.failed_lookups = [failed]


def _last_error() -> BaseException | None:
    return getattr(sys, "last_value", None)


def _frames(trace: TracebackType | None) -> Iterator[FrameType]:
    while trace is not None:
        yield trace.tb_frame
        trace = trace.tb_next


def _called(frame: FrameType) -> tuple[nn.Module, Tensor | None] | None:
    """The module that a frame calls, or runs the `forward` of, with the `input` of that."""
    module, given = frame.f_locals.get("self"), frame.f_locals.get("input")
    if not isinstance(module, nn.Module) or frame.f_code.co_name not in ("_wrapped_call_impl", "forward"):
        return None
    return module, given if isinstance(given, Tensor) else None
