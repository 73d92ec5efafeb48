"""Numbers into one HDF5 file that can be read while it grows, and after its writer was killed.

    step, key, value    a row for each number: int64, int32 (which of `keys`), float64
    keys                what the numbers are of, as text in bytes: a JSON string on each line
    whole               how many rows, and how many bytes of `keys`, are written to the end

HDF5 keeps a file readable while it grows ("single writer, multiple readers") if no object is added to it, and no text
of varying length: therefore not a dataset for each key, and `keys` as bytes.
"""

import json
import os
import sys
import tempfile
from array import array
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ta_lint.core.errors import UsageError, oneline
from ta_runtime.extras import needs
from ta_runtime.faults import Shield
from ta_runtime.monitor.sinks.files import of_rank

if TYPE_CHECKING:
    import h5py
    import numpy as np

_COLUMNS = {"step": "i8", "key": "i4", "value": "f8", "keys": "u1"}
_WHOLE = "whole"
_CHUNK = 1 << 14  # elements
_GROWTH = (
    1 << 20
)  # bytes by which a file may grow for a step without numbers: a chunk of each column, and their index


class HDF5:
    """A file that grows with each step, which is then in the hands of the system: a killed job loses none.

    `StorageManager.load_hdf5` reads it, at any time; `h5py.File(path, swmr=True)` does before it is closed. A file that
    was closed is continued: of two numbers of the same step and key the later holds.

    Raises:
        UsageError: the file cannot be written to, or is another, or was not closed; h5py is missing.
    """

    def __init__(self, path: str | Path) -> None:
        with needs("h5py", "hdf5"):
            import h5py
        self.path = of_rank(path)
        try:
            self._file = h5py.File(self.path, "a", libver="latest", locking="best-effort")
        except OSError as error:
            text = oneline(error)
            if "already open" in text:
                text = "its writer was killed, or still writes: `load_hdf5` reads it; name another"
            raise UsageError(f"{self.path}: {text}") from error
        self._reserved = 0
        try:
            self._reserve(_GROWTH)
            if not len(self._file):
                _create(self._file)
            elif not is_stream(self._file):
                raise UsageError(
                    f"{self.path}: not a file of this sink: it has no {', '.join(_COLUMNS)}; name another"
                )
            self._columns = {name: self._file[name] for name in _COLUMNS}
            self._whole = self._file[_WHOLE]
            self._know_keys()
            self._file.swmr_mode = True
        except OSError as error:
            self.close()
            raise UsageError(f"{self.path}: {error.strerror or oneline(error)}") from error
        except BaseException:
            self.close()
            raise

    def write(self, step: int, values: Mapping[str, float]) -> None:
        new = [key for key in values if key not in self._keys]
        text = b"".join(json.dumps(key).encode() + b"\n" for key in new)
        self._reserve(_GROWTH + 2 * len(text) + 40 * len(values))
        rows, size = self._whole[:].tolist()
        try:
            self._put("keys", size, text)
            self._keys.update((key, number) for number, key in enumerate(new, len(self._keys)))
            self._put("step", rows, array("q", [step]) * len(values))
            self._put("key", rows, array("i", [self._keys[key] for key in values]))
            self._put("value", rows, array("d", values.values()))
            self._file.flush()
            self._whole[:] = rows + len(values), size + len(text)
            self._file.flush()
        except Exception:
            self._abandon()
            raise
        except BaseException:  # Ctrl-C, after which one may go on
            self._know_keys()
            raise

    def flush(self) -> None:
        """Nothing waits."""

    def close(self) -> None:
        if self._file:
            if self._reserved:
                os.ftruncate(self._file.id.get_vfd_handle(), self._file.id.get_filesize())
            self._file.close()

    def __str__(self) -> str:
        return f"HDF5 {self.path}"

    def _know_keys(self) -> None:
        self._keys = {key: number for number, key in enumerate(keys_of(self._file))}

    def _put(self, name: str, at: int, data: "bytes | array[Any]") -> None:
        import numpy as np

        column, numbers = self._columns[name], np.frombuffer(data, _COLUMNS[name])
        end = at + len(numbers)
        column.resize((max(len(column), end),))  # an interrupted step may have made it longer
        column[at:end] = numbers

    def _reserve(self, size: int) -> None:
        """Have room on the disk, or raise: a write that fails leaves HDF5 with what it can never close."""
        used = self._file.id.get_filesize()
        if used + size > self._reserved and sys.platform == "linux":
            os.posix_fallocate(self._file.id.get_vfd_handle(), used, size + _GROWTH)
            self._reserved = used + size + _GROWTH

    def _abandon(self) -> None:
        """Close the file as it is on the disk. What HDF5 still holds goes nowhere: it ends the process otherwise."""
        self._reserved = 0
        with (
            tempfile.TemporaryFile()
            if sys.platform != "linux"
            else os.fdopen(os.memfd_create("nowhere")) as nowhere
        ):
            os.dup2(nowhere.fileno(), self._file.id.get_vfd_handle())
        with Shield():
            self._file.close()


def is_stream(file: "h5py.File") -> bool:
    """Whether a file is of this kind."""
    return set(file) == {*_COLUMNS, _WHOLE}


def keys_of(file: "h5py.File") -> list[str]:
    return [json.loads(line) for line in file["keys"][: file[_WHOLE][1]].tobytes().splitlines()]


def series(file: "h5py.File", wanted: str | None = None) -> "Iterator[tuple[str, np.ndarray, np.ndarray]]":
    """Of each key, or of one, its steps and values."""
    import numpy as np

    rows = file[_WHOLE][0]
    numbers, steps, values = (file[name][:rows] for name in ("key", "step", "value"))
    order = np.argsort(numbers, kind="stable")
    keys = keys_of(file)
    bounds = np.searchsorted(numbers[order], np.arange(len(keys) + 1))
    for number, key in enumerate(keys):
        if wanted in (None, key):
            chosen = order[bounds[number] : bounds[number + 1]]
            yield key, steps[chosen], values[chosen]


def _create(file: "h5py.File") -> None:
    for name, dtype in _COLUMNS.items():
        file.create_dataset(name, (0,), dtype, maxshape=(None,), chunks=(_CHUNK,))
    file.create_dataset(_WHOLE, data=[0, 0], dtype="i8")
