"""The changes on disk that `--watch` reacts to."""

import os
from collections.abc import Iterator
from pathlib import Path

from ta_lint.commands.check.watched_files import WatchedFiles
from ta_lint.core.errors import UsageError
from ta_lint.core.files import Stamp, stamp
from ta_lint.core.settings import FILES
from ta_lint.discovery import SUFFIXES

try:
    import watchfiles
except ModuleNotFoundError as error:
    if error.name != "watchfiles":
        raise
    raise UsageError("--watch needs watchfiles: pip install 'ta-lint[watch]'") from error

_SETTINGS = (*FILES, ".gitignore")
_POLL_MS = 100  # polling interval of settings files outside the watched folders


def changes(files: WatchedFiles) -> Iterator[bool]:
    """Yield when a linted file may have changed: whether settings may have too. The first item says that watching began.

    Folders are watched rather than files, as editors may replace a file. Settings in the folders above apply too, and
    are polled.

    Raises:
        UsageError: the operating system does not allow watching so many folders.
    """
    absolute = [Path(os.path.abspath(path)) for path in files.paths]  # noqa: PTH100 - keeps symbolic links
    folders = {path if path.is_dir() else path.parent for path in absolute}
    recursive = any(map(Path.is_dir, absolute))
    above = {folder for path in (*absolute, Path.cwd() / "_") for folder in path.parents}
    inherited = sorted(folder / name for folder in above for name in _SETTINGS)

    def stamps() -> dict[Path, Stamp]:
        return {source: stamp(source) for source in (*inherited, *files.reading.sources)}

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
                counts = any(_counts(path) for _, path in changes) or bool(files.trouble and changes)
                # A missing path cannot be watched, so there is no event when it appears.
                if reread or counts or not begun or files.moved:
                    yield reread
                begun = True
                lost = any(
                    change is watchfiles.Change.deleted and path in watched for change, path in changes
                )
                if lost or standing() != watched:
                    break
        except FileNotFoundError:  # a folder was just removed
            continue
        except OSError as error:
            remedy = "raise the limit, name fewer folders, or set WATCHFILES_FORCE_POLLING=true"
            raise UsageError(f"--watch: {error}; {remedy}") from error


def _counts(path: str) -> bool:
    """Whether a change of this path may affect linting: a Python file, settings, or possibly a folder."""
    if f"{os.sep}.git{os.sep}" in path:
        return False
    changed = Path(path)
    return changed.suffix in ("", *SUFFIXES) or changed.name in _SETTINGS or changed.is_dir()
