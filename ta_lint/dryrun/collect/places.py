"""Where something happens, as both observers name it."""

import ast

from ta_lint.dryrun.values import Place
from ta_lint.events import place

LONGEST = 40
"""Characters of an expression that are quoted."""


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


def code(where: Place) -> str:
    """The expression that stands at a place, on one line."""
    text = " ".join(ast.unparse(where.node).split())
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
