"""The code that is linted: copies of corpora, in a folder that belongs to no project, and parts of them."""

import random
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path

from corpus import corpora, sources

TIMM, TRANSFORMERS = "timm", "transformers"

_TRAINS = (b".backward(", b"optimizer.step(", b"zero_grad(")
_SEED = 7


@dataclass(frozen=True)
class Size:
    """How much code there is, and how much of it is in files that mention torch."""

    files: int
    lines: int
    torch_files: int
    torch_lines: int


def copied(name: str, scratch: Path) -> Path:
    """A copy of a corpus.

    Raises:
        Missing: it cannot be had.
    """
    folder = scratch / name
    shutil.copytree(corpora([name])[name], folder)
    return folder


def size(folder: Path) -> Size:
    """Count a tree, which also brings it into the file cache for every command alike."""
    texts = [path.read_bytes() for path in sources(folder)]
    of_torch = [text for text in texts if b"torch" in text]
    return Size(len(texts), sum(map(lines, texts)), len(of_torch), sum(map(lines, of_torch)))


class Edits:
    """Someone who works on the training code of a tree: one file after another gets one more line."""

    def __init__(self, folder: Path) -> None:
        paths = [path for path in sources(folder) if any(sign in path.read_bytes() for sign in _TRAINS)]
        random.Random(_SEED).shuffle(paths)
        self._before = {path: path.read_bytes() for path in paths}
        self._next: Iterator[Path] = cycle(paths)
        self._count = 0

    def edit(self) -> None:
        """Change the next file."""
        path = next(self._next)
        self._count += 1
        path.write_bytes(self._before[path] + f"# edited {self._count}\n".encode())

    def undo(self) -> None:
        """Have every file as it was."""
        for path, text in self._before.items():
            if path.read_bytes() != text:
                path.write_bytes(text)


def lines(text: bytes) -> int:
    """How many lines a file has, as `wc` counts them."""
    return text.count(b"\n")
