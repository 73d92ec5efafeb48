"""One project: its folders, and what is around each of its files."""

from collections.abc import Callable
from functools import cached_property, partial
from typing import TYPE_CHECKING

from ta_lint.project.around import Around
from ta_lint.project.index import Index
from ta_lint.project.layout import Layout

if TYPE_CHECKING:
    from ta_lint.core.finding import Finding
    from ta_lint.project.imports import Imports
    from ta_lint.project.reach import Reach

_PROJECTS_KEPT = 4


class Project:
    """The project whose files are named relative to a root."""

    def __init__(self, root: str, index: Index | None = None) -> None:
        self.layout = Layout(root)
        self.index = index if index is not None else Index(root)
        self.around = Around(self.layout, self.index)
        self.told: set[object] = set()
        """What the cache knows already of what was found out about the project."""
        self._reaches: dict[str, Reach] = {}
        self.looks = 0
        """How often the disk was looked at again."""

    def renewed(self) -> "Project":
        """This project if nothing has changed on disk, or else a new one with the outlines of the files that are as they were."""
        if self.around.is_unchanged() and self.layout.is_unchanged():
            self.around.forget_unsaved()
            if "imports" in vars(self):
                self.imports.forget_unsaved()
            self.told.clear()
            self._reaches.clear()
            self.looks += 1
            return self
        return Project(self.layout.root, self.index)

    def judged(self, findings: "list[Finding]", path: str) -> "list[Finding]":
        """The findings of a file with the severity that they have in the project as it is: a note where nothing runs the code."""
        if not any(finding.held_by for finding in findings):
            return findings
        from ta_lint.project.reach import Reach

        root = self.layout.outermost(path)
        if root not in self._reaches:
            self._reaches[root] = Reach(root, self.around)
        return [self._reaches[root].judged(finding, path) for finding in findings]

    @cached_property
    def imports(self) -> "Imports":
        from ta_lint.project.imports import Imports

        return Imports(self.layout, self.around)


class _Projects:
    """The projects of the last roots that were asked for."""

    def __init__(self) -> None:
        self._known: dict[str, Project] = {}
        self.kept: Callable[[str], dict[bytes, bytes]] | None = None
        """Reads what earlier runs have kept of the files below a root, as for `Index`; None if there is no cache."""

    def __call__(self, root: str) -> Project:
        """The project of a root, until `renew`."""
        found = self._known.pop(root, None) or Project(root, Index(root, self._kept(root)))
        self._known[root] = found
        if len(self._known) > _PROJECTS_KEPT:
            del self._known[next(iter(self._known))]
        return found

    def _kept(self, root: str) -> "Callable[[], dict[bytes, bytes]] | None":
        return partial(self.kept, root) if self.kept is not None else None

    def all(self) -> list[Project]:
        """The projects that are known."""
        return [*self._known.values()]

    def cache_clear(self) -> None:
        self._known.clear()

    def renew(self) -> None:
        self._known = {root: project.renewed() for root, project in self._known.items()}


project_of = _Projects()


def renew() -> None:
    """Look at the disk anew from here on, as files may have changed."""
    project_of.renew()
