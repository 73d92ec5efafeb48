"""Writes files atomically and as valid text, and shows their paths the way users type them."""

import os
from pathlib import Path

from ta_lint.core.errors import UsageError, oneline

Stamp = tuple[int, ...] | None

STDIN = Path("-")
"""`-` on a command line. Compare with `is`: `./-` is a file of that name, and equal to it."""


def write_atomically(path: Path, content: str | bytes, *, private: bool = False) -> None:
    """Write bytes, or text as UTF-8, to a temporary file beside `path` and move it there.

    A full disk or Ctrl-C leaves the old file unchanged.

    An existing file keeps its mode; a new one gets the umask's, or if `private` only its owner can read it.
    A link keeps its target. A device or a pipe cannot be replaced, so it is written directly.

    Raises:
        UsageError: the folder is missing or not writable.
    """
    import tempfile

    temporary = None
    data = content.encode("utf-8") if isinstance(content, str) else content
    try:
        if path.exists() and not path.is_file() and not path.is_dir():
            path.write_bytes(data)
            return
        target = path.resolve()
        descriptor, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        if target.exists():
            Path(temporary).chmod(target.stat().st_mode & 0o777)
        elif not private:  # `mkstemp` makes it private
            Path(temporary).chmod(0o666 & ~_umask())
        Path(temporary).replace(target)
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror or oneline(error)}") from error
    finally:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)


def encodable(text: str) -> str:
    """The text with lone surrogates, which come from undecodable file names, escaped: JSON readers reject them."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def display(path: Path) -> str:
    """A path as the user would type it here."""
    try:
        return os.path.relpath(path)
    except (ValueError, OSError):  # on another drive, or the working folder is gone
        return str(path)


def is_within(path: Path, *folders: Path) -> bool:
    """Whether a path lies in one of the folders once links are resolved."""
    target = Path(os.path.realpath(path))
    return any(target.is_relative_to(os.path.realpath(folder)) for folder in folders)


def stamp(path: Path) -> Stamp:
    """Changes whenever a file is written, replaced or made readable; None if there is no file."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current
