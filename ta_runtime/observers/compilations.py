"""Reads what torch notes of its compilations, whenever the checks are asked: it costs the steps nothing."""

import sys
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ta_runtime.facts import Compilation
from ta_runtime.observers.observer import Observer
from ta_runtime.probes.patching import Call
from ta_runtime.probes.places import NOWHERE, Place, here, is_library

if TYPE_CHECKING:
    from ta_runtime.facts import Run

WARM = 20
"""Steps in which a run warms up: the shapes of a first epoch, its last batch, an evaluation."""
_LONGEST = 100  # letters of a guard


class Compilations(Observer):
    """Brings together the compilations of each function."""

    def attach(self) -> None:
        self._began = time.time()
        self._place = NOWHERE
        self._found: dict[str, Compilation] = {}
        self._before: dict[str, int] | None = None
        """How often each function was compiled when the run was warm."""

    def compile(self, call: Call) -> None:
        if self._place is NOWHERE:
            self._place = here()

    def report(self, run: "Run") -> None:
        for metrics in _noted():
            if (getattr(metrics, "start_time", None) or 0.0) >= self._began:
                self._note(metrics)
        if self._before is None and self.session.step_count >= WARM:
            self._before = {number: found.times for number, found in self._found.items()}
        if self._before is not None:
            for number, found in self._found.items():
                found.late = found.times - max(self._before.get(number, 0), 1)
        run.compilations = [found for found in self._found.values() if found.place is not NOWHERE]

    def _note(self, metrics: Any) -> None:
        """Take in what torch noted of one compilation; it keeps the last 64."""
        number, _, index = str(getattr(metrics, "compile_id", None) or "").partition("/")
        if not index.isdigit():
            return
        found = self._found.get(number)
        if found is None:
            path, line = getattr(metrics, "co_filename", None), getattr(metrics, "co_firstlineno", None)
            of_user = isinstance(path, str) and isinstance(line, int) and not is_library(path)
            place = Place(str(path), int(line or 1)) if of_user else self._place
            found = self._found[number] = Compilation(place, str(getattr(metrics, "co_name", None) or ""))
        reason = str(getattr(metrics, "recompile_reason", None) or "")
        failure = f"{getattr(metrics, 'fail_type', '')} {getattr(metrics, 'fail_reason', '')}".lower()
        if "recompile limit" in failure or "recompilelimit" in failure:
            found.gave_up = True
        elif int(index) >= found.times:
            found.times = int(index) + 1
        if reason:
            found.guard = _guard(reason)


def _noted() -> Iterable[Any]:
    """What torch has noted; nothing where it has compiled nothing, or is of a release that does not say."""
    utils = sys.modules.get("torch._dynamo.utils")
    read = getattr(utils, "get_compilation_metrics", None)  # not public
    return read() if read is not None else ()


def _guard(reason: str) -> str:
    """`len(self.seen) == 3` of `0/2: len(self.seen) == 3    # self.seen.append(x)`, and of lines below."""
    first = reason.partition("\n")[0].partition("  #")[0]
    number, colon, rest = first.partition(": ")
    return (rest if colon and "/" in number else first).strip()[:_LONGEST]
