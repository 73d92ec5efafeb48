"""The words in a file's code: its names and the words of its strings."""

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.syntax.tree import Tree

_WORD = regex(r"\w+")


def words(tree: Tree) -> frozenset[str]:
    """All names in the code and all words of its strings, docstrings excepted: `cuda` of `"cuda:0"`."""
    strings = (
        text.value
        for text in tree.all(cst.SimpleString, cst.FormattedStringText)
        if not isinstance(tree.parent[text], cst.Expr)
    )
    named = (name.value for name in tree.all(cst.Name))
    return frozenset(named).union(*map(_WORD.findall, strings))
