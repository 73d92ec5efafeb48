"""A digest of data, by which it is known again."""

from _blake2 import blake2b  # `hashlib` loads OpenSSL, which takes longer than a run over a few files


def digest_of(data: bytes, key: bytes = b"") -> str:
    """A digest of data; with a key, a signature."""
    return blake2b(data, digest_size=16, key=key).hexdigest()
