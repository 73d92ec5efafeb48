"""Where nodes stand, and how they are written: as libcst has it, for all that a finding or a fix asks for."""

import argparse
import dataclasses
import inspect
import typing
from pathlib import Path
from textwrap import dedent

import libcst as cst
import pytest
from libcst.metadata import PositionProvider
from test_convert import STATEMENTS

from ta_lint.core.config import Configs, Options
from ta_lint.core.finding import Finding
from ta_lint.core.source import Source
from ta_lint.engine import lint
from ta_lint.file import File
from ta_lint.syntax.parse import parse
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
@(another)
class A: pass
if x:
    y = [
        1,
        é := 2,
    ]
elif (z): w = 3
lambda: 1; v = 2;
\x0c
call(  # what a comment says: )
    (x), ((y)), *(z), é=(  # and (
        1), **(k),
)
called(generator for generator in (x)), sum((x for x in y)), ((a), b), (a, (b)), (c,)
return_(x)
(x).y
if (not(x)): match(x), print (x), d[(1)], d[(1, 2)]
f"{(x)} {call((x))}"
class  \\
    classes  (object): pass
async  def \\
  define(): pass
last = (é
    .call(x))'''

ASKED = (
    cst.BaseExpression,
    cst.BaseStatement,
    cst.BaseSmallStatement,
    cst.Arg,
    cst.Decorator,
    cst.AssignTarget,
)

TWO_CLASSES = dedent(
    """
    import torch
    from torch import nn

    class First(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8))

    class Second(nn.Module):
        def __init__(self):
            super().__init__()
            print(f"{nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8))}")
    """
)


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts that libcst is given."""
    texts: list[str] = []
    parse_module = cst.parse_module

    def parsing(text: str) -> cst.Module:
        texts.append(text)
        return parse_module(text)

    monkeypatch.setattr(cst, "parse_module", parsing)
    return texts


def linted(text: str, folder: Path) -> list[Finding]:
    config = Configs(Options(select=["TA400", "TA502", "TA901"]), folder).root_config
    return lint(File(folder / "train.py", "train.py", config), text.encode())


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize(
    "text", [inspect.getsource(module) for module in (argparse, dataclasses, typing)] + [ODD, STATEMENTS]
)
def test_places_and_code_are_those_of_libcst(text: str, newline: str) -> None:
    text = text.replace("\n", newline)
    tree, places = parse(Source("a.py", text))
    root = cst.parse_module(text)
    expected = cst.MetadataWrapper(root, unsafe_skip_copy=True).resolve(PositionProvider)
    for ours, theirs in zip(tree.nodes[1:], Tree(root).nodes[1:], strict=True):
        if not isinstance(ours, ASKED):
            continue
        start, end = expected[theirs].start, expected[theirs].end
        assert places.span(ours) == (start.line, start.column + 1, end.line, end.column + 1)
        if isinstance(ours, (cst.BaseExpression, cst.BaseSmallStatement)):
            assert places.code(ours).rstrip(";, \r\n") == root.code_for_node(theirs).rstrip(";, \r\n")
        if isinstance(ours, cst.BaseExpression) and not isinstance(tree.parent[ours], cst.MatchPattern):
            assert len(places.parentheses(ours)) == len(theirs.lpar)


def test_libcst_parses_no_file_for_the_place_of_a_finding(tmp_path: Path, parsed: list[str]) -> None:
    first = TWO_CLASSES.partition("class Second")[0]
    assert [finding.site.line for finding in linted(first, tmp_path)] == [8]
    assert parsed == []


@pytest.mark.parametrize(
    "code", ["class A: pass", "class\\\n A: pass", "@a\nasync def A(): pass", "def \tA(): pass"]
)
def test_python_tells_the_place_of_a_name_that_is_defined(code: str, parsed: list[str]) -> None:
    tree, places = parse(Source("a.py", f"if x:\n    pass\n{code}\n"))
    [name] = [node for node in tree.all(cst.Name) if node.value == "A"]
    line, column, *end = places.span(name)
    assert code.splitlines()[line - 3][column - 1] == "A"
    assert end == [line, column + 1]
    assert parsed == []


def test_libcst_parses_the_statement_whose_layout_python_does_not_tell(
    tmp_path: Path, parsed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before Python 3.12 nothing in an f-string has a place."""
    assert [(finding.site.line, finding.site.column) for finding in linted(TWO_CLASSES, tmp_path)] == [
        (8, 37),
        (13, 32),
    ]
    assert ["class First" in text for text in parsed] == [False]


def test_code_that_only_libcst_reads_is_placed_as_well() -> None:
    tree, places = parse(Source("a.py", "type X = int\nlast = call(x)\n"))
    (call,) = tree.all(cst.Call)
    assert places.span(call) == (2, 8, 2, 15)
    assert places.code(call) == "call(x)"


@pytest.mark.parametrize("first", ["", "type X = int\n"])
def test_a_form_feed_in_an_indentation_moves_only_its_own_line(first: str, tmp_path: Path) -> None:
    """libcst, which alone reads the second, prints it on each line of the block."""
    text = f"{first}import torch\nif torch:\n\x0c    a = 1\n    x = torch.ger(a, a)\n"
    [finding] = linted(text, tmp_path)
    assert (finding.site.line, finding.site.column) == (4 + bool(first), 9)


def test_the_comments_of_a_statement_stand_above_it_and_behind_it() -> None:
    text = "x = 1  # of x\n# first\n\n# second\n@a\ndef f(): pass  # behind\n"
    tree, places = parse(Source("a.py", text))
    assert places.comments(tree.root.body[1]) == ["# first", "# second", "# behind"]
    assert places.comments(tree.root.body[0]) == ["# of x"]
