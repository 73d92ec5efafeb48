"""Numbers as text: rows `step,key,value`, which every table program reads, and where keys may appear later."""

import csv
import io
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO

from ta_lint.core.errors import UsageError, oneline
from ta_runtime.monitor.sinks.files import of_rank

_HEADER = b"step,key,value\n"
_TAIL = 1 << 20  # bytes at the end of a file that are searched for the end of its last line


class CSV:
    """A file of rows `step,key,value`. A step is written at once and whole lines only, so a killed job loses none.

    A file that is there is continued, as a resumed job does: of two rows of the same step and key the later holds.
    Numbers are written such that they read back as they were; those that are none are `nan`, `inf` and `-inf`.

    Raises:
        UsageError: the file cannot be written to, or is another.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = of_rank(path)
        try:
            self._file = self.path.open("ab+", buffering=0)
            _mend(self._file, self.path)
        except OSError as error:
            raise UsageError(f"{self.path}: {error.strerror or oneline(error)}") from error

    def write(self, step: int, values: Mapping[str, float]) -> None:
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows((step, key, value) for key, value in values.items())
        _append(self._file, text.getvalue().encode(errors="backslashreplace"))

    def flush(self) -> None:
        """Nothing waits."""

    def close(self) -> None:
        self._file.close()

    def __str__(self) -> str:
        return f"CSV {self.path}"


def _mend(file: BinaryIO, path: Path) -> None:
    """Write the header, or cut off the line that a killed writer began."""
    file.seek(0)
    start = file.read(len(_HEADER))
    if not start:
        _append(file, _HEADER)
    elif start != _HEADER:
        raise UsageError(
            f"{path}: not a file of this sink: it does not begin with `step,key,value`; name another"
        )
    size = file.seek(0, io.SEEK_END)
    tail = file.seek(max(0, size - _TAIL))
    file.truncate(tail + file.read().rfind(b"\n") + 1)


def _append(file: BinaryIO, data: bytes) -> None:
    """Append all of it or, on a full disk or Ctrl-C, nothing."""
    end = file.seek(0, io.SEEK_END)
    try:
        while data:  # a raw file may take less than it is given
            data = data[file.write(data) :]
    except BaseException:
        file.truncate(end)
        raise
