"""The audit of a training that a framework holds: it begins and ends with it, and counts what it finds."""

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal, TypedDict, Unpack

from ta_lint.core.errors import oneline
from ta_lint.core.finding import Finding, Verdict
from ta_runtime import api, reports
from ta_runtime.audit.audit import Audit
from ta_runtime.faults import keep
from ta_runtime.settings import OnFinding, resolve

_open: "Watch | None" = None
"""Whose own audit is on."""


class WatchOptions(TypedDict, total=False):
    """The arguments of `ta_runtime.enable`, with the same defaults."""

    overhead: float | None
    every_n_steps: int | None
    gradients_every_n_steps: int | None
    schedule: str | Path | None
    save_schedule: str | Path | None
    rules: str | Iterable[str] | None
    ignore: str | Iterable[str]
    output: str | Path | None
    fail_level: str | None
    on_finding: OnFinding | None
    baseline: str | Path | None
    compiled: Literal["skip", "eager"]
    live: bool
    lint: bool
    record: str | Path | None
    snapshots: str | None
    send: bool
    invariants: str | Path | Iterable[str | Path] | None
    invariants_every_n_steps: int
    preflight: bool


class Watch:
    """Follows the audit that is on when the training begins; if none is, its own one, from then to the end.

    Raises:
        TypeError: there is no such option.
        UsageError: an option or the project's `[tool.ta]` is wrong, or the report cannot be written there.
    """

    def __init__(self, options: WatchOptions) -> None:
        if unknown := options.keys() - WatchOptions.__annotations__.keys():
            raise TypeError(f"`ta_runtime.enable` has no argument {', '.join(sorted(unknown))}")
        self.counts = {"ta/errors": 0, "ta/warnings": 0}
        """How many findings the run has, of those that count, as metrics to log."""
        self._options = options
        self._own = _audit(options)
        self._followed: Audit | None = None
        self._thread = 0

    def __reduce__(self) -> Any:  # a process that is spawned has an audit of its own
        return Watch, (self._options,)

    def begin(self) -> None:
        """The training begins; after an earlier one, its own audit goes on where that ended."""
        global _open
        if _open is not None and _open._thread == threading.get_ident():  # it raised, and nobody was told
            _open.end()
        with quietly():
            audit = api.running()
            if audit is None:
                if not self._own.mine:  # forked
                    self._own = _audit(self._options)
                audit = self._own
                if not audit.linted:
                    audit.lint()
                api.begin(audit)
                _open, self._thread = self, threading.get_ident()
            self.counts = dict.fromkeys(self.counts, 0)
            for finding in audit.findings:
                if not audit.linted or finding.verdict is Verdict.CONFIRMED:
                    self._count(finding)
            audit.on_opened.append(self._count)
            self._followed = audit

    def end(self, error: BaseException | None = None) -> None:
        """The training is over; `error` is what ended it. Nothing happens if it is not followed."""
        global _open
        audit, self._followed = self._followed, None
        if audit is None:
            return
        if _open is self:
            _open = None
        with quietly():
            if audit is self._own and api.running() is audit:
                api.end(error)
            with suppress(ValueError):
                audit.on_opened.remove(self._count)

    def _count(self, finding: Finding) -> None:
        metric = f"ta/{finding.severity}s"
        if finding.counts and metric in self.counts:
            self.counts[metric] += 1


class Watching:
    """A callback of a framework that follows a `Watch`; it stands before the framework's own class."""

    def __init__(self, **options: Unpack[WatchOptions]) -> None:
        """What is watched, and what becomes of it.

        Args:
            options: those of `ta_runtime.enable`. If an audit is on already, it is followed instead, and they do not hold.

        Raises:
            TypeError: there is no such option.
            UsageError: an option or the project's `[tool.ta]` is wrong, or the report cannot be written there.
        """
        super().__init__()
        self._watch = Watch(options)


def _audit(options: WatchOptions) -> Audit:
    arguments: dict[str, Any] = {"output": api.REPORT, **options}
    return Audit(resolve(**arguments))


@contextmanager
def quietly() -> Iterator[None]:
    """What goes wrong inside is said on standard error, and the training goes on."""
    try:
        yield
    except Exception as error:  # noqa: BLE001 - whatever it is
        keep(error)
        reports.error_line(
            f"the training is not watched as it should be: {type(error).__name__}: {oneline(error)}"
        )
