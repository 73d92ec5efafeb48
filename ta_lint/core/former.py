"""Reads a file in which `async` is the name of an argument, as it could be until Python 3.6: `tensor.cuda(async=True)`.

The name gets a stand-in of the same length for the parser, so that no position moves, and gets back into the tree.
"""

import ast
import re

from ta_lint.core.tokens import TOKEN

_NAME = "async"
_STAND_IN = "a5ync"
_GIVEN = re.compile(r"async[ \t]*=(?!=)")


def readable(text: str) -> str:
    """The text with a stand-in for each argument of that name; the same text if it has none."""
    if _GIVEN.search(text) is None or _STAND_IN in text:
        return text

    def renamed(found: re.Match[str]) -> str:
        is_given = found[0] == _NAME and _GIVEN.match(text, found.start()) is not None
        return _STAND_IN if is_given else found[0]

    return TOKEN.sub(renamed, text)


def restored(tree: ast.Module) -> ast.Module:
    """The tree with the names as they are written."""
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword) and node.arg == _STAND_IN:
            node.arg = _NAME
    return tree


def original(code: str) -> str:
    """A part of the readable text as it is written."""
    return code.replace(_STAND_IN, _NAME)
