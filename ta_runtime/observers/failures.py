"""Sees the exception that ends a run, and the user's line that it came from."""

import sys
from typing import TYPE_CHECKING

from ta_runtime.facts import Failure
from ta_runtime.observers.observer import Observer
from ta_runtime.places import is_library, of_frame

if TYPE_CHECKING:
    from ta_runtime.facts import Run


class Failures(Observer):
    """Watches for the end of a session's run."""

    def attach(self) -> None:
        self._earlier = getattr(sys, "last_value", None)

    def report(self, run: "Run") -> None:
        error = getattr(sys, "last_value", None)
        if not run.over or error is None or error is self._earlier:
            return
        trace, frame = error.__traceback__, None
        while trace is not None:
            if not is_library(trace.tb_frame.f_code.co_filename):
                frame = trace
            trace = trace.tb_next
        if frame is not None:
            place = of_frame(frame.tb_frame)
            run.failure = Failure(place, type(error).__name__, str(error))
