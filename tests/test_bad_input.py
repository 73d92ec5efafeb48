"""Whatever a file or a setting holds: one clear line, the right exit status, findings elsewhere, never a traceback."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BUGGY = "import torch\noptimizer = torch.optim.Adam(model.parameters(), weight_decay=0.1)\n"


def check(folder: Path, *arguments: str, select: str = "TA401,TA001") -> subprocess.CompletedProcess[str]:
    """Run the command as a user does, in a folder."""
    command = [sys.executable, "-m", "ta_lint", "check", f"--select={select}", "--format=concise", *arguments]
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, encoding="utf-8", timeout=120)
    assert "Traceback" not in ran.stderr + ran.stdout, ran.stderr
    assert "TA000" not in ran.stdout
    return ran


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with one file that has one finding, whatever stands beside it."""
    (tmp_path / "good.py").write_text(BUGGY)
    return tmp_path


UNREADABLE = {
    "not UTF-8": (b"import torch\nname = '\xe9'\n", "2:9", "byte 0xe9 is not utf-8"),
    "an unknown encoding": (b"# coding: klingon\nimport torch\n", "1:1", "unknown encoding: klingon"),
    "a NUL byte": (b"import torch\nx = 1\0\n", "2:6", "NUL byte"),
    "UTF-16": ("import torch\n".encode("utf-16"), "1:1", "UTF-16"),
    "Python 2": (b"import torch\nprint 'loss', loss\n", "2:1", "Missing parentheses in call to 'print'"),
    "an assignment to a literal": (
        b"import torch\n1 = x\n",
        "2:1",
        "Python cannot parse this: cannot assign to literal",
    ),
    "no syntax at all (N14)": (b"import torch\n) = 1\n", "2:1", "Python cannot parse this: unmatched ')'"),
    "an escape that is none": (b"import torch\nx = '\\x'\n", "2:9", "truncated \\xXX escape"),
    "a number of 5,000 digits": (b"import torch\nx = 1" + b"0" * 5000 + b"\n", "2:1", "Exceeds the limit"),
    "an encoding of host names (A10)": (
        b"# coding: idna\nimport torch\n# " + b"a" * 70 + b"\n",
        "1:1",
        "idna is for host names, not for text",
    ),
    "a codec that is not for text (A10)": (
        b"# coding: uu\nimport torch\n",
        "1:1",
        "'uu' is not a text encoding",
    ),
    "20,000 operands (A6)": (
        BUGGY.encode() + b"x = torch.load('a', weights_only=False)" + b" and a" * 20_000 + b"\n",
        "1:1",
        "it is nested 20,0",
    ),
    "no end": (b"import torch\nx = (1,\n", "2:5", "was never closed"),
    "tabs and spaces mixed": (
        b"import torch\nif x:\n\ty = 1\n        z = 2\n",
        "4:",
        "inconsistent use of tabs",
    ),
    "500 nested parentheses": (
        b"import torch\nx = " + b"(" * 500 + b"1" + b")" * 500 + b"\n",
        "2:",
        "too many nested parentheses",
    ),
    "500 nested blocks": (
        b"import torch\n" + b"".join(b" " * n + b"if x:\n" for n in range(500)) + b" " * 500 + b"pass\n",
        "",
        "too many levels of indentation",
    ),
}


@pytest.mark.parametrize("case", UNREADABLE)
def test_a_file_that_cannot_be_read_is_one_finding_and_the_others_are_checked(
    folder: Path, case: str
) -> None:
    data, place, reason = UNREADABLE[case]
    passes_the_gate = "# Adam(weight_decay=1)\n"
    trailer = passes_the_gate.encode("utf-16-le" if case == "UTF-16" else "utf-8")
    (folder / "bad.py").write_bytes(data + trailer)
    ran = check(folder)
    lines = ran.stdout.splitlines()
    assert lines[0].startswith(f"bad.py:{place}")
    assert "TA001 error: " in lines[0]
    assert reason in lines[0]
    assert lines[1].startswith("good.py:2:13: TA401")
    assert ran.returncode == 1


READABLE = {
    "a byte-order mark": "\ufeff".encode() + BUGGY.encode(),
    "a declared encoding": b"# -*- coding: latin-1 -*-\nname = '\xe9'\n" + BUGGY.encode(),
    "CRLF": BUGGY.replace("\n", "\r\n").encode(),
    "old Macintosh line ends": BUGGY.replace("\n", "\r").encode(),
    "a form feed": BUGGY.replace("optimizer", "\x0c\noptimizer").encode(),
    "no final newline": BUGGY.rstrip().encode(),
    "a sum of 2,000 terms": BUGGY.encode() + b"x = " + b" + ".join([b"1"] * 2000) + b"\n",
    "4,000 operands, which libcst would read for minutes (A14)": BUGGY.strip().encode()
    + b" + a" * 4_000
    + b"\n",
    "an elif chain of 1,000": BUGGY.encode() + b"if x:\n pass\n" + b"elif y:\n pass\n" * 1000,
    "100 nested lists": BUGGY.encode() + b"x = " + b"[" * 100 + b"]" * 100 + b"\n",
}


@pytest.mark.parametrize("case", READABLE)
def test_an_odd_but_valid_file_gets_its_findings(tmp_path: Path, case: str) -> None:
    (tmp_path / "odd.py").write_bytes(READABLE[case])
    ran = check(tmp_path, "--format=json")
    (finding,) = json.loads(ran.stdout)
    lines = READABLE[case].decode("latin-1").replace("\r\n", "\n").replace("\r", "\n").split("\n")
    assert finding["rule"] == "TA401"
    assert lines[finding["line"] - 1].lstrip("\x0c").startswith("optimizer")
    assert finding["column"] == 13


NEWER = "type X = int\nf'{'a'}'\ndef f[T](x: T) -> T: ...\n"


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="this Python reads it")
def test_a_file_for_a_newer_python_is_read_but_not_run_and_says_so(tmp_path: Path) -> None:
    (tmp_path / "odd.py").write_text(NEWER + BUGGY + "model = torch.nn.Linear(1, 1)\nmodel.eval\n")
    ran = check(tmp_path, "--format=json", select="TA401,TA603,TA001")
    found = [(item["rule"], item["severity"], item["line"]) for item in json.loads(ran.stdout)]
    assert found == [("TA001", "note", 1), ("TA603", "error", 7)]
    assert "does not run it dry: lint it with the Python that it is for" in ran.stdout


FORMER = """import torch
from torch import nn

model = nn.Linear(4, 1)
optimizer = torch.optim.Adam(model.parameters(), weight_decay=0.1)
for x, y in batches:  # é: the argument async=True
    x, y = x.cuda(async=True), y.cuda(async = True)
    optimizer.zero_grad()
    loss = (model(x) - y).square().mean()
    print("é, async=False", loss, loss.to("cpu", async=True).data[0])
    loss.backward()
    optimizer.step()
model.eval
"""


def test_an_argument_named_async_hides_nothing_else(tmp_path: Path) -> None:
    """It was the name of one until Python 3.6."""
    (tmp_path / "old.py").write_text(FORMER)
    select = "TA001,TA401,TA509,TA600,TA603,TA912"
    found = [
        (item["rule"], item["line"], item["column"])
        for item in json.loads(check(tmp_path, "--format=json", select=select).stdout)
    ]
    column = FORMER.splitlines()[9].index("loss.to") + 1
    assert found == [("TA401", 5, 13), ("TA001", 7, 19), ("TA912", 10, column), ("TA603", 13, 1)]
    check(tmp_path, "--fix", "--unsafe-fixes", select=select)
    fixed = (tmp_path / "old.py").read_text()
    assert 'loss.to("cpu", async=True).item())' in fixed
    assert fixed.count("async") == FORMER.count("async")
    assert "model.eval()" in fixed


def test_what_was_never_python_stays_unreadable(tmp_path: Path) -> None:
    (tmp_path / "old.py").write_text(FORMER + "x = (\n")
    ran = check(tmp_path, "--format=json", select="TA001,TA401")
    assert [item["rule"] for item in json.loads(ran.stdout)] == ["TA001"]


NOTEBOOKS = {
    "no code": {"cells": [{"cell_type": "markdown", "source": "torch"}]},
    "no cells": {"cells": [], "metadata": {"title": "torch"}},
    "another language": {
        "cells": [{"cell_type": "code", "source": "library(torch)"}],
        "metadata": {"kernelspec": {"language": "R"}},
    },
    "an old one without worksheets": {"worksheets": [], "metadata": {"title": "torch"}},
}


@pytest.mark.parametrize("case", NOTEBOOKS)
@pytest.mark.parametrize("mode", ["--fix", "--diff"])
def test_a_notebook_without_python_stops_no_fix(tmp_path: Path, case: str, mode: str) -> None:
    """A1: it ended both with a `ValueError`."""
    (tmp_path / "a.ipynb").write_text(json.dumps(NOTEBOOKS[case]))
    before = (tmp_path / "a.ipynb").read_bytes()
    (tmp_path / "good.py").write_text("import torch\nmodel = torch.nn.Linear(1, 1)\nmodel.eval\n")
    ran = check(tmp_path, mode, "--unsafe-fixes", select="TA603,TA001")
    assert "ixed 1 finding in 1 file." in ran.stdout + ran.stderr
    assert "warning" not in ran.stderr
    assert (tmp_path / "a.ipynb").read_bytes() == before
    assert (mode == "--fix") == ("model.eval()" in (tmp_path / "good.py").read_text())


def test_a_diff_says_which_files_could_not_be_read(folder: Path) -> None:
    (folder / "bad.py").write_text("import torch\nx = (\n")
    ran = check(folder, "--diff")
    assert ran.stderr.startswith(
        "ta-lint: warning: bad.py:2:5: Python cannot parse this: '(' was never closed\n"
    )


def test_an_encoding_that_only_reads_is_not_fixed(folder: Path) -> None:
    (folder / "odd.py").write_bytes(
        b"# coding: mac_arabic\nimport torch\nmodel = torch.nn.Linear(1, 1)\nmodel.eval\n"
    )
    ran = check(folder, "--fix", "--unsafe-fixes", select="TA603")
    assert ran.stderr == (
        "ta-lint: warning: odd.py: not fixed: its encoding would not give the same bytes back\n"
    )


def test_an_empty_file_is_clean(tmp_path: Path) -> None:
    (tmp_path / "empty.py").touch()
    assert check(tmp_path).returncode == 0


def test_five_megabytes_are_read(tmp_path: Path) -> None:
    table = "".join(f"row_{number} = '{'x' * 1000}'\n" for number in range(5_000))
    assert len(table) > 5_000_000
    (tmp_path / "large.py").write_text(table + BUGGY)
    assert check(tmp_path).stdout.startswith("large.py:5002:13: TA401")


def test_dangling_and_circular_links_are_findings(folder: Path) -> None:
    (folder / "dangling.py").symlink_to("nowhere.py")
    (folder / "circular.py").symlink_to("circular.py")
    (folder / "loop").symlink_to(".")
    lines = check(folder).stdout.splitlines()
    assert lines[0].startswith(
        "circular.py:1:1: TA001 error: cannot read the file: Too many levels of symbolic links"
    )
    assert lines[1].startswith(
        "dangling.py:1:1: TA001 error: cannot read the file: No such file or directory"
    )
    assert lines[2].startswith("good.py:2:13: TA401")


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_file_without_permission_is_a_finding(folder: Path) -> None:
    (folder / "secret.py").touch(mode=0o000)
    assert "secret.py:1:1: TA001 error: cannot read the file: Permission denied" in check(folder).stdout


def test_a_file_that_vanishes_is_a_finding(folder: Path) -> None:
    """It is there when the folder is listed and gone when its turn comes."""
    from ta_lint.core.config import Configs, Options
    from ta_lint.discovery import discover
    from ta_lint.runner import lint_files

    (folder / "gone.py").write_text(BUGGY)
    files = discover([folder], Configs(Options(select=["TA401"]), folder), folder)
    (folder / "gone.py").unlink()
    found = {finding.site.path: finding.rule for _, findings in lint_files(files, 1) for finding in findings}
    assert found == {"gone.py": "TA001", "good.py": "TA401"}


def test_a_folder_that_cannot_be_listed_is_a_finding(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Root may list every folder, so the refusal is the operating system's in name only."""
    from ta_lint.core.config import Configs, Options
    from ta_lint.discovery import discover
    from ta_lint.runner import lint_files

    (folder / "secret").mkdir()
    scandir = os.scandir

    def refuse(path: Path) -> object:
        if Path(path).name == "secret":
            raise PermissionError(13, "Permission denied")
        return scandir(path)

    monkeypatch.setattr("os.scandir", refuse)
    files = discover([folder], Configs(Options(select=["TA401"]), folder), folder)
    found = {
        finding.site.path: finding.message for _, findings in lint_files(files, 1) for finding in findings
    }
    assert found["secret"] == "the folder cannot be listed"
    assert found["good.py"].startswith("`Adam`")


def test_a_named_pipe_is_not_waited_for(folder: Path) -> None:
    os.mkfifo(folder / "pipe.py")
    ran = check(folder)
    assert "pipe.py:1:1: TA001 error: not a regular file" in ran.stdout
    assert "good.py:2:13: TA401" in ran.stdout


def _huge(path: Path) -> None:
    path.touch()
    os.truncate(path, 8 << 30)


ENDLESS: dict[str, Callable[[Path], None]] = {
    "a pipe": os.mkfifo,
    "the log of the kernel": lambda path: path.symlink_to("/proc/kmsg"),
    "zeros": lambda path: path.symlink_to("/dev/zero"),
    "a terminal": lambda path: path.symlink_to("/dev/tty"),
    "a file of the kernel": lambda path: path.symlink_to("/proc/self/pagemap"),
    "what is 8 GB large": _huge,
}
PLACES = (
    "train.py", "model.ipynb", "requirements.txt", "requirements/base.txt", "README.md", "setup.cfg", "setup.py", ".gitignore",
    "environment.yml", "pkg/__init__.py", "helpers.py",
)  # fmt: skip


@pytest.mark.parametrize("endless", ENDLESS)
def test_nothing_that_lies_in_a_folder_is_waited_for(folder: Path, endless: str) -> None:
    """D10: a link to `/proc/kmsg` blocked for ever, as it is a regular file; any file that a run reads may be one."""
    (folder / "good.py").write_text(f"from helpers import *\nfrom pkg import *\n{BUGGY}")
    for place in PLACES:
        (folder / place).parent.mkdir(exist_ok=True)
        ENDLESS[endless](folder / place)
    assert "good.py:4:13: TA401" in check(folder, "--no-cache").stdout
    assert "good.py:4:13: TA401" in check(folder).stdout
    assert "good.py:4:13: TA401" in check(folder).stdout


@pytest.mark.parametrize("words", [["--config=odd"], ["--baseline=odd"], []])
@pytest.mark.parametrize("endless", ENDLESS)
def test_no_settings_and_no_baseline_are_waited_for(folder: Path, endless: str, words: list[str]) -> None:
    """D10: each is either refused in one line or counts as empty."""
    ENDLESS[endless](folder / ("odd" if words else "ta-lint.toml"))
    ran = check(folder, *words)
    assert ran.returncode in (1, 2)
    assert ran.stderr.count("\n") <= 1


def test_one_function_opens_the_files_of_users() -> None:
    """D10: `core.reading.read`. The others read files of ours: pages, tables, the key, and our own modules."""
    own = {"core/reading.py", "core/catalogue.py", "core/data.py", "core/keys.py", "cli.py", "cache.py"}
    own |= {"core/files.py", "dryrun/stubs/programs.py"}  # it writes; and ours again
    opens = re.compile(r"(?<![\w.])(?<!def )open\(|os\.open\(|\.open\(\"|\.read_(?:bytes|text)\(")
    package = ROOT / "ta_lint"
    found = {
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        if "checks" not in path.parts and opens.search(path.read_text())
    }
    assert found <= own, found - own


@pytest.mark.parametrize("comment", [b"# caf\xe9", b"# \xb5\xda\xd2\xbb", b"name = '\xe9'"])
def test_a_byte_that_is_not_utf_8_is_reported_and_the_rest_is_read(tmp_path: Path, comment: bytes) -> None:
    """D14: Python imports a module with such a comment, and its bugs went unread."""
    text = (
        b"import torch\n" + comment + b"\n" + BUGGY.encode() + b"model = torch.nn.Linear(1, 1)\nmodel.eval\n"
    )
    (tmp_path / "odd.py").write_bytes(text)
    lines = check(tmp_path).stdout.splitlines()
    assert lines[0].startswith("odd.py:2:")
    assert "TA001 error: byte 0x" in lines[0]
    assert lines[1].startswith("odd.py:4:13: TA401")
    ran = check(tmp_path, "--fix", "--unsafe-fixes", select="TA603")
    assert "odd.py: not fixed: its encoding would not give the same bytes back" in ran.stderr
    assert (tmp_path / "odd.py").read_bytes() == text


USAGE = {
    "a path that does not exist": (["nowhere.py"], {}, "nowhere.py: no such file or folder"),
    "an unknown rule": (
        ["--select=TA6000"],
        {},
        "--select: no rule, prefix, tag or alias is called 'TA6000'; did you mean TA600?",
    ),
    "a name nearly right": (["--select=adam-with-weight-decey"], {}, "did you mean adam-with-weight-decay?"),
    "an unknown key": ([], {"selct": ["TA401"]}, "[tool.ta] has no key 'selct'; did you mean select?"),
    "a key like no other": ([], {"zzz": 3}, "[tool.ta] has no key 'zzz'; the keys are select,"),
    "nearly a level": (
        [],
        {"fail-level": "warn"},
        "fail-level: invalid enum value 'warn'; did you mean warning?",
    ),
    "a wrong type": ([], {"exclude": "build"}, "[tool.ta] exclude: expected `array`, got `str`"),
    "a wrong item": ([], {"select": [1]}, "[tool.ta] select[0]: expected `str`, got `int`"),
    "an unknown rule in the settings": ([], {"ignore": ["TA999"]}, "called 'TA999'"),
    "a wrong level": (
        [],
        {"fail-level": "fatal"},
        "[tool.ta] fail-level: invalid enum value 'fatal', it is one of note, warning, error",
    ),  # N19
    "a wrong version": (["--target-torch=two"], {}, "--target-torch: 'two' is not a version such as 2.6"),
    "a version of 5,000 digits (A8)": (
        [],
        {"target-torch": "9" * 5000},
        "[tool.ta] target-torch: '9999999999999999999999999999999999999999' is not a version such as 2.6",
    ),
    "a missing configuration": (["--config=nowhere.toml"], {}, "--config: nowhere.toml is not a file"),
    "a missing baseline": (["--baseline=nowhere.json"], {}, "nowhere.json does not exist; write it with"),
    "an output folder that is missing": (
        ["--output=no/where.json"],
        {},
        "cannot write no/where.json: No such file",
    ),
    "an output that is a folder": (["--output=."], {}, "cannot write .: "),
    "a baseline update without a file": (["--update-baseline"], {}, "name the file with --baseline FILE"),
}


@pytest.mark.parametrize("case", USAGE)
def test_a_mistake_in_usage_is_one_line_with_the_remedy_and_status_2(folder: Path, case: str) -> None:
    arguments, table, message = USAGE[case]
    toml = "[tool.ta]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in table.items())  # type: ignore[attr-defined]
    (folder / "pyproject.toml").write_text(toml if table else "")
    select = [] if table else ["--select=TA401"] if not any("select" in word for word in arguments) else []
    command = [sys.executable, "-m", "ta_lint", "check", *select, *arguments]
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60)
    assert ran.returncode == 2
    assert message in ran.stderr
    assert ran.stderr.startswith("ta-lint: error: ")
    assert ran.stderr.count("\n") == 1


def test_a_corrupt_pyproject_is_named(folder: Path) -> None:
    (folder / "pyproject.toml").write_text("[tool.ta\n")
    ran = check(folder)
    assert ran.returncode == 2
    assert "pyproject.toml: not readable as TOML" in ran.stderr


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (f"[tool.ta]\nselect = {'[' * 100_000}{']' * 100_000}", "it is nested too deep"),
        (f"x = {'9' * 10_000}\n[tool.ta]", "an integer has more digits than Python reads"),
    ],
    ids=["deep", "long"],
)
def test_settings_that_are_too_much_for_their_reader_are_named(folder: Path, text: str, reason: str) -> None:
    """A8: a deep array, and an integer of 10,000 digits."""
    (folder / "pyproject.toml").write_text(text)
    ran = check(folder)
    assert ran.returncode == 2
    assert (
        ran.stderr
        == f"ta-lint: error: {folder.resolve() / 'pyproject.toml'}: not readable as TOML: {reason}\n"
    )


@pytest.mark.parametrize(
    "text",
    [
        f"project.dependencies = ['torch>={'9' * 5000}']",
        f"project.dependencies = ['torch>=2; {'(' * 3000}python_version>\"3\"{')' * 3000}']",
        f"tool.poetry.dependencies.torch = '^{'9' * 5000}'",
        "tool = 3",
        "project = 3",
        "[project]\ndependencies = 'torch'\noptional-dependencies = 3",
        "[tool]\npoetry = 1",
    ],
)
def test_what_other_tools_may_have_written_is_not_our_error(folder: Path, text: str) -> None:
    """A8: a dependency of 5,000 digits too, which is no requirement at all."""
    (folder / "pyproject.toml").write_text(text)
    assert check(folder).returncode == 1


def test_a_settings_table_that_is_none_is_named(folder: Path) -> None:
    (folder / "pyproject.toml").write_text("[tool]\nta = 3\n")
    ran = check(folder)
    assert ran.returncode == 2
    assert "pyproject.toml: [tool.ta]: expected `table`, got `int`" in ran.stderr


def test_a_line_of_gitignore_that_is_no_pattern_is_passed_over(folder: Path) -> None:
    (folder / "bad.py").write_text(BUGGY)
    (folder / ".gitignore").write_text("!\n[z-a]\nbad.py\n")
    ran = check(folder)
    assert [line.split(":")[0] for line in ran.stdout.splitlines() if ".py:" in line] == ["good.py"]


def test_a_path_that_is_too_long_is_named(folder: Path) -> None:
    ran = check(folder, "a" * 300)
    assert ran.returncode == 2
    assert ran.stderr == f"ta-lint: error: {folder.resolve() / ('a' * 300)}: File name too long\n"


def test_a_working_folder_that_is_gone_is_said_so(folder: Path) -> None:
    gone = folder / "gone"
    gone.mkdir()
    command = f'rmdir "{gone}"; exec "{sys.executable}" -m ta_lint check'
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    ran = subprocess.run(
        ["bash", "-c", command], cwd=gone, env=environment, capture_output=True, text=True, timeout=60
    )
    assert ran.returncode == 2
    assert ran.stderr == "ta-lint: error: the working folder does not exist any more\n"


@pytest.mark.parametrize("text", ["", "{", "[]", '{"version": 1}', '{"version": 2, "findings": []}', "\xff"])
def test_a_corrupt_baseline_is_named_with_the_remedy(folder: Path, text: str) -> None:
    (folder / "known.json").write_bytes(text.encode("latin-1"))
    ran = check(folder, "--baseline=known.json")
    assert ran.returncode == 2
    assert "baseline known.json" in ran.stderr
    assert ran.stderr.count("\n") == 1


def test_an_output_that_cannot_be_written_keeps_the_old_one(folder: Path) -> None:
    """The disk is full for our process alone: no file may grow."""
    (folder / "report.sarif").write_text("old")
    command = f'ulimit -f 0; exec "{sys.executable}" -m ta_lint check --select=TA401 --format=sarif --output=report.sarif'
    ran = subprocess.run(["bash", "-c", command], cwd=folder, capture_output=True, text=True, timeout=60)
    assert ran.returncode == 2
    assert "cannot write report.sarif: File too large" in ran.stderr
    assert (folder / "report.sarif").read_text() == "old"
    assert {path.name for path in folder.iterdir()} - {".ta_cache"} == {"good.py", "report.sarif"}


def test_ctrl_c_ends_the_run_without_a_traceback_or_a_report(tmp_path: Path) -> None:
    import signal
    import time

    slow = BUGGY + "x = [" + "(1, 2, 3), " * 100_000 + "]\n"
    for number in range(40):
        (tmp_path / f"slow_{number}.py").write_text(slow)
    command = [sys.executable, "-m", "ta_lint", "check", "--select=TA401", "--jobs=2", "--output=report.txt"]
    started = subprocess.Popen(
        command,
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(
            signal.SIGINT, signal.SIG_DFL
        ),  # a shell's background job ignores it
    )
    try:
        time.sleep(2)
        os.killpg(started.pid, signal.SIGINT)
        out, err = started.communicate(timeout=30)
    finally:
        if started.poll() is None:
            os.killpg(started.pid, signal.SIGKILL)
    assert started.returncode == 130
    assert err == "ta-lint: interrupted, nothing was written\n"
    assert out == ""
    assert not (tmp_path / "report.txt").exists()


def test_a_reader_that_goes_away_is_no_error(folder: Path) -> None:
    command = f'"{sys.executable}" -m ta_lint check --select=TA401 | true'
    ran = subprocess.run(["bash", "-c", command], cwd=folder, capture_output=True, text=True, timeout=60)
    assert ran.stderr == ""


def test_a_full_disk_behind_standard_output_is_one_line(folder: Path) -> None:
    command = f'"{sys.executable}" -m ta_lint check --select=TA401 > /dev/full'
    ran = subprocess.run(["bash", "-c", command], cwd=folder, capture_output=True, text=True, timeout=60)
    assert ran.returncode == 2
    assert ran.stderr == "ta-lint: error: cannot write the report: No space left on device\n"


def test_a_closed_standard_output_is_no_error(folder: Path) -> None:
    command = f'"{sys.executable}" -m ta_lint check --select=TA401 >&-'
    ran = subprocess.run(["bash", "-c", command], cwd=folder, capture_output=True, text=True, timeout=60)
    assert ran.returncode == 1
    assert ran.stderr == ""


@pytest.mark.parametrize("argument", ["--select=", "--ignore=,", ""])
def test_an_empty_argument_is_refused(folder: Path, argument: str) -> None:
    """An unset variable in a script must not come to mean no rules, or the whole folder."""
    command = [sys.executable, "-m", "ta_lint", "check", argument]
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60)
    assert ran.returncode == 2
    [line] = ran.stderr.splitlines()
    assert "no rule is named" in line or "the path is empty" in line


def test_findings_are_the_same_from_one_process_and_several(tmp_path: Path) -> None:
    for number in range(60):
        (tmp_path / f"train_{number}.py").write_text(BUGGY * (number % 3))
    one = check(tmp_path, "--jobs=1").stdout
    assert one.count("TA401") == 60
    assert check(tmp_path, "--jobs=2").stdout == one
