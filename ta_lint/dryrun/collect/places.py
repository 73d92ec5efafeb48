"""Where something happens, as both observers name it."""

from ta_lint.dryrun.values import Place
from ta_lint.events import place


def position(where: Place) -> place.Place:
    """A place of the dry run, as both observers name it."""
    node = where.node
    return place.Place(
        where.file,
        where.line,
        getattr(node, "end_lineno", None),
        getattr(node, "col_offset", None),
        getattr(node, "end_col_offset", None),
    )
