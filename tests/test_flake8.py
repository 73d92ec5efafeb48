"""The plugin under a real flake8, and the library entry that it stands on."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import ta_lint
from ta_lint.core.errors import UsageError

BAD = """\
import torch

model = torch.nn.Linear(4, 1)
"ä"; optimizer = torch.optim.Adam(model.parameters(), weight_decay=0.1)
"""
FOUND = (
    "train.py:4:18: TA401 `Adam` scales the decay by the adaptive step: "
    "use `AdamW`, which decays all weights equally"
)


def flake8(folder: Path, *arguments: str, text: str | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "flake8", "--isolated", "--extend-ignore=E702", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, input=text)


def test_flake8_reports_what_the_linter_finds_where_it_is(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(BAD, encoding="utf-8")
    ran = flake8(tmp_path, "train.py")
    assert (ran.stdout.splitlines(), ran.returncode) == ([FOUND], 1), ran.stderr


def test_flake8_reports_what_comes_from_standard_input(tmp_path: Path) -> None:
    ran = flake8(tmp_path, "--stdin-display-name=train.py", "-", text=BAD)
    assert (ran.stdout.splitlines(), ran.returncode) == ([FOUND], 1), ran.stderr


def test_in_a_notebook_flake8_is_given_the_line_of_the_file(tmp_path: Path) -> None:
    cell = {"cell_type": "code", "metadata": {}, "outputs": [], "source": BAD.splitlines(keepends=True)}
    text = json.dumps({"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 4}, indent=1)
    number = next(n for n, line in enumerate(text.splitlines(), start=1) if "Adam" in line)
    (tmp_path / "demo.ipynb").write_text(text)
    ran = flake8(tmp_path, "--select=TA", "demo.ipynb")
    assert ran.stdout.startswith(f"demo.ipynb:{number}:18: TA401 "), ran.stdout
    assert ran.stdout.endswith("(cell 1, line 4)\n")


@pytest.mark.parametrize("comment", ["# noqa: TA401", "# noqa", "# noqa: adam-with-weight-decay"])
def test_a_comment_of_either_silences_it(tmp_path: Path, comment: str) -> None:
    (tmp_path / "train.py").write_text(f"{BAD.rstrip()}  {comment}\n", encoding="utf-8")
    ran = flake8(tmp_path, "--extend-ignore=E702,E501", "train.py")
    assert (ran.stdout, ran.returncode) == ("", 0), ran.stderr


@pytest.mark.parametrize("option", ["--extend-ignore=E702,TA4", "--ignore=TA,E702", "--select=F"])
def test_the_options_of_flake8_choose_among_the_findings(tmp_path: Path, option: str) -> None:
    (tmp_path / "train.py").write_text(BAD, encoding="utf-8")
    ran = flake8(tmp_path, option, "train.py")
    assert (ran.stdout, ran.returncode) == ("", 0), ran.stderr


def test_the_settings_of_the_linter_say_what_is_looked_for(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(f"{BAD}optimizer.zero_grad(set_to_none=False)\n", encoding="utf-8")
    settings = tmp_path / "pyproject.toml"
    settings.write_text(
        '[tool.ta]\nextend-select = ["TOR402"]\nper-file-ignores = {"train.py" = ["TA401"]}\n'
    )
    lines = flake8(tmp_path, "train.py").stdout.splitlines()
    assert [line.split()[:2] for line in lines] == [["train.py:5:1:", "TA210"]]


def test_wrong_settings_are_said_in_a_line(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(BAD, encoding="utf-8")
    (tmp_path / "pyproject.toml").write_text('[tool.ta]\nselct = ["TA4"]\n')
    ran = flake8(tmp_path, "train.py")
    assert ran.returncode == 1
    assert "[tool.ta] has no key 'selct'" in ran.stdout
    assert "Traceback" not in ran.stderr


def test_a_file_in_another_encoding_keeps_its_columns(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(f"# coding: latin-1\n{BAD}", encoding="latin-1")
    assert flake8(tmp_path, "train.py").stdout.splitlines() == [FOUND.replace(":4:", ":5:")]


def test_the_plugin_loads_nothing_until_flake8_runs_it(tmp_path: Path) -> None:
    code = "import sys, ta_lint.flake8; print(*{name.partition('.')[0] for name in sys.modules})"
    ran = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert not set(ran.stdout.split()) & {"flake8", "libcst", "msgspec", "pathspec", "pyflakes", "rich"}


def test_text_that_nobody_has_written_yet_is_linted_as_if_it_lay_there(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.ta]\nignore = ["TA401"]\n')
    assert [finding.rule for finding in ta_lint.lint_text(BAD, "train.py")] == ["TA401"]
    assert ta_lint.lint_text(BAD, tmp_path / "train.py") == []


def test_text_of_a_file_that_is_excluded_by_force_has_no_findings(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.ta]\nexclude = ["train.py"]\nforce-exclude = true\n')
    assert ta_lint.lint_text(BAD, tmp_path / "train.py") == []
    assert ta_lint.lint_text(BAD, tmp_path / "other.py")


def test_text_with_an_unknown_encoding_is_a_finding() -> None:
    [finding] = ta_lint.lint_text("# coding: klingon\nimport torch\n", "train.py")
    assert (finding.rule, finding.message) == ("TA001", "unknown encoding: klingon")


def test_text_under_wrong_settings_is_refused(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.ta]\nselect = 1\n")
    with pytest.raises(UsageError, match="select"):
        ta_lint.lint_text(BAD, tmp_path / "train.py")
