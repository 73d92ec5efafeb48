"""Metrics in a file of HDF5, in the layout of torch-module-monitor: a group for each key, with its steps and values.

    activation/0/mean/keys      int64: the steps
    activation/0/mean/values    float64

A part of a key that HDF5 cannot have as a name, as it is empty, `.`, `keys` or `values` or holds a NUL, stands there as
`%` and the hexadecimal form of its UTF-8.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ta_lint.core.errors import UsageError, oneline
from ta_lint.core.files import write_atomically
from ta_runtime.extras import needs
from ta_runtime.monitor.sinks.hdf5 import is_stream, keys_of, series

if TYPE_CHECKING:
    import h5py
    import numpy as np

    Series = tuple[str, np.ndarray, np.ndarray]

_WRITER = "ta"  # the attribute that says who wrote a file, and so whether `%` means what is said above
_GROWTH = 1 << 24  # bytes by which a file in memory grows
_STEPS, _VALUES = "keys", "values"


def save(path: Path, series: "Iterable[Series]") -> None:
    """Write the steps and values of each key; the file is there when all of it is.

    Raises:
        UsageError: it cannot be written; h5py is missing.
    """
    with needs("h5py", "hdf5"):
        import h5py
    # in memory first: HDF5 cannot close a file that it could not write, and complains of it again and again
    with h5py.File(path.name, "w", driver="core", block_size=_GROWTH, backing_store=False) as file:
        file.attrs[_WRITER] = 1
        for key, steps, values in series:
            group = file.create_group(_place(key))
            group[_STEPS] = steps
            group[_VALUES] = values
        file.flush()
        image: bytes = file.id.get_file_image()
    write_atomically(path, image)


def names(path: Path) -> list[str]:
    """The keys of a file, in order.

    Raises:
        UsageError: it cannot be read; h5py is missing.
    """
    with _opened(path) as file:
        return sorted(keys_of(file) if is_stream(file) else (key for key, _ in _groups(file)))


def load(path: Path, wanted: str | None = None) -> "Iterator[Series]":
    """The steps and values of each key, or of one; also from a file of `sinks.HDF5`, and of torch-module-monitor.

    Raises:
        UsageError: it cannot be read; h5py is missing.
    """
    with _opened(path) as file:
        if is_stream(file):
            yield from series(file, wanted)
            return
        for key, group in _groups(file):
            if wanted in (None, key):
                yield key, group[_STEPS][()].astype("i8"), group[_VALUES][()]


@contextmanager
def _opened(path: Path) -> "Iterator[h5py.File]":
    with needs("h5py", "hdf5"):
        import h5py
    try:
        try:
            file = h5py.File(path, "r", locking="best-effort")
        except OSError as error:
            if "already open" not in str(error):
                raise
            file = h5py.File(
                path, "r", swmr=True, locking="best-effort"
            )  # its writer still writes, or was killed
    except OSError as error:
        raise UsageError(f"cannot read {path}: {oneline(error)}") from error
    with file:
        yield file


def _groups(file: "h5py.File") -> "Iterator[tuple[str, h5py.Group]]":
    import h5py

    found: list[tuple[str, h5py.Group]] = []

    def visit(place: str, item: object) -> None:
        if isinstance(item, h5py.Group) and _VALUES in item:
            found.append((_key(place) if _WRITER in file.attrs else place, item))

    file.visititems(visit)
    return iter(found)


def _place(key: str) -> str:
    """Where the group of a key stands in a file."""
    return "/".join(map(_name, key.split("/")))


def _name(part: str) -> str:
    text = part.encode("utf-8", "surrogatepass")
    plain = part not in ("", ".", _STEPS, _VALUES) and part[0] != "%" and "\0" not in part
    return part if plain and text.decode("utf-8", "replace") == part else f"%{text.hex()}"


def _key(place: str) -> str:
    """The key whose group stands there."""
    return "/".join(
        bytes.fromhex(name[1:]).decode("utf-8", "surrogatepass") if name[0] == "%" else name
        for name in place.split("/")
    )
