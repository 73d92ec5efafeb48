"""One project: its folders, and what is around each of its files."""

from functools import cached_property
from typing import TYPE_CHECKING

from ta_lint.project.around import Around
from ta_lint.project.layout import Layout

if TYPE_CHECKING:
    from ta_lint.core.finding import Finding
    from ta_lint.project.imports import Imports
    from ta_lint.project.reach import Reach

_PROJECTS_KEPT = 4


class Project:
    """The project whose files are named relative to a root."""

    def __init__(self, root: str) -> None:
        self.layout = Layout(root)
        self.around = Around(self.layout)
        self.told: set[object] = set()
        """What the cache knows already of what was found out about the project."""
        self._reaches: dict[str, Reach] = {}
        self.looks = 0
        """How often the disk was looked at again."""

    def renewed(self) -> "Project":
        """This project if nothing has changed on disk, or else a new one that knows the files that are as they were."""
        unchanged = self.around.unchanged()
        if len(unchanged) == len(self.around.contents) and self.layout.is_unchanged():
            self.around.forget_unsaved()
            if "imports" in vars(self):
                self.imports.forget_unsaved()
            self.told.clear()
            self._reaches.clear()
            self.looks += 1
            return self
        project = Project(self.layout.root)
        project.around.take(self.around, unchanged)
        if "imports" in vars(self):
            project.imports.take(self.imports, unchanged)
        return project

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

    def __call__(self, root: str) -> Project:
        """The project of a root, until `renew`."""
        found = self._known.pop(root, None) or Project(root)
        self._known[root] = found
        if len(self._known) > _PROJECTS_KEPT:
            del self._known[next(iter(self._known))]
        return found

    def cache_clear(self) -> None:
        self._known.clear()

    def renew(self) -> None:
        self._known = {root: project.renewed() for root, project in self._known.items()}


project_of = _Projects()


def renew() -> None:
    """Look at the disk anew from here on, as files may have changed."""
    project_of.renew()
