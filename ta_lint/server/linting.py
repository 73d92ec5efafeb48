"""Lints documents, and the thread in which this happens."""

import queue
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from ta_lint.core import baseline
from ta_lint.core.config import project_root
from ta_lint.core.errors import UsageError
from ta_lint.core.finding import Finding
from ta_lint.core.source import Source
from ta_lint.engine import examine, located
from ta_lint.fixing import is_sound
from ta_lint.project.project import renew
from ta_lint.runner import start_thread
from ta_lint.server.documents import Document
from ta_lint.server.needs import Needs, needs_of
from ta_lint.server.settings import FileSettings, SettingsReader

T = TypeVar("T")


@dataclass(frozen=True)
class Linted:
    """A document with its settings and the findings that count."""

    document: Document
    settings: FileSettings
    source: Source
    findings: list[Finding]
    """With positions in the source; the source of a notebook is its joined cells."""
    complaint: str | None = None
    """An error in the settings; the document was then not linted."""
    needs: Needs | None = None
    """What the findings depend on in other files; None if it was not linted."""
    _sound: dict[str, bool] = field(default_factory=dict)

    @cached_property
    def located(self) -> list[Finding]:
        """The findings in the same order, with positions in the file or in a cell."""
        return located(self.findings, self.source)

    def changes_with(self, saved: AbstractSet[str]) -> bool:
        """Whether files that were saved may change the findings. Any file may call the code that one is in."""
        if self.needs is None or saved <= {str(self.document.path)}:
            return False
        return any(finding.held_by for finding in self.findings) or self.needs.change_with(saved)

    def mends(self, finding: Finding) -> bool:
        """Whether one of `findings` has a fix after which the file can still be parsed."""
        if finding.fix is None:
            return False
        key = f"{finding.rule} {finding.fingerprint}"
        if key not in self._sound:
            self._sound[key] = is_sound(finding, self.source, self.document.data)
        return self._sound[key]


class Linter:
    """Lints each state of a document once. Only one thread uses it."""

    def __init__(self) -> None:
        self._settings = SettingsReader()
        self._known: dict[str, Linted] = {}

    def lint(self, document: Document) -> Linted:
        """Lint a document, or return the known result if neither it nor its settings have changed."""
        known = self._known.get(document.uri)
        if known is not None and known.document == document:
            document = known.document  # its `data` is already computed
        complaint = None
        try:
            settings = self._settings.read(document.path, document.data)
        except UsageError as error:
            complaint, settings = str(error), FileSettings(None, [])
        if (
            known is not None
            and known.document is document
            and known.complaint == complaint
            and _alike(known.settings, settings)
        ):
            return known
        self._known[document.uri] = linted = _linted(document, settings, complaint)
        return linted

    def outdated(self, saved: AbstractSet[str]) -> list[str]:
        """The documents whose findings may be others now that files with these paths were saved; their results are dropped."""
        renew()
        found = [uri for uri, linted in self._known.items() if linted.changes_with(saved)]
        for uri in found:
            self.forget(uri)
        return found

    def forget(self, uri: str) -> None:
        """Drop the result for a document that is closed, or that other files have changed for."""
        self._known.pop(uri, None)


def _linted(document: Document, settings: FileSettings, complaint: str | None) -> Linted:
    file = settings.file
    if file is None:
        return Linted(document, settings, Source(document.path.name, ""), [], complaint)
    assert file.given is not None
    renew()  # other files of the project may have been saved since
    examined = examine(file, file.given)
    findings, _ = baseline.marked(examined.findings, settings.accepted)
    counting = [finding for finding in findings if finding.counts]
    return Linted(document, settings, examined.source, counting, needs=needs_of(file, file.given))


def _alike(first: FileSettings, second: FileSettings) -> bool:
    if first.file is None or second.file is None:
        return first.file is second.file
    return first.file.config is second.file.config and first.accepted == second.accepted


def root_of(document: Document) -> Path:
    """The folder of the project that a document belongs to."""
    return project_root(document.path.parent)


class Worker:
    """A thread that runs one task after another, apart from the thread that handles messages."""

    def __init__(self) -> None:
        self._jobs: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        start_thread(self._work)

    def submit(self, task: Callable[[], T]) -> Future[T]:
        """The future result of the task. A task cancelled before its turn never runs."""
        future: Future[T] = Future()

        def job() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                future.set_result(task())
            except BaseException as error:  # noqa: BLE001 - raised in whoever awaits it; the thread continues
                future.set_exception(error)

        self._jobs.put(job)
        return future

    def _work(self) -> None:
        while True:
            self._jobs.get()()
