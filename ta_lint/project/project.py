"""One project: its folders, and what is around each of its files."""

from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

from ta_lint.project.around import Around
from ta_lint.project.layout import Layout

if TYPE_CHECKING:
    from ta_lint.project.imports import Imports


class Project:
    """The project whose files are named relative to a root."""

    def __init__(self, root: str) -> None:
        self.layout = Layout(root)
        self.around = Around(self.layout)
        self.told: set[object] = set()
        """What the cache knows already of what was found out about the project."""

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
