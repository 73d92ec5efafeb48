"""The outlines of a project's files, which outlive a look at the disk, and with a cache the process."""

import os
from collections.abc import Callable

from ta_lint.project.outline import Outline, decoded

FEW = 40  # files are looked at before the index on disk is read: in a small project that would take longer


class Index:
    """The outlines that were made of the files of one project.

    One is never known to be that of the file as it is now; who asks compares its stamp or digest.
    """

    def __init__(self, root: str, kept: Callable[[], dict[bytes, bytes]] | None = None) -> None:
        """`kept` reads from disk what earlier runs have added, as `news` gives it."""
        self._prefix = os.path.join(root, "")
        self._read = kept
        self._lines: dict[bytes, bytes] = {}
        self._known: dict[str, Outline] = {}
        self._fresh: set[str] = set()

    def find(self, path: str) -> Outline | None:
        """What is known of a file, if anything."""
        found = self._known.get(path)
        if found is None and len(self._known) >= FEW:
            self._open()
        if found is None and self._lines:
            line = self._lines.get(self._key(path))
            found = decoded(line) if line is not None else None
            if found is not None:
                self._known[path] = found
        return found

    def keep(self, path: str, outline: Outline) -> None:
        """Take a new outline of a file, or one that has learned something."""
        self._known[path] = outline
        self._fresh.add(path)

    def news(self) -> dict[bytes, bytes]:
        """What was learned since it was told last, as lines by name; nothing while few files were looked at."""
        if len(self._known) < FEW:
            return {}
        self._open()
        told = {
            self._key(path): self._known[path].encoded() for path in self._fresh if self._known[path].digest
        }
        self._fresh.clear()
        return told

    def _open(self) -> None:
        """Read what is on disk, if that was not done. What was learned before that and is there as well is no news."""
        if self._read is None:
            return
        self._lines, self._read = self._read(), None
        for path in [*self._fresh]:
            line, known = self._lines.get(self._key(path)), self._known[path]
            kept = decoded(line) if line is not None else None
            if kept is not None and (kept.digest, kept.stamp) == (known.digest, known.stamp):
                if known.answers.keys() <= kept.answers.keys():
                    self._fresh.discard(path)
                known.answers.update(kept.answers)

    def _key(self, path: str) -> bytes:
        """The name of a file, so that a project can move with its cache; the path of one that lies elsewhere."""
        import json

        return json.dumps(path.removeprefix(self._prefix)).encode()
