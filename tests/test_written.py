"""Only the statements that a finding quotes are parsed by libcst, and what it makes of them is what it makes of the file."""

import ast
from pathlib import Path
from textwrap import dedent

import libcst as cst
import pytest
from test_skeleton import STATEMENTS

from ta_lint.core.config import Configs, Options
from ta_lint.core.finding import Finding
from ta_lint.core.source import Source
from ta_lint.engine import lint
from ta_lint.file import File
from ta_lint.syntax.convert import skeleton
from ta_lint.syntax.tree import Tree
from ta_lint.syntax.written import Differs, Written

TWO_CLASSES = dedent(
    """
    import torch
    from torch import nn

    class First(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8))

    # far from here
    class Second(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.Sequential(nn.Conv2d(3, 8, 3, bias=False), nn.BatchNorm2d(8))
    """
)


def trees(text: str) -> tuple[Tree, Tree]:
    """The tree of a skeleton, and the one that libcst makes of the file."""
    source = Source("a.py", text)
    assert isinstance(source.syntax, ast.Module)
    root = skeleton(source, source.syntax)
    return Tree(root, Written(source, root, source.syntax)), Tree(cst.parse_module(text))


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts that libcst is given."""
    texts: list[str] = []
    parse = cst.parse_module

    def parse_module(text: str) -> cst.Module:
        texts.append(text)
        return parse(text)

    monkeypatch.setattr(cst, "parse_module", parse_module)
    return texts


def linted(text: str, folder: Path, *, gated: bool = True) -> list[Finding]:
    config = Configs(Options(select=["TA400", "TA502", "TA901"]), folder).root_config
    return lint(File(folder / "train.py", "train.py", config, gated=gated), text.encode())


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_the_code_of_a_node_is_as_it_stands_in_the_file(newline: str) -> None:
    ours, theirs = trees(STATEMENTS.replace("\n", newline))
    for node, twin in zip(ours.nodes[1:], theirs.nodes[1:], strict=True):
        if isinstance(twin, (cst.BaseExpression, cst.BaseSmallStatement)):
            assert ours.code(node) == theirs.code(twin)


def test_a_file_with_a_finding_is_parsed_where_the_finding_is(tmp_path: Path, parsed: list[str]) -> None:
    findings = linted(TWO_CLASSES, tmp_path)
    assert [finding.rule for finding in findings] == ["TA400"]
    assert len(parsed) == 1
    assert "class First" in parsed[0]
    assert "class Second" not in parsed[0]
    assert findings == linted(TWO_CLASSES, tmp_path, gated=False)
    assert parsed[1] == TWO_CLASSES


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_places_and_fixes_are_those_of_the_whole_file(newline: str, tmp_path: Path) -> None:
    text = dedent(
        """
        import torch
        # of the next
        @decorated
        def later(): pass

        if torch.cuda.is_available(): a = (
            torch.range(0, 5)
        ); b = torch.ger(a, (  a  ))  # and its comment

            # an odd comment
        x, y = torch.gels(a, a); z = torch.ger(a, y)
        """
    ).replace("\n", newline)
    findings = linted(text, tmp_path)
    assert len(findings) > 2
    assert any(finding.fix is not None for finding in findings)
    assert findings == linted(text, tmp_path, gated=False)


def test_statements_that_are_indented_in_two_ways_are_left_to_the_whole_file(
    tmp_path: Path, parsed: list[str]
) -> None:
    text = TWO_CLASSES.replace(", bias=False", "")
    first, second = text.split("# far from here")
    text = f"{first}# far from here{second.replace('    ', '  ')}"
    findings = linted(text, tmp_path)
    assert [finding.site.line for finding in findings] == [8, 14]
    assert parsed[-1] == text
    assert findings == linted(text, tmp_path, gated=False)


def test_a_statement_of_another_file_is_not_mistaken_for_one_of_this() -> None:
    ours, _ = trees("a\nb\n")
    other = Source("a.py", "a\n(b, c)\n")
    assert isinstance(other.syntax, ast.Module)
    tree = Tree(ours.root, Written(other, ours.root, other.syntax))
    with pytest.raises(Differs):
        tree.code(tree.nodes[-1])
