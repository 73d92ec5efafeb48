"""Where snapshots go: into the tables of a run, or, as `introspection` has them, into files of YAML."""

import time
from pathlib import Path
from typing import Any

from ta_lint.core.errors import UsageError
from ta_runtime.runs import RunWriter
from ta_runtime.storage import located

_OFTEN, _SECONDS = 64, 10.0
"""So many snapshots are written as soon as they are taken, those after them that many seconds later at most."""


class Columns:
    """Puts rows into the tables of a run."""

    def __init__(self, writer: RunWriter) -> None:
        self._writer = writer
        self._added = 0
        self._flushed = time.monotonic()
        self.waits = False

    def begin(self) -> None:
        """It is known which rank this is: write what waits."""
        self._writer.begin()
        self.flush()

    def add(self, rows: list[dict[str, Any]]) -> None:
        self._writer.records.add(rows)
        self._added += 1
        self.waits = True

    def catch_up(self) -> None:
        """Write what waits, if it may: before the first step it is not known yet which rank this is."""
        if self.waits and (self._added <= _OFTEN or time.monotonic() - self._flushed > _SECONDS):
            self.flush()

    def flush(self) -> None:
        self._writer.flush()
        self._flushed, self.waits = time.monotonic(), False


def made(folder: "str | Path | RunWriter", form: str) -> Any:
    """What takes the snapshots of a run, in one of the two forms.

    Raises:
        UsageError: the folder holds a run already, or cannot hold this form.
    """
    if form == "yaml":
        from ta_runtime.snapshot.introspection import Files

        place = folder.folder if isinstance(folder, RunWriter) else located(folder)
        if not isinstance(place, Path):
            raise UsageError(f"{place}: YAML files need a local folder; use form='columns'")
        return Files(place)
    return Columns(folder if isinstance(folder, RunWriter) else RunWriter(folder))
