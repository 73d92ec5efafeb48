"""A failing input made small: as many lines, words and characters taken out as it can lose and still fail alike."""

import re
from collections.abc import Callable

_LINES = re.compile(rb"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
_WORDS = re.compile(rb"\w+|\s+|[^\w\s]")

Fails = Callable[[bytes], bool]


def shrunk(data: bytes, fails: Fails, attempts: int = 200) -> bytes:
    """The smallest part of `data` found that `fails`, within this many attempts."""
    left = [attempts]
    for divide in (_LINES.findall, _WORDS.findall, lambda text: [bytes([byte]) for byte in text]):
        if len(parts := divide(data)) <= 20_000:
            data = b"".join(_fewest(parts, fails, left))
    return data


def _fewest(parts: list[bytes], fails: Fails, left: list[int]) -> list[bytes]:
    """Takes out runs of parts, long ones first, for as long as one can go."""
    size = max(1, len(parts) // 2)
    while True:
        start, went = 0, False
        while start < len(parts):
            fewer = parts[:start] + parts[start + size :]
            if left[0] <= 0:
                return parts
            left[0] -= 1
            if fails(b"".join(fewer)):
                parts, went = fewer, True
            else:
                start += size
        if size == 1 and not went:
            return parts
        size = size if went and size > 1 and len(parts) > size else max(1, size // 2)
