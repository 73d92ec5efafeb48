"""The small parts that every finding passes: comments, patterns, encodings, files written."""

import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from ta_lint.core.catalogue import catalogue, check_selector, default_rules, find
from ta_lint.core.config import Configs, Options
from ta_lint.core.errors import Unreadable, UsageError
from ta_lint.core.files import write_atomically
from ta_lint.core.source import decode
from ta_lint.engine import lint_file
from ta_lint.file import File
from ta_lint.runner import lint_files

CODE = "import torch\nx = torch.optim.Adam(p, weight_decay=0.1), torch.load('w', weights_only=False)"


def counted(folder: Path, text: str) -> str:
    """The rules of the findings that count, of three that are on."""
    (folder / "train.py").write_text(text)
    config = Configs(Options(select=["TA401", "TA700", "TA002"]), folder).root_config
    found = lint_file(File(folder / "train.py", "train.py", config))
    return " ".join(finding.rule for finding in found if finding.counts)


@pytest.mark.parametrize(
    ("comment", "left"),
    [
        ("# noqa", ""),
        ("# noqa: TA401", "TA700"),
        ("# noqa:  TA401", "TA700"),
        ("# noqa : TA401", "TA700"),
        ("# noqa TA401", "TA700"),
        ("# noqa: TA401 TA700", ""),
        ("# noqa: TA401, the paper says so", "TA700"),
        ("# noqa: TA401, takes too long", "TA700"),
        ("# noqa: TA401 - as in GPT2", "TA700"),
        ("# noqa: TA700, adam-with-weight-decay", ""),
        ("# noqa: adam-with-weight-decay, unsafe-torch-load", ""),
        ("# noqa: E501,adam-with-weight-decay,TA700", ""),
        ("# noqable", "TA401 TA700"),
        ("# ta: noqa", "TA401 TA700 TA002"),  # which says that it has no effect here
        ("# ta: noqa: TA401", "TA401 TA700 TA002"),
    ],
)
def test_a_comment_suppresses_what_it_names_and_no_more(tmp_path: Path, comment: str, left: str) -> None:
    assert counted(tmp_path, f"{CODE}  {comment}\n") == left


@pytest.mark.parametrize(
    ("comment", "left"),
    [
        ("# ta: noqa", ""),
        ("# ta:noqa:TA401", "TA700"),
        ("# ta: noqa TA401", "TA700"),
        ("# ta: noqa: adam-with-weight-decay, unsafe-torch-load", ""),
        ("# data: noqa", "TA401 TA700"),
    ],
)
def test_a_comment_for_the_file_suppresses_what_it_names_and_no_more(
    tmp_path: Path, comment: str, left: str
) -> None:
    assert counted(tmp_path, f"{comment}\n{CODE}\n") == left


@pytest.mark.parametrize("code", ["TA401", "adam-with-weight-decay"])
def test_an_unused_suppression_is_told_where_nothing_else_is_looked_for(tmp_path: Path, code: str) -> None:
    assert counted(tmp_path, f"import torch  # noqa: {code}\n") == "TA002"


@pytest.mark.parametrize("encoding", ["rot13", "hex", "punycode", "idna", "undefined", "uu"])
def test_an_encoding_that_is_not_one_of_text_is_unreadable(encoding: str) -> None:
    with pytest.raises(Unreadable, match="the declared encoding does not read it"):
        decode(f"# coding: {encoding}\nimport torch\n".encode())


def test_the_default_rules_are_those_whose_pages_say_so() -> None:
    assert default_rules() == {rule.id for rule in catalogue().values() if rule.default}


def test_names_and_tags_are_found_in_any_case() -> None:
    assert [rule.id for rule in [*find("Missing-Zero-Grad"), *find("ta600")]] == ["TA600", "TA600"]
    check_selector("Loop", "here")


def test_a_hint_names_each_neighbour_once() -> None:
    with pytest.raises(UsageError, match=r"did you mean loop\?$"):
        check_selector("looop", "here")


@pytest.mark.parametrize(
    "table", ["exclude = ['!']", "extend-exclude = ['[z']", "per-file-ignores = {'!' = ['TA4']}"]
)
def test_a_pattern_that_is_none_is_named(tmp_path: Path, table: str) -> None:
    (tmp_path / "pyproject.toml").write_text(f"[tool.ta]\n{table}\n")
    with pytest.raises(UsageError, match=r"is not a pattern as in \.gitignore"):
        Configs(Options(), tmp_path)


def test_a_written_file_keeps_the_link_that_leads_to_it(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    link = tmp_path / "report.json"
    link.symlink_to("real/report.json")
    for text in ("first", "second"):
        write_atomically(link, text)
        assert link.is_symlink()
        assert (tmp_path / "real" / "report.json").read_text() == text


def test_a_pipe_or_a_device_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE, text=True) as reader:
        write_atomically(pipe, "report")
        if not pipe.is_fifo():
            reader.kill()
        assert pipe.is_fifo()
        assert reader.communicate(timeout=30)[0] == "report"


def test_linting_leaves_the_stack_size_of_later_threads_alone(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(f"{CODE}\n")
    config = Configs(Options(select=["TA401"]), tmp_path).root_config
    ((_, findings),) = lint_files([File(tmp_path / "train.py", "train.py", config)], 1)
    assert [finding.rule for finding in findings] == ["TA401"]
    assert threading.stack_size() == 0


def test_linting_leaves_the_recursion_limit_of_the_process_alone(tmp_path: Path) -> None:
    """With a limit for a deep stack, a recursion without an end in the thread of the caller kills its process."""
    before = sys.getrecursionlimit()
    (tmp_path / "train.py").write_text(f"x = {'(' * 150}1{')' * 150}\n")
    config = Configs(Options(), tmp_path).root_config
    lint = partial(lint_files, [File(tmp_path / "train.py", "train.py", config)], 1)
    with ThreadPoolExecutor(2) as threads:
        assert [list(one) for one in threads.map(lambda _: lint(), range(2))]
    assert sys.getrecursionlimit() == before


def test_an_exception_of_ours_is_not_taken_for_findings(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import torch\n")
    code = (
        "import sys, ta_lint.runner, ta_lint.cli\n"
        "def lint_files(*_): raise ZeroDivisionError('ours')\n"
        "ta_lint.runner.lint_files = lint_files\n"
        "sys.exit(ta_lint.cli.main(['check']))"
    )
    ran = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert ran.returncode == 2
    assert ran.stderr.splitlines()[-1] == (
        "ta-lint: error: ZeroDivisionError, a bug in ta-lint: please report the traceback above"
    )


def test_what_there_is_to_report_of_an_exception_of_ours_is_no_page(tmp_path: Path) -> None:
    """A6: 12.8 MB they were."""
    (tmp_path / "train.py").write_text("import torch\n")
    code = (
        "import sys, ta_lint.runner, ta_lint.cli\n"
        "def lint_files(*_): down(200)\n"
        "def down(depth): return 1 / depth + further(depth - 1)\n"
        "def further(depth): return down(depth)\n"
        "ta_lint.runner.lint_files = lint_files\n"
        "sys.exit(ta_lint.cli.main(['check']))"
    )
    ran = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert "ZeroDivisionError: division by zero" in ran.stderr
    assert ran.stderr.count("\n") < 20
