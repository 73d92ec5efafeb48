"""The one place that reads files of users: what a link or a name leads to may never end, or wait for ever."""

import os
import stat
import time

from ta_lint.core.errors import Unreadable, oneline

LARGEST = 256 << 20  # bytes; a notebook with its outputs has some megabytes

# A pipe that has no writer yet is opened at once, and no terminal becomes that of the process.
_AT_ONCE = (
    os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0) | getattr(os, "O_BINARY", 0)
)


def read(path: "str | os.PathLike[str]", most: int | None = None) -> bytes:
    """The bytes of a regular file: as many as its size says, so that a file of `/proc`, which has none, is empty.

    Of a larger file than `most` only the beginning.

    Raises:
        Unreadable: it cannot be opened, with the operating system's reason, is not a regular file, or is too large.
    """
    try:
        _check(os.stat(path), most)  # noqa: PTH116 - opening a device may do something
        descriptor = os.open(path, _AT_ONCE)
        try:
            left = _check(os.fstat(descriptor), most)
            parts = []
            while left and (part := os.read(descriptor, left)):
                parts.append(part)
                left -= len(part)
        finally:
            os.close(descriptor)
        return parts[0] if len(parts) == 1 else b"".join(parts)
    except (OSError, ValueError) as error:  # the latter for a name with a NUL
        reason = error.strerror if isinstance(error, OSError) else None
        raise Unreadable(f"cannot read the file: {reason or oneline(error)}") from error
    except MemoryError as error:
        raise Unreadable("cannot read the file: it does not fit into memory") from error


Stamp = list[int]
"""Changes whenever a file is written, replaced or made readable."""

# How much older than the time of reading a file must be for its timestamp to show the next change: FAT counts in 2 s.
_SETTLED_NS = 2_000_000_000


def read_with_stamp(path: "str | os.PathLike[str]") -> tuple[bytes, Stamp | None]:
    """The bytes of a file, and the stamp that shows, without reading it again, that they are unchanged.

    The stamp is None if the file was written just before: it would not show a change in the same tick of the clock.

    Raises:
        Unreadable: as for `read`.
    """
    now = time.time_ns()
    stamp = stamp_of(path)  # of before, so that it shows a change while reading
    data = read(path)
    settled = stamp is not None and max(stamp[1:3]) < now - _SETTLED_NS
    return data, stamp if settled else None


def stamp_of(path: "str | os.PathLike[str]") -> Stamp | None:
    """The stamp of a file; None if there is none."""
    try:
        status = os.stat(path)  # noqa: PTH116 - for thousands of files
    except (OSError, ValueError):
        return None
    return [status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino, status.st_dev]


def _check(status: os.stat_result, most: int | None) -> int:
    """The number of bytes to read."""
    if not stat.S_ISREG(status.st_mode):
        is_folder = stat.S_ISDIR(status.st_mode)
        raise Unreadable("the folder cannot be listed" if is_folder else "not a regular file")
    if most is not None:
        return min(status.st_size, most)
    if status.st_size > LARGEST:
        raise Unreadable(f"the file has more than {LARGEST >> 20} MB")
    return status.st_size
