"""The shortcut for positions gives what libcst gives, on real files of the standard library."""

import argparse
import ast
import dataclasses
import inspect
import textwrap
import typing

import libcst as cst
import pytest
from libcst.metadata import PositionProvider

from ta_lint.syntax.positions import positions
from ta_lint.syntax.tree import Tree

ODD = '''\
# a comment before everything
"""A docstring
over two lines."""; import os; x = 1

# a comment, and a decorated class
@decorator(
    argument
)
# between
@another
class A: pass
if x:
    y = [
        1,
        é := 2,
    ]
elif z: w = 3
lambda: 1; v = 2;
\x0c
last = call(x)'''


@pytest.mark.parametrize(
    "text", [inspect.getsource(module) for module in (argparse, dataclasses, typing)] + [ODD]
)
def test_positions_are_those_of_libcst(text: str) -> None:
    root = cst.parse_module(text)
    tree = Tree(root)
    wanted = tree.all(cst.Name, cst.Call, cst.Assign, cst.FunctionDef, cst.ClassDef, cst.Arg)
    expected = cst.MetadataWrapper(root, unsafe_skip_copy=True).resolve(PositionProvider)
    assert positions(tree, wanted, ast.parse(text)) == {node: expected[node] for node in wanted}
    assert positions(tree, wanted, None) == {node: expected[node] for node in wanted}


def test_code_that_only_libcst_reads_is_placed_as_well() -> None:
    text = textwrap.dedent("""\
        type X = int
        last = call(x)
        """)
    tree = Tree(cst.parse_module(text))
    (call,) = tree.all(cst.Call)
    place = positions(tree, [call], None)[call]
    assert (place.start.line, place.start.column) == (2, 7)
