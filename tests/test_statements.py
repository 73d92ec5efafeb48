"""Statements and comments are read off the text faster than by Python's tokenizer, and are the same."""

import ast
import re
import tokenize
from pathlib import Path

import pytest

from ta_lint.core import statements
from ta_lint.core.source import Source, decode

ROOT = Path(__file__).parents[1]
FILES = [
    *(ROOT / "ta_lint").rglob("*.py"),
    *(ROOT / "tests").glob("*.py"),
    Path(re.__file__),
    Path(tokenize.__file__),
]

UNUSUAL = [
    "",
    "x = 1",
    "x = (\n",
    "x = )\n",
    "x = 'open\n",
    "x = '''open\n",
    "if x:\n        a\n    b\n",
    "if x:\n\ty\n        z\n",
    "x = 1 \\\n\ny = 2\n",
    "x = 1 \\\n# said\ny = 2\n",
    "\\\nx = 1\n",
    "x = [  # first\n    1,\n    # alone\n\n    2,  # last\n]  # after\n",
    "def f():  # a\n    # b\n\n    class A: pass\n    return f'{x!r}' != 1  # c\n# d\ny = f\n",
    "async  def \\\n  f(x='#'):\n    '''# no'''; return 1  # yes\n",
    "x = '\\\n# no' + r'\\' + \"it's\"  # yes",
    "x = f'{d[\"a\"]}'\n",
    "x = f'{d['a']}'  # nested\n",
    "!ls\nx = 1?\ny = $\n",
    "x = 1\x0c\n\x0cdef f(): pass\n",
]


def both(text: str) -> tuple[statements.Found, statements.Found]:
    lines = Source("train.py", text).lines
    return statements.statements_and_comments(lines), statements._tokenized("\n".join(lines), lines)


@pytest.mark.parametrize("text", UNUSUAL, ids=repr)
def test_what_is_unusual_is_what_the_tokenizer_says(text: str) -> None:
    ours, theirs = both(text)
    assert ours == theirs


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_real_files_are_what_the_tokenizer_says(path: Path) -> None:
    ours, theirs = both(decode(path.read_bytes()))
    assert ours == theirs


def test_the_tokenizer_is_not_asked_about_a_usual_file(monkeypatch: pytest.MonkeyPatch) -> None:
    def asked(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr(statements, "_tokenized", asked)
    found, comments = statements.statements_and_comments(["def f(x):", "    return [x]  # it"])
    assert [(statement.text, statement.scope) for statement in found] == [
        ("deff(x):", ""),
        ("return[x]", "f"),
    ]
    assert comments == [statements.Comment(2, 17, "# it", False)]


def test_no_pattern_repeats_a_group_possessively_which_python_before_3_11_5_reads_wrong() -> None:
    for path in sorted((ROOT / "ta_lint").rglob("*.py")):
        texts = [
            node.value
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            if isinstance(node, ast.Constant) and isinstance(node.value, str)
        ]
        assert not [text for text in texts if re.search(r"[^\\]\)[*+?]\+", text)], path
