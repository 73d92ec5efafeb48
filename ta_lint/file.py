"""A file to lint."""

import os
from typing import TYPE_CHECKING, NamedTuple

from ta_lint.core import libraries
from ta_lint.core.letters import searchable

if TYPE_CHECKING:
    from pathlib import Path

    from ta_lint.core.config import Config


class File(NamedTuple):
    """A file to lint: where it is, how findings name it (`core.finding.Site.path`), and what holds for it."""

    location: "str | Path"
    """A string or a `Path`, as discovered; `path` converts it on demand, as most files never need one."""
    name: str
    config: "Config"
    given: bytes | None = None
    """What it holds, where that is not on disk."""
    gated: bool = True
    """Whether only those checks look at it that its text and its skeleton call for. The findings are the same."""

    @property
    def path(self) -> "Path":
        from pathlib import Path

        return Path(self.location)

    @property
    def size(self) -> int:
        """In bytes; 0 where that is unknown."""
        if self.given is not None:
            return len(self.given)
        try:
            return os.stat(self.location).st_size
        except OSError:
            return 0


_FEW = 20


def may_hold_findings(files: list[File]) -> bool:
    """Whether there may be a finding in files: True for many files, which are not read for the answer.

    The most frequent runs, of an editor or a commit hook over files that are not ours (`core.libraries`), end here and
    load nothing that looks closer. Every file that `engine.examine` looks at has one of these words.
    """
    return len(files) > _FEW or any(map(_may_hold_a_finding, files))


def _may_hold_a_finding(file: File) -> bool:
    if not file.gated or file.given is not None:
        return True
    try:
        if not os.path.isfile(file.location):  # reading a pipe would wait for ever
            return True
        with open(file.location, "rb") as stream:
            data = stream.read()
    except OSError:
        return True
    text = searchable(data)
    is_ours = libraries.may_be_ours if file.name.endswith(".ipynb") else libraries.is_ours
    return is_ours(text) or b"\0" in data or b"noqa" in text.lower()
