"""Code in one default layout, to compare it and to search it for words.

Converted nodes have no layout, so this is also how to get their code.
"""

from dataclasses import fields
from functools import cache
from typing import Any

import libcst as cst

from ta_lint.syntax.tree import Node, child_fields

_VALUE_FIELDS = frozenset({"asynchronous", "operator", "star", "value"})  # not nodes, but meaningful


def plain(node: Node) -> str:
    """The code of a node without comments, on as few lines as possible, and with parentheses only for calls and tuples."""
    return cst.Module(()).code_for_node(_in_default_layout(node))


def _in_default_layout(node: Node) -> Node:
    """A copy of the node in libcst's default layout."""
    given: dict[str, Any] = {}
    for name in _meaningful_fields(type(node)):
        value = getattr(node, name)
        if isinstance(value, (list, tuple)):
            value = [_in_default_layout(item) for item in value]
        elif isinstance(value, cst.CSTNode):
            value = _in_default_layout(value)
        given[name] = value
    return type(node)(**given)


@cache
def _meaningful_fields(kind: type[Node]) -> tuple[str, ...]:
    words = (field.name for field in fields(kind) if field.name in _VALUE_FIELDS)
    return tuple(dict.fromkeys((*child_fields(kind), *words)))
