"""One project: its folders, and what is around each of its files."""

from functools import lru_cache

from ta_lint.project.around import Around
from ta_lint.project.layout import Layout


class Project:
    """The project whose files are named relative to a root."""

    def __init__(self, root: str) -> None:
        self.layout = Layout(root)
        self.around = Around(self.layout)


@lru_cache(4)
def project_of(root: str) -> Project:
    """The project of a root, until `renew`."""
    return Project(root)


def renew() -> None:
    """Look at the disk anew from here on, as files may have changed."""
    project_of.cache_clear()
