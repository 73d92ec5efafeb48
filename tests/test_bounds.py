"""What would take libcst minutes, or overflow a stack, is told beforehand; what people write is not taken for it."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ta_lint.core.bounds import DEEPEST, check_work, may_take_minutes
from ta_lint.core.config import Configs, Options
from ta_lint.core.errors import Unreadable
from ta_lint.core.source import Source
from ta_lint.file import File
from ta_lint.runner import lint_files


@pytest.fixture(autouse=True)
def room(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """To parse a chain, Python itself needs more than its default."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(20_000)
    yield
    sys.setrecursionlimit(before)


@pytest.mark.parametrize(
    "chain",
    [
        "a" + " + a" * 3_000,
        "a" + ".a" * 5_000,
        "a" + "()" * 5_000,
        "a" + "[0]" * 5_000,
        "a" + ".b(c)" * 1_000,
    ],
)
def test_a_chain_of_thousands_is_too_much(chain: str) -> None:
    """A14: each took minutes, since libcst copies what it has read at each link."""
    with pytest.raises(
        Unreadable, match=r"chains too many operations, up to \d,\d{3} in one expression"
    ) as caught:
        check_work([ast.parse(f"x = 1\ny = {chain}\n")])
    assert caught.value.line == 2


def test_lines_of_data_in_newer_syntax_are_not_taken_for_chains() -> None:
    numbers = ", ".join(["-1.5"] * 20_000)
    assert not may_take_minutes(
        Source("", f"type X = int\nx = [{numbers}]\n" + "x = a.b(c).d(e)[0]\n" * 5_000)
    )


@pytest.mark.parametrize("link", [".b(c)", "[0]", " + a", "()"])
def test_many_chains_are_too_much_as_one_is(link: str) -> None:
    with pytest.raises(Unreadable):
        check_work([ast.parse(f"a{link * 150}\n" * 500)])


@pytest.mark.parametrize(
    "text",
    [
        "x = " + " + ".join(["1"] * 2_000),
        "x = " + " and ".join(["a"] * 20_000),
        "x = a.b(c).d(e).f(g)[0]\n" * 5_000,
        f"x = torch.tensor([{'1.5, ' * 50_000}]).float().to(device).view(-1)[0].clone()",
        f"x = {{{', '.join(f'{n}: make({n}).of(a.b.c)' for n in range(5_000))}}}",
        "if x:\n pass\n" + "elif y:\n pass\n" * 1_000,
    ],
    ids=["a sum", "conditions", "lines", "a table", "a table of calls", "branches"],
)
def test_what_is_long_and_no_chain_is_not_too_much(text: str) -> None:
    check_work([ast.parse(f"{text}\n")])


@pytest.mark.parametrize("link", [".a", "()", "[0]", " + a", ".b(c)"])
def test_a_chain_beside_newer_syntax_is_refused_in_the_words_of_python(link: str, tmp_path: Path) -> None:
    """There is no tree of Python's to measure, and libcst would read it for minutes."""
    path = tmp_path / "train.py"
    path.write_text(f"import torch\nprint torch\nx = a{link * 5_000}\n")
    file = File(path, "train.py", Configs(Options(select=["TA401", "TA001"]), tmp_path).root_config)
    ((_, (finding,)),) = lint_files([file], 1)
    assert finding.message.startswith("Python cannot parse this: Missing parentheses")


@pytest.mark.parametrize("gated", [True, False])
def test_what_is_nested_deeper_than_checks_can_follow_is_one_finding(gated: bool, tmp_path: Path) -> None:
    """A6: printing it raised outside of all guards."""
    path = tmp_path / "train.py"
    operands = " and a" * (DEEPEST + 1)
    path.write_text(f"import torch\nx = torch.load('a', weights_only=False){operands}\n")
    config = Configs(Options(select=["TA700", "TA001"]), tmp_path).root_config
    ((_, (finding,)),) = lint_files([File(path, "train.py", config, gated=gated)], 1)
    assert (finding.rule, finding.message) == (
        "TA001",
        "it is nested 5,006 deep; at most 5,000 levels are read",
    )


def test_what_is_nested_as_deep_as_may_be_is_linted(tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    operands = " and a" * (DEEPEST - 6)
    path.write_text(f"import torch\nx = torch.load('a', weights_only=False){operands}\n")
    config = Configs(Options(), tmp_path).root_config
    ((_, findings),) = lint_files([File(path, "train.py", config)], 1)
    assert [finding.rule for finding in findings] == ["TA700"]
