"""Files as users meet them: written so that a reader never sees half of one, nor bytes that are no text; and named."""

import os
from pathlib import Path

from ta_lint.core.errors import UsageError, oneline

Stamp = tuple[int, ...] | None

STDIN = Path("-")
"""What `-` means on a command line. It is this object: `./-` is a file of that name, and equal to it."""


def write_atomically(path: Path, content: str | bytes, *, private: bool = False) -> None:
    """Write bytes, or text as UTF-8, beside `path` and move them there.

    A full disk or Ctrl-C leaves the old file as it was.

    A file that was there keeps its mode; a new one can be read by its owner alone if it is `private`, else as the umask says.
    A link keeps pointing where it does. A device or a pipe cannot be replaced, so it is written to as it is.

    Raises:
        UsageError: the folder is missing or cannot be written.
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
        elif not private:  # as `mkstemp` makes it
            Path(temporary).chmod(0o666 & ~_umask())
        Path(temporary).replace(target)
    except OSError as error:
        raise UsageError(f"cannot write {display(path)}: {error.strerror or oneline(error)}") from error
    finally:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)


def encodable(text: str) -> str:
    """The text with lone surrogates, from undecodable file names, spelled out: JSON readers reject them."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def display(path: Path) -> str:
    """A path as the user would type it here."""
    try:
        return os.path.relpath(path)
    except (ValueError, OSError):  # on another drive, or the working folder is gone
        return str(path)


def is_within(path: Path, *folders: Path) -> bool:
    """Whether a path lies in one of the folders, wherever links lead."""
    target = Path(os.path.realpath(path))
    return any(target.is_relative_to(os.path.realpath(folder)) for folder in folders)


def stamp(path: Path) -> Stamp:
    """What differs once a file was written, replaced or made readable; None where there is none."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current
