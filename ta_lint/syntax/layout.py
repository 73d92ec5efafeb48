"""Code in one layout, whatever it has in the file: to compare, and to look for words in.

A skeleton has no layout, so that this is also how its code is read.
"""

from dataclasses import fields
from functools import cache
from typing import Any

import libcst as cst

from ta_lint.syntax.tree import Node, child_fields

_WORDS = frozenset({"asynchronous", "operator", "star", "value"})  # what says something and is no child


def plain(node: Node) -> str:
    """The code of a node without comments, on as few lines as can be, and with no parentheses but those of calls,
    tuples and the like.
    """
    return cst.Module(()).code_for_node(_laid_out(node))


def _laid_out(node: Node) -> Node:
    """The same in libcst's own layout."""
    given: dict[str, Any] = {}
    for name in _said(type(node)):
        value = getattr(node, name)
        if isinstance(value, (list, tuple)):
            value = [_laid_out(item) for item in value]
        elif isinstance(value, cst.CSTNode):
            value = _laid_out(value)
        given[name] = value
    return type(node)(**given)


@cache
def _said(kind: type[Node]) -> tuple[str, ...]:
    words = (field.name for field in fields(kind) if field.name in _WORDS)
    return tuple(dict.fromkeys((*child_fields(kind), *words)))
