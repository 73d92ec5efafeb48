"""A digest of data, by which it is known again."""

from _blake2 import blake2b  # `hashlib` loads OpenSSL, which takes longer than a run over a few files


def digest_of(data: bytes) -> str:
    """A digest of data."""
    return blake2b(data, digest_size=16).hexdigest()
