"""A file to lint."""

import os
from functools import cache
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from ta_lint.core import libraries
from ta_lint.core.errors import Unreadable
from ta_lint.core.letters import searchable
from ta_lint.core.reading import read
from ta_lint.core.terms import InTests
from ta_lint.project.project import project_of

if TYPE_CHECKING:
    from pathlib import Path

    from ta_lint.core.config import Config

T = TypeVar("T")


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
    def absolute(self) -> str:
        return os.path.abspath(self.location)

    @property
    def size(self) -> int:
        """The size in bytes; 0 if unknown."""
        if self.given is not None:
            return len(self.given)
        try:
            return os.stat(self.location).st_size
        except OSError:
            return 0

    def is_used_by_ours(self, text: bytes) -> bool:
        """Whether a file about PyTorch imports this one, or is imported by it."""
        return project_of(self.root).around.is_used_by_ours(self.absolute, text)

    @property
    def as_test(self) -> InTests:
        """How rules that are about other code than tests treat this file: as any other, unless it is a test."""
        return self.config.tests if is_test(self.name) else InTests.LINT

    @property
    def skipped(self) -> frozenset[str]:
        """The enabled rules that are not looked for in this file, because it is a test."""
        from ta_lint.core.catalogue import outside_tests

        return self.config.rules & outside_tests() if self.as_test is InTests.SKIP else frozenset()

    @property
    def root(self) -> str:
        """The folder of its project: what the name is relative to, or of a file that lies elsewhere, its own."""
        location = os.fspath(self.location)
        relative = self.name.replace("/", os.sep)
        if os.path.isabs(relative) or not location.endswith(relative):
            return _root_of(os.path.dirname(location))
        return location[: -len(relative)].rstrip(os.sep)


@cache
def _root_of(folder: str) -> str:
    """The project that a folder belongs to: by a repository or settings above it, else what holds the outermost package around it."""
    from pathlib import Path

    from ta_lint.core.config import project_root

    root = os.fspath(project_root(Path(folder)))
    if root == folder:
        while os.path.isfile(os.path.join(root, "__init__.py")) and os.path.dirname(root) != root:
            root = os.path.dirname(root)
    return root


def is_test(path: str) -> bool:
    """Whether a path is a test file, by pytest's naming or by its folder."""
    *folders, name = path.split("/")
    is_named = name.startswith("test_") or name.rsplit(".", 1)[0].endswith("_test") or name == "conftest.py"
    return is_named or "tests" in folders


def name_of(path: str, root: str) -> str:
    """A path as findings name it: relative to the root if it lies below it, otherwise absolute."""
    inside = below(path, root)
    return (path if inside is None else inside).replace(os.sep, "/")


def below(path: str, folder: str) -> str | None:
    """The path relative to a folder; None if it lies elsewhere."""
    prefix = os.path.join(folder, "")
    return path[len(prefix) :] if path.startswith(prefix) else None


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
        data = read(file.location)
    except Unreadable:
        return True
    text = searchable(data)
    is_ours = libraries.may_be_ours if file.name.endswith(".ipynb") else libraries.is_ours
    return is_ours(text) or b"\0" in data or b"noqa" in text.lower() or file.is_used_by_ours(text)
