"""Writes files atomically and as valid text, and shows their paths the way users type them."""

import os
from pathlib import Path

from ta_lint.core.errors import UsageError, oneline

TYPE_CHECKING = False  # `typing` takes longer to load than this module
if TYPE_CHECKING:
    from typing import BinaryIO

Stamp = tuple[int, ...] | None

_SUFFIX = ".ta-new"  # of a file that is being written
_LEFT_OVER = 3600  # seconds after which nobody writes it any more

STDIN = Path("-")
"""`-` on a command line. Compare with `is`: `./-` is a file of that name, and equal to it."""


def write_atomically(path: Path, content: str | bytes, *, private: bool = False) -> None:
    """Write bytes, or text as UTF-8, to a temporary file and move it to `path`.

    A full disk, Ctrl-C or a kill leaves the old file unchanged, and no temporary one.

    An existing file keeps its owner and its mode; a new one gets the umask's, or if `private` only its owner can read it.
    A link keeps its target. A file that has other names too, or an owner that it would lose, is written in its place, as is
    a device or a pipe.

    Raises:
        UsageError: the folder is missing or not writable.
    """
    data = content.encode("utf-8") if isinstance(content, str) else content
    try:
        if path.exists() and not path.is_file() and not path.is_dir():
            path.write_bytes(data)
            return
        target = path.resolve()
        before = target.stat() if target.exists() else None
        alone = before is None or before.st_nlink == 1 or target.is_dir()
        if not (alone and _replaced(target, data, before, private=private)):
            _overwrite(target, data)
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror or oneline(error)}") from error


def _replaced(target: Path, data: bytes, before: os.stat_result | None, *, private: bool) -> bool:
    """Put a new file in the place of one; False if its owner would be another."""
    _clear(target)
    temporary = ""
    try:
        descriptor = _nameless(target.parent)
        if descriptor is None:
            descriptor, temporary = _named(target)
        with os.fdopen(descriptor, "wb") as stream:
            if before is not None:
                if not _owned_as(stream.fileno(), before):
                    return False
                _set_mode(stream.fileno(), before.st_mode & 0o7777)
            elif not private:  # until here only its owner may read it
                _set_mode(stream.fileno(), 0o666 & ~_umask())
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
            if not temporary:
                name = _temporary_name(target)
                # without a folder given, Python would link the link in `/proc`
                os.link(f"/proc/self/fd/{stream.fileno()}", name, src_dir_fd=stream.fileno())
                temporary = name
        Path(temporary).replace(target)
        temporary = ""
        return True
    finally:
        if temporary:
            Path(temporary).unlink(missing_ok=True)


def _named(target: Path) -> tuple[int, str]:
    """A new file beside another, and its path."""
    name = _temporary_name(target)
    return os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600), name


def _temporary_name(target: Path) -> str:
    return str(target.with_name(f".{target.name}.{os.urandom(4).hex()}{_SUFFIX}"))


def _set_mode(descriptor: int, mode: int) -> None:
    if hasattr(os, "fchmod"):  # not on Windows, where a new file has the rights of its folder
        os.fchmod(descriptor, mode)


def _nameless(folder: Path) -> int | None:
    """A new file without a name, which goes with this process; None where there is no such thing."""
    if not (hasattr(os, "O_TMPFILE") and Path("/proc/self/fd").is_dir()):
        return None
    try:
        return os.open(folder, os.O_TMPFILE | os.O_WRONLY, 0o600)
    except OSError:  # a file system without them; others fail again where the file has a name
        return None


def _owned_as(descriptor: int, before: os.stat_result) -> bool:
    """Whether a new file has the owner and the group of another, or could be given to them."""
    status = os.fstat(descriptor)
    if (status.st_uid, status.st_gid) == (before.st_uid, before.st_gid) or not hasattr(os, "fchown"):
        return True
    try:
        os.fchown(descriptor, before.st_uid, before.st_gid)
    except OSError:
        return False
    return True


def _overwrite(target: Path, data: bytes) -> None:
    """Write a file in its place. What it takes on the disk is reserved before, and if it fails the old content comes back."""
    with target.open("r+b") as stream:
        old = stream.read()
        try:
            if len(data) > len(old) and hasattr(os, "posix_fallocate"):
                os.posix_fallocate(stream.fileno(), 0, len(data))
            _put(stream, data)
        except BaseException:
            _put(stream, old)
            raise


def _put(stream: "BinaryIO", data: bytes) -> None:
    stream.seek(0)
    stream.write(data)
    stream.flush()
    stream.truncate(len(data))
    os.fsync(stream.fileno())


def _clear(target: Path) -> None:
    """Remove what a killed process has left of writing this file."""
    import contextlib
    import glob
    import time

    oldest = time.time() - _LEFT_OVER
    for path in target.parent.glob(f".{glob.escape(target.name)}.*{_SUFFIX}"):
        with contextlib.suppress(OSError):
            if path.lstat().st_mtime < oldest:
                path.unlink()


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
