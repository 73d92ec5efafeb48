"""A file to lint."""

import os
from typing import TYPE_CHECKING, NamedTuple

from ta_lint.core import libraries
from ta_lint.core.letters import searchable

if TYPE_CHECKING:
    from pathlib import Path

    from ta_lint.core.config import Config


class File(NamedTuple):
    """A file to lint: its location, its name in findings (`core.finding.Site.path`), and its settings."""

    location: "str | Path"
    """A string or a `Path`, as discovered; `path` converts it on demand, which most files never need."""
    name: str
    config: "Config"
    given: bytes | None = None
    """The content if it does not come from disk."""
    gated: bool = True
    """Whether a check runs only if the file contains its keywords. The findings are the same either way."""

    @property
    def path(self) -> "Path":
        from pathlib import Path

        return Path(self.location)

    @property
    def size(self) -> int:
        """The size in bytes; 0 if unknown."""
        if self.given is not None:
            return len(self.given)
        try:
            return os.stat(self.location).st_size
        except OSError:
            return 0


_FEW = 20


def may_hold_findings(files: list[File]) -> bool:
    """Whether the files may have findings; True for many files, without reading them.

    The most frequent runs, by an editor or a commit hook on files that do not use torch (`core.libraries`), end here
    without loading the engine. `engine.examine` reports nothing for a file without these words.
    """
    return len(files) > _FEW or any(map(_may_hold_a_finding, files))


def _may_hold_a_finding(file: File) -> bool:
    if not file.gated or file.given is not None:
        return True
    try:
        if not os.path.isfile(file.location):  # reading a pipe could block forever
            return True
        with open(file.location, "rb") as stream:
            data = stream.read()
    except OSError:
        return True
    text = searchable(data)
    is_ours = libraries.may_be_ours if file.name.endswith(".ipynb") else libraries.is_ours
    return is_ours(text) or b"\0" in data or b"noqa" in text.lower()
