"""TA911 is pyflakes: nothing of it is lost, nothing is said twice, and columns are characters."""

import ast
from pathlib import Path

from pyflakes.checker import Checker

from ta_lint.checks import ta910_undefined_name, ta911_other_pyflakes_message
from ta_lint.core.source import Source, decode

ROOT = Path(__file__).parents[1]


def may_give(modules: tuple[str, ...], name: str) -> bool:
    """Nobody knows what is in the modules."""
    return True


def messages(text: str, path: str = "train.py") -> list[str]:
    found = ta911_other_pyflakes_message.check_text(Source(path, text), may_give)
    return [f"{report.line}:{report.column}-{report.end_column} {report.message}" for report in found]


def test_a_message_is_pyflakes_own_with_the_name_of_its_class() -> None:
    assert messages("import torch\n") == ["1:1-13 'torch' imported but unused (UnusedImport)"]


def test_columns_are_characters() -> None:
    assert messages("größe = 'ß'; print(größe, f'')\n") == [
        "1:27-30 f-string is missing placeholders (FStringMissingPlaceholders)"
    ]


def test_what_goes_on_below_ends_with_its_first_line() -> None:
    text = "def step():\n    pass\n\n\ndef step():  # twice\n    pass\n"
    assert messages(text) == ["5:1-21 redefinition of unused 'step' from line 1 (RedefinedWhileUnused)"]


def test_what_python_refuses_and_pyflakes_cannot_follow_has_no_message() -> None:
    assert messages("class Net:\n    from __future__ import annotations\n    import torch\n") == []


def test_a_long_match_gets_the_messages_that_pyflakes_has() -> None:
    """D9: pyflakes looks for each name that is bound again in all cases, so these are told apart in another way."""
    cases = "".join(
        f"        case {{'k': a{n}, **rest}} if (b := a{n}):\n"
        f"            import torch\n            match rest:\n                case [b]:\n                    import copy, copy\n"
        for n in range(30)
    )
    text = f"def run(x):\n    match x:\n{cases}        case _:\n            pass\n    import torch\n    import torch\n"
    expected = Checker(ast.parse(text), withDoctest=False).messages
    assert len(expected) > 30
    assert {found.rpartition(" (")[2] for found in messages(text)} == {
        f"{type(one).__name__})" for one in expected
    }
    assert len(messages(text)) == len(expected)


def test_in_a_notebook_lines_of_the_whole_mean_nothing_and_cells_may_await() -> None:
    text = "import torch\n\n\ndef torch():\n    pass\n\n\nawait load()\ndisplay(torch)\n"
    found = messages(text, "train.ipynb")
    assert found[0] == "4:1-13 redefinition of unused 'torch' (RedefinedWhileUnused)"
    assert not [message for message in found if "yield" in message]


def test_nothing_is_lost_and_nothing_is_said_twice() -> None:
    for path in (ROOT / "tests").glob("*.py"):
        source = Source(path.name, decode(path.read_bytes()))
        if isinstance(source.syntax, SyntaxError):
            continue
        ours = [report[:2] for report in ta911_other_pyflakes_message.check_text(source, may_give)]
        undefined = [report[:2] for report in ta910_undefined_name.check_text(source, may_give)]
        theirs = Checker(ast.parse(source.text), path.name, withDoctest=False).messages
        assert not set(ours) & set(undefined)
        assert len(ours) + len(undefined) == len(theirs), path
