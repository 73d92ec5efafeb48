"""Linting again what changes, while it changes: `ta-lint check --watch`."""

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import watchfiles

from ta_lint.core.baseline import Entry
from ta_lint.core.config import Configs
from ta_lint.core.errors import UsageError
from ta_lint.core.files import Stamp, stamp
from ta_lint.core.finding import Finding
from ta_lint.discovery import SUFFIXES, discover
from ta_lint.file import File
from ta_lint.runner import Result

_SETTINGS = ("pyproject.toml", ".gitignore")
_POLL_MS = 100  # how often files of settings outside the watched folders are looked at


@dataclass(frozen=True)
class Settings:
    """What holds for the watched files, as it was read at one time."""

    configs: Configs
    root: Path
    accepted: list[Entry]
    """The entries of the baseline."""
    sources: list[Path]
    """The files that the command line or the settings name, to read settings from."""


class Tree:
    """The files that are watched, and what was found in each; `trouble` says why newer settings do not hold.

    Raises:
        UsageError: the settings cannot be read, or a path does not exist. Later neither ends the watching.
    """

    def __init__(
        self,
        paths: list[Path],
        read: Callable[[], Settings],
        lint: Callable[[list[File]], Iterable[Result]],
    ) -> None:
        self.paths = paths
        self.settings = read()
        self.files = discover(paths, self.settings.configs, self.settings.root)
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
        """Whether a named path has come or gone since the files were last looked for."""
        return self._standing != self._find_standing()

    def refresh(self, reread: bool = False) -> bool:
        """Lint the files that have changed, all of them if the settings have; returns whether anything is new.

        `reread` asks for settings to be read again. Those that are wrong do not hold: the old ones stay.
        """
        before, known, old = self.trouble, self._known, self.settings
        self.trouble = ""
        try:
            self._survey(self._read() if reread or before else old)
        except UsageError as error:
            self.trouble = str(error)
            self._survey_as_before()
        stamps = {file.path: stamp(file.path) for file in self.files}
        if self.settings is not old:
            known = {}
        changed = [
            file for file in self.files if file.path not in known or known[file.path][0] != stamps[file.path]
        ]
        gone = self._known.keys() - stamps.keys()
        self._known = {path: entry for path, entry in known.items() if path in stamps}
        try:
            self._known.update((file.path, (stamps[file.path], found)) for file, found in self._lint(changed))
        except UsageError as error:
            self.trouble = str(error)
        return bool(changed or gone or self.settings is not old or self.trouble != before)

    def _survey(self, settings: Settings) -> None:
        self._standing = self._find_standing()
        self.files = discover(self._standing, settings.configs, settings.root)
        self.settings = settings

    def _find_standing(self) -> list[Path]:
        return [path for path in self.paths if os.path.lexists(path)]

    def _survey_as_before(self) -> None:
        try:
            self._survey(self.settings)
        except UsageError:  # of a new folder, which has no settings from before
            self.files = [file for file in self.files if os.path.lexists(file.path)]


def watch(tree: Tree, show: Callable[[], None]) -> None:
    """Lint all files, and then, until Ctrl-C, what changes; `show` is called whenever there is something new.

    Raises:
        UsageError: the operating system does not let so many folders be watched.
        KeyboardInterrupt: by the user, who has no other way to end it.
    """
    changes = _changes(tree)
    next(changes)  # from here on no change is missed
    tree.refresh()
    show()
    for reread in changes:
        if tree.refresh(reread):
            show()


def _changes(tree: Tree) -> Iterator[bool]:
    """Whenever a file may have changed that counts: whether settings may have. The first says that it watches.

    What is watched are folders, as an editor may put a new file in the place of the old one. The settings that lie
    above them, which also hold, are looked at from time to time.
    """
    absolute = [Path(os.path.abspath(path)) for path in tree.paths]  # noqa: PTH100 - keeps symbolic links
    folders = {path if path.is_dir() else path.parent for path in absolute}
    recursive = any(map(Path.is_dir, absolute))
    above = {folder for path in (*absolute, Path.cwd() / "_") for folder in path.parents}
    inherited = sorted(folder / name for folder in above for name in _SETTINGS)

    def stamps() -> dict[Path, Stamp]:
        return {source: stamp(source) for source in (*inherited, *tree.settings.sources)}

    def standing() -> set[str]:
        return {str(folder) for folder in folders if folder.is_dir()}

    known = stamps()
    while True:
        watched = standing()
        begun = False
        try:
            for changes in watchfiles.watch(
                *watched,
                watch_filter=None,
                rust_timeout=_POLL_MS,
                yield_on_timeout=True,
                recursive=recursive,
                ignore_permission_denied=True,
            ):
                before, known = known, stamps()
                reread = any(before.get(source, now) != now for source, now in known.items())
                reread = reread or any(Path(path).name in _SETTINGS for _, path in changes)
                counts = any(_counts(path) for _, path in changes) or bool(tree.trouble and changes)
                # A path that is not there cannot be watched: what came and went again gave no event.
                if reread or counts or not begun or tree.moved:
                    yield reread
                begun = True
                lost = any(
                    change is watchfiles.Change.deleted and path in watched for change, path in changes
                )
                if lost or standing() != watched:
                    break
        except FileNotFoundError:  # a folder that went just now
            continue
        except OSError as error:
            remedy = "raise the limit, name fewer folders, or set WATCHFILES_FORCE_POLLING=true"
            raise UsageError(f"--watch: {error}; {remedy}") from error


def _counts(path: str) -> bool:
    """Whether a change of this path may change what is linted: a Python file, settings, perhaps a folder."""
    if f"{os.sep}.git{os.sep}" in path:
        return False
    changed = Path(path)
    return changed.suffix in ("", *SUFFIXES) or changed.name in _SETTINGS or changed.is_dir()
