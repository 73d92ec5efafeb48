"""The files that `--watch` watches, with their findings."""

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from ta_lint.commands.check.settings import Settings
from ta_lint.core.baseline import Entry
from ta_lint.core.errors import UsageError
from ta_lint.core.files import Stamp, stamp
from ta_lint.core.finding import Finding
from ta_lint.discovery import discover
from ta_lint.file import File
from ta_lint.runner import Result


@dataclass(frozen=True)
class Reading:
    """The settings and the baseline of the watched files, as read at one time."""

    settings: Settings
    accepted: list[Entry]
    """The entries of the baseline."""
    sources: list[Path]
    """The files named by the command line or the settings that this was read from."""


class WatchedFiles:
    """The watched files and their findings; `trouble` says why newer settings were not adopted.

    Raises:
        UsageError: the settings cannot be read, or a path does not exist. Later, neither ends the watching.
    """

    def __init__(
        self,
        paths: list[Path],
        read: Callable[[], Reading],
        lint: Callable[[list[File], Settings], Iterable[Result]],
    ) -> None:
        self.paths = paths
        self.reading = read()
        self.files = self._find(paths, self.reading)
        self.trouble = ""
        self._standing: list[Path] = []
        self._read = read
        self._lint = lint
        self._known: dict[Path, tuple[Stamp, list[Finding]]] = {}

    @property
    def results(self) -> list[Result]:
        return [(file, self._known[file.path][1]) for file in self.files if file.path in self._known]

    @property
    def moved(self) -> bool:
        """Whether a named path has appeared or disappeared since the last search for files."""
        return self._standing != self._find_standing()

    def refresh(self, reread: bool = False) -> bool:
        """Lint all files if one or the settings have changed; return whether anything is new.

        A change may give findings in other files. The cache knows which it leaves alone.

        `reread` makes it read the settings again. If they are wrong, the old ones stay.
        """
        before, known, old = self.trouble, self._known, self.reading
        self.trouble = ""
        try:
            self._survey(self._read() if reread or before else old)
        except UsageError as error:
            self.trouble = str(error)
            self._survey_as_before()
        stamps = {file.path: stamp(file.path) for file in self.files}
        if self.reading is not old:
            known = {}
        changed = [
            file for file in self.files if file.path not in known or known[file.path][0] != stamps[file.path]
        ]
        gone = self._known.keys() - stamps.keys()
        self._known = {path: entry for path, entry in known.items() if path in stamps}
        try:
            for file, found in self._lint(self.files if changed or gone else [], self.reading.settings):
                self._known[file.path] = stamps[file.path], found
        except UsageError as error:
            self.trouble = str(error)
        return bool(changed or gone or self.reading is not old or self.trouble != before)

    def _survey(self, reading: Reading) -> None:
        self._standing = self._find_standing()
        self.files = self._find(self._standing, reading)
        self.reading = reading

    def _find(self, paths: list[Path], reading: Reading) -> list[File]:
        return discover(paths, reading.settings.configs, reading.settings.root)

    def _find_standing(self) -> list[Path]:
        return [path for path in self.paths if os.path.lexists(path)]

    def _survey_as_before(self) -> None:
        try:
            self._survey(self.reading)
        except UsageError:  # in a new folder, which has no earlier settings
            self.files = [file for file in self.files if os.path.lexists(file.path)]
