"""Parses a file into one tree."""

import ast

from ta_lint.core.source import Source
from ta_lint.syntax.concrete import whole
from ta_lint.syntax.convert import NotConvertible, converted
from ta_lint.syntax.places import Places
from ta_lint.syntax.tree import Tree


def parse(source: Source) -> tuple[Tree, Places]:
    """The tree of a file, and the places of its nodes.

    Raises:
        Unreadable: neither Python nor libcst can parse the file, or it is nested too deep.
    """
    syntax = source.syntax
    if isinstance(syntax, ast.Module):
        try:
            root, made = converted(source, syntax)
        except NotConvertible:
            pass
        else:
            tree = Tree(root)
            return tree, Places(source, tree, made)
    tree = Tree(whole(source))
    return tree, Places(source, tree, None)
