"""One project: its folders, and what is around each of its files."""

from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

from ta_lint.project.around import Around
from ta_lint.project.layout import Layout

if TYPE_CHECKING:
    from ta_lint.core.finding import Finding
    from ta_lint.project.imports import Imports
    from ta_lint.project.reach import Reach


class Project:
    """The project whose files are named relative to a root."""

    def __init__(self, root: str) -> None:
        self.layout = Layout(root)
        self.around = Around(self.layout)
        self.told: set[object] = set()
        """What the cache knows already of what was found out about the project."""
        self._reaches: dict[str, Reach] = {}

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


@lru_cache(4)
def project_of(root: str) -> Project:
    """The project of a root, until `renew`."""
    return Project(root)


def renew() -> None:
    """Look at the disk anew from here on, as files may have changed."""
    project_of.cache_clear()
