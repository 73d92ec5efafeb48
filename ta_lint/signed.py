"""Files of the cache: replaced whole, and believed only where this user has written them.

A cloned repository may contain forged ones, so that each is signed, with its name, by a key that only this user has.
"""

import contextlib
import os
from hashlib import blake2b
from hmac import compare_digest
from pathlib import Path

from ta_lint.core.digest import digest_of
from ta_lint.core.errors import Unreadable
from ta_lint.core.reading import read

MAGIC = b"ta-lint cache "
LARGEST = 64 << 20  # bytes
_HEAD = MAGIC + b"4 "
_LEAST_KEY = 32  # characters of TA_CACHE_KEY: the cache lets an attacker test guesses


class SignedFile:
    """A file with one line that signs the others."""

    def __init__(self, path: Path, key: bytes) -> None:
        self.path = path
        self._key = key

    def read(self) -> bytes | None:
        """What was written; None if it was not this user who did, for a file of this name."""
        try:
            head, _, body = read(self.path, LARGEST).partition(b"\n")
        except Unreadable:
            return None
        return body if compare_digest(head, self.head(body)) else None

    def write(self, body: bytes) -> None:
        """Replace the file without fsync: after a power cut, a damaged file does not match its signature.

        Raises:
            OSError: it cannot be written; it is then unchanged.
        """
        temporary = self.path.with_name(f".{self.path.name}.{os.urandom(4).hex()}")
        try:
            temporary.write_bytes(self.head(body) + b"\n" + body)
            temporary.replace(self.path)
        except BaseException:
            with contextlib.suppress(OSError):
                temporary.unlink()
            raise

    def head(self, body: bytes) -> bytes:
        """The first line; it also signs the name, so that a file for other settings does not pass."""
        return _HEAD + digest_of(self.path.name.encode() + b"\n" + body, self._key).encode()


def signing_key() -> bytes:
    """The key of this user, or the one in TA_CACHE_KEY, which a CI keeps as a secret for its jobs.

    Raises:
        OSError: there is no place to keep a key.
        UsageError: TA_CACHE_KEY is too short for a secret.
    """
    given = os.environ.get("TA_CACHE_KEY")
    if not given:
        from ta_lint.core.keys import user_key

        return user_key("cache.key")
    if len(given) < _LEAST_KEY:
        from ta_lint.core.errors import UsageError

        raise UsageError(
            f"TA_CACHE_KEY: has fewer than {_LEAST_KEY} characters; make one with `openssl rand -hex 32`"
        )
    return blake2b(os.fsencode(given), digest_size=32).digest()
