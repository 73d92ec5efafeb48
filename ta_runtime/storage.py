"""Where the files of a run lie: in a folder of this machine, or wherever fsspec leads, as in `s3://bucket/runs/1`."""

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, TypeAlias

from ta_lint.core.errors import UsageError, oneline
from ta_lint.core.files import display, write_atomically
from ta_runtime.extras import needs
from ta_runtime.faults import keep

PRIVATE, PRIVATE_FOLDER = 0o600, 0o700
"""The modes of what a run writes: its environment, its code and its data are nobody else's business."""

_LOCAL = ("file", "local")


@dataclass(frozen=True)
class Remote:
    """A place on a file system of fsspec, with what of `pathlib.Path` the folder of a run needs.

    Whatever goes wrong there is an `OSError`, as it is with a `Path`.
    """

    filesystem: Any
    path: str

    def __str__(self) -> str:
        return str(self.filesystem.unstrip_protocol(self.path))

    def __truediv__(self, name: str) -> "Remote":
        return Remote(self.filesystem, f"{self.path.rstrip('/')}/{name}")

    @property
    def name(self) -> str:
        return PurePosixPath(self.path).name

    @property
    def stem(self) -> str:
        return PurePosixPath(self.path).stem

    @property
    def suffix(self) -> str:
        return PurePosixPath(self.path).suffix

    @property
    def parent(self) -> "Remote":
        return Remote(self.filesystem, str(PurePosixPath(self.path).parent))

    def with_name(self, name: str) -> "Remote":
        return self.parent / name

    def absolute(self) -> "Remote":
        return self

    def resolve(self) -> "Remote":
        return self

    def exists(self) -> bool:
        with _failing(self):
            self.filesystem.invalidate_cache()  # others write here as well
            return bool(self.filesystem.exists(self.path))

    def is_dir(self) -> bool:
        with _failing(self):
            self.filesystem.invalidate_cache()
            return bool(self.filesystem.isdir(self.path))

    def iterdir(self) -> "Iterator[Remote]":
        with _failing(self):
            self.filesystem.invalidate_cache()
            names = self.filesystem.ls(self.path, detail=False)
        for name in names:
            yield Remote(self.filesystem, name)

    def read_bytes(self) -> bytes:
        with _failing(self):
            return bytes(self.filesystem.cat_file(self.path))

    def write_bytes(self, data: bytes) -> None:
        with _failing(self):
            if (
                not self.filesystem.async_impl
            ):  # stores of objects have no folders, and s3fs would make a bucket
                self.filesystem.makedirs(self.parent.path, exist_ok=True)
            self.filesystem.pipe_file(self.path, data)

    def unlink(self, missing_ok: bool = False) -> None:
        try:
            with _failing(self):
                self.filesystem.rm_file(self.path)
        except FileNotFoundError:
            if not missing_ok:
                raise


Place: TypeAlias = Path | Remote


def located(location: str | Place) -> Place:
    """The place that a user names by a path or a URL.

    Raises:
        UsageError: fsspec knows no such protocol, or what it needs for it is not installed.
    """
    if isinstance(location, Remote):
        return location
    url = str(location)
    if "://" not in url:
        protocol = location.parts[0] if isinstance(location, Path) and location.parts else ""
        if protocol.endswith(":") and len(protocol) > 2:  # a drive has one letter
            raise UsageError(f"{url}: a Path drops a slash of a URL; write it as text, '{protocol}//...'")
        return Path(location)
    with needs("fsspec", "invariants", url):
        from fsspec.core import url_to_fs
    try:
        filesystem, path = url_to_fs(url)
    except ImportError as error:
        library = getattr(error.__cause__, "name", None)
        remedy = (
            f"there is no {library}; install it by `pip install {library}`" if library else oneline(error)
        )
        raise UsageError(f"{url}: {remedy}") from error
    except Exception as error:
        keep(error)
        raise UsageError(f"{url}: {oneline(error)}; write a folder, or a URL that fsspec knows") from error
    protocols = filesystem.protocol
    if set(_LOCAL) & set([protocols] if isinstance(protocols, str) else protocols):
        return Path(path)
    return Remote(filesystem, path)


def shown(place: Place) -> str:
    """A place as the user would type it here."""
    return display(place) if isinstance(place, Path) else str(place)


def prepare(folder: Place) -> None:
    """Make a folder for a run, which its owner alone can read, and find out whether it can be written to.

    One that is there keeps its mode; what is written into it can be read by its owner alone as well.

    Raises:
        UsageError: it cannot.
    """
    try:
        if isinstance(folder, Remote):
            probe = folder / "probe"
            probe.write_bytes(b"")
            probe.unlink()
        else:
            folder.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
    except FileExistsError as error:
        raise UsageError(f"{shown(folder)}: is a file; name a folder for the run") from error
    except OSError as error:
        raise UsageError(f"{shown(folder)}: {_why(error)}; name another folder for the run") from error
    if isinstance(folder, Path) and not os.access(folder, os.W_OK | os.X_OK):
        raise UsageError(f"{shown(folder)}: no permission to write in it; name another folder for the run")


def make_folders(folder: Path, top: Path) -> None:
    """Make a folder and those that it lies in up to `top`, for the owner alone where there are none.

    Raises:
        OSError: it cannot be done.
    """
    for each in reversed([folder, *folder.parents]):
        if each.is_relative_to(top):
            each.mkdir(mode=PRIVATE_FOLDER, exist_ok=True)


def create(path: Place, text: str) -> None:
    """Write a new file. In a store of objects, two that do so at the same moment do not see each other.

    Raises:
        FileExistsError: there is one.
        OSError: it cannot be written.
    """
    if isinstance(path, Path):
        with open(path, "x", encoding="utf-8", opener=_opened) as stream:
            stream.write(text)
    elif path.exists():
        raise FileExistsError(str(path))
    else:
        path.write_bytes(text.encode())


def write_whole(path: Place, data: bytes) -> None:
    """Write a file that is whole or not there at all: it is moved into place, and an object is put at once.

    Raises:
        OSError: it cannot be written.
    """
    if isinstance(path, Path):
        path.parent.mkdir(mode=PRIVATE_FOLDER, exist_ok=True)
        unfinished = path.with_suffix(".part")
        try:
            with open(unfinished, "wb", opener=_opened) as stream:
                stream.write(data)
            unfinished.replace(path)
        except OSError:
            unfinished.unlink(missing_ok=True)
            raise
    else:
        path.write_bytes(data)


def replace(path: Place, content: str, *, private: bool = False) -> None:
    """Write a text in place of another, which stays as it was if that fails; a new one for its owner alone if `private`.

    Raises:
        UsageError: it fails.
    """
    if isinstance(path, Path):
        write_atomically(path, content, private=private)
        return
    try:
        path.write_bytes(content.encode())
    except OSError as error:
        raise UsageError(f"cannot write {path}: {_why(error)}") from error


def _opened(path: str, flags: int) -> int:
    """As `open` has it, but for the owner alone."""
    return os.open(path, flags, PRIVATE)


@contextlib.contextmanager
def _failing(place: Remote) -> Iterator[None]:
    try:
        yield
    except OSError:
        raise
    except Exception as error:
        keep(error)
        raise OSError(f"{type(error).__name__}: {oneline(error)}") from error


def _why(error: OSError) -> str:
    return error.strerror or oneline(error)
