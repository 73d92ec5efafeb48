"""Keys that only this user has: whatever is signed with one was made by this user."""

import errno
import os
import stat
from pathlib import Path

_BYTES = 32


def user_key(name: str) -> bytes:
    """A random key, created on first use in a file that only its owner may read.

    The file lies in the user's state folder: not in a project, and not with the caches, which a CI may share. A key that
    somebody else could have read or written is replaced. If two processes create one at the same time, the later wins.

    Raises:
        OSError: there is no place to keep it.
    """
    path = _state() / "ta-lint" / name
    key = _private(path)
    if key is None:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        temporary = path.with_name(f".{name}.{os.urandom(4).hex()}")
        try:
            handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(handle, "wb") as stream:
                stream.write(os.urandom(_BYTES))
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
        key = _private(path)
    if key is None:
        raise PermissionError(errno.EACCES, "others may read or write it", str(path))
    return key


def _state() -> Path:
    """The user's state folder; a relative one is not used, as it may lie in a project."""
    named = os.environ.get("LOCALAPPDATA" if os.name == "nt" else "XDG_STATE_HOME", "")
    place = Path(named if Path(named).is_absolute() else os.path.expanduser("~/.local/state"))  # noqa: PTH111 - never raises
    if not place.is_absolute():
        raise FileNotFoundError(errno.ENOENT, "nobody knows the home folder", str(place))
    return place


def _private(path: Path) -> bytes | None:
    """The key in a file; None if the file is missing, holds no key, or is accessible to other users."""
    try:
        status = path.lstat()
        if not stat.S_ISREG(status.st_mode):
            return None
        if os.name != "nt" and (status.st_uid != os.geteuid() or status.st_mode & 0o077):
            return None
        key = path.read_bytes()
    except FileNotFoundError:
        return None
    return key if len(key) == _BYTES else None
