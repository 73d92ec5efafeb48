"""`ta-lint check -`: what an editor holds is linted under its name, and handed back fixed."""

import io
import json
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from ta_lint.cli import main

BUGGY = """\
import torch

model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters())
optimizer.step
"""
FIXED = BUGGY.replace("optimizer.step\n", "optimizer.step()\n")


@dataclass
class Said:
    status: int
    out: bytes
    err: str


class Editor:
    """Runs `ta-lint check -` on a buffer."""

    def __init__(self, capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch) -> None:
        self._captured = capsysbinary
        self._monkeypatch = monkeypatch

    def __call__(self, buffer: str | bytes, *arguments: str) -> Said:
        data = buffer if isinstance(buffer, bytes) else buffer.encode()
        self._monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
        status = main(["check", "-", *arguments])
        captured = self._captured.readouterr()
        return Said(status, captured.out, captured.err.decode())


@pytest.fixture
def editor(
    capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Editor:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").write_text("[tool.ta]\n")
    return Editor(capsysbinary, monkeypatch)


def test_a_buffer_is_linted_under_the_name_it_is_given(editor: Editor) -> None:
    said = editor(BUGGY, "--stdin-filename", "models/train.py", "--format=concise", "--quiet")
    assert said.out.startswith(b"models/train.py:5:1: TA603 error: ")
    assert said.status == 1


def test_a_buffer_without_a_name_is_called_by_the_dash(editor: Editor) -> None:
    assert editor(BUGGY, "--format=concise", "--quiet").out.startswith(b"-:5:1: TA603")
    assert editor(BUGGY).out.decode().count("optimizer.step") == 2  # in the message and in the line shown


def test_a_file_by_that_name_is_neither_read_nor_written(editor: Editor, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import torch\n")
    assert editor(BUGGY, "--stdin-filename=train.py").status == 1
    assert editor(BUGGY, "--stdin-filename=train.py", "--fix", "--unsafe-fixes").status == 0
    assert (tmp_path / "train.py").read_text() == "import torch\n"


def test_settings_and_ignores_hold_for_the_name(editor: Editor, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.ta.per-file-ignores]\n'old/*' = ['TA603']\n")
    assert editor(BUGGY, "--stdin-filename=old/train.py").status == 0
    assert editor(BUGGY, "--stdin-filename=new/train.py").status == 1
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "pyproject.toml").write_text("[tool.ta]\nignore = ['TA6']\n")
    assert editor(BUGGY, "--stdin-filename=sub/train.py").status == 0


def test_with_fix_the_buffer_comes_back_fixed_and_the_report_goes_beside_it(editor: Editor) -> None:
    said = editor(BUGGY + "undefined\n", "--stdin-filename=train.py", "--fix", "--unsafe-fixes")
    assert said.out.decode() == FIXED + "undefined\n"
    assert "Fixed 1 finding in 1 file." in said.err
    assert "`undefined` is not defined here" in said.err
    assert "6 | undefined" in said.err
    assert said.status == 1


@pytest.mark.parametrize(
    "buffer",
    [
        b"",
        b"x = 1",
        b"import torch\r\nx = 1\r\n",
        b"\xef\xbb\xbfimport torch\n",
        b"torch = '\xff'\n",
        b"torch = (",
    ],
    ids=repr,
)
def test_with_fix_a_buffer_without_fixes_comes_back_as_it_is(editor: Editor, buffer: bytes) -> None:
    assert editor(buffer, "--fix").out == buffer


def test_with_fix_an_excluded_buffer_comes_back_as_it_is(editor: Editor, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.ta]\nexclude = ['old']\nforce-exclude = true\n")
    said = editor(BUGGY, "--stdin-filename=old/train.py", "--fix", "--unsafe-fixes")
    assert (said.status, said.out.decode()) == (0, BUGGY)


def test_diff_shows_what_would_change(editor: Editor) -> None:
    said = editor(BUGGY, "--stdin-filename=train.py", "--diff", "--unsafe-fixes")
    assert b"--- train.py\n+++ train.py\n" in said.out
    assert b"-optimizer.step\n+optimizer.step()\n" in said.out
    assert said.status == 1


def test_a_report_may_go_to_a_file_while_the_buffer_comes_back(editor: Editor, tmp_path: Path) -> None:
    said = editor(BUGGY, "--fix", "--unsafe-fixes", "--format=json", "--output=report.json")
    assert said.out.decode() == FIXED
    assert json.loads((tmp_path / "report.json").read_text()) == []


def test_beside_a_buffer_that_comes_back_json_is_json(editor: Editor) -> None:
    said = editor(BUGGY + "undefined\n", "--fix", "--unsafe-fixes", "--format=json")
    assert said.out.decode() == FIXED + "undefined\n"
    assert [item["rule"] for item in json.loads(said.err)] == ["TA910"]


def test_a_file_whose_name_is_a_dash_is_read(editor: Editor, tmp_path: Path) -> None:
    (tmp_path / "-").write_text(BUGGY)
    assert main(["check", "./-"]) == 1


def test_a_notebook_comes_back_as_a_notebook(editor: Editor) -> None:
    cell = {
        "cell_type": "code",
        "metadata": {},
        "outputs": [],
        "source": [*BUGGY.splitlines(True), "print()"],
    }
    notebook = json.dumps({"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 4}, indent=1)
    said = editor(notebook, "--stdin-filename=demo.ipynb", "--fix", "--unsafe-fixes")
    assert said.out.decode() == notebook.replace("optimizer.step", "optimizer.step()")


@pytest.mark.parametrize(
    ("argument", "reason"),
    [
        ("train.py", "-: standard input cannot be combined with other paths"),
        ("--config=none.toml", "--config: none.toml is not a file"),
        ("--stdin-filename=..", "--stdin-filename: .. is a folder; give the name of a file"),
    ],
)
def test_wrong_usage_is_an_error_and_writes_nothing(editor: Editor, argument: str, reason: str) -> None:
    said = editor(BUGGY, argument, "--fix")
    assert (said.status, said.out) == (2, b"")
    assert reason in said.err


def test_a_name_without_a_buffer_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--stdin-filename=train.py"]) == 2
    assert "give - as the path" in capsys.readouterr().err


def test_a_closed_standard_input_is_wrong_usage(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    assert main(["check", "-"]) == 2
    assert "-: standard input is closed" in capsys.readouterr().err
