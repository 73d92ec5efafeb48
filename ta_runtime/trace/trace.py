"""Writes a trace while the run goes on: events are kept as they come, and written together."""

import contextlib
from collections import deque
from collections.abc import Mapping
from typing import Any

from ta_lint.core.errors import oneline
from ta_runtime import reports
from ta_runtime.faults import keep
from ta_runtime.runs import RunWriter
from ta_runtime.runs.writer import SHARE, Part, TableWriter
from ta_runtime.storage import Place
from ta_runtime.trace.event import Event

_TOGETHER = 64
"""Events that are put into columns together, after a look at the clock that costs as much as to keep one."""


class TraceWriter:
    """The table `events` of a run, as this rank sees it.

    A job that is killed loses the events of its last part: at most those of the last 30 seconds, or of the last hundredth of
    its time if that is more, and 65,536. What cannot be written is said once, and the training goes on.
    """

    def __init__(
        self,
        folder: str | Place | RunWriter,
        *,
        about: Mapping[str, Any] | None = None,
        last: int | None = None,
    ) -> None:
        """Where the trace lies, and how much of it.

        Args:
            folder: that of the run, which is made, or what writes into it.
            about: what is traced, for `Run.about[rank]["trace"]`.
            last: keep the events of at least so many steps, and remove what is older, part by part; None: keep all. No event
                then waits for longer than 30 seconds, however long the run.

        Raises:
            UsageError: the folder cannot be written to, or holds a run already.
        """
        self.run = (
            folder if isinstance(folder, RunWriter) else RunWriter(folder, about={"trace": dict(about or {})})
        )
        self.count = 0
        self.size = 0
        """How many events are in the folder, in how many bytes."""
        self.steps = 0
        """How many steps are over."""
        self._last = last
        self._table = TableWriter(self.run, "events", share=SHARE if last is None else 0.0, trained_from=1)
        self._kept: deque[Part] = deque()  # those of the ring
        self._waiting: list[Event] = []

    def see(self, event: Event) -> None:
        """Keep an event; it is written with others, by `close` at the latest."""
        self._waiting.append(event)
        if len(self._waiting) >= _TOGETHER:
            self._take()
            if self._table.due:
                self._write(self._over() if self._last is not None else None)

    def step_over(self, step: int) -> None:
        """All events of a step were told. With the first the folder shows that it is in use, and ranks, which are then
        connected, agree on what the run is called."""
        self.steps = step + 1
        self.run.begin()

    def flush(self) -> None:
        """Write what is waiting."""
        self._take()
        self._write()

    def close(self) -> None:
        """Write what is waiting, and that there was a run, also if nothing happened in it."""
        self.flush()
        if not reports.is_child():
            self.run.begin()

    def _take(self) -> None:
        """Put the events that wait into the columns of the table."""
        if not (events := self._waiting[:]):
            return
        self._table.extend(dict(zip(Event._fields, zip(*events, strict=True), strict=True)))
        del self._waiting[: len(events)]

    def _over(self) -> int | None:
        """How many rows that wait are of steps that are over, as a ring is cut between steps; None if there are none."""
        steps = self._table.steps
        now = steps[-1]
        return next((row for row in range(len(steps), 0, -1) if steps[row - 1] != now), None)

    def _write(self, rows: int | None = None) -> None:
        """Write a part, and remove those that a ring has no place for."""
        part = None
        try:
            part = self._table.flush(rows)
        except Exception as error:  # noqa: BLE001 - whatever it is, the training goes on
            keep(error)
            self.run.give_up(f"{type(error).__name__}: {oneline(error)}")
        if not self.run.open:
            self._table.drop()
        if part is None:
            return
        self.count, self.size = self.count + part.rows, self.size + part.size
        if self._last is not None:
            self._kept.append(part)
            while self._kept[0].step < part.step - self._last:
                self._remove(self._kept.popleft())

    def _remove(self, part: Part) -> None:
        self.count, self.size = self.count - part.rows, self.size - part.size
        with contextlib.suppress(OSError):
            part.path.unlink()
