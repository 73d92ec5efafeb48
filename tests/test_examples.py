"""The example scripts run to their end, and the linter finds exactly what they mark."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from commands import ta_runtime, warm

ROOT = Path(__file__).parents[1]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
_MARK = re.compile(r"#\s*(?P<observer>static|opt-in): (?P<rules>TA\d{3}(?: TA\d{3})*)")

NO_NUMPY = "ignore:Failed to initialize NumPy"  # torch works without it and says so


def marked(*observers: str) -> set[tuple[str, int, str]]:
    return {
        (path.relative_to(ROOT).as_posix(), number, rule)
        for path in sorted((ROOT / "examples").rglob("*.py"))
        for number, line in enumerate(path.read_text().splitlines(), 1)
        for mark in _MARK.finditer(line)
        if mark["observer"] in observers
        for rule in mark["rules"].split()
    }


def found(*arguments: str) -> set[tuple[str, int, str]]:
    command = [
        sys.executable,
        "-m",
        "ta_lint",
        "check",
        "--isolated",
        "--format=json",
        *arguments,
        "examples",
    ]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    return {(item["path"], item["line"], item["rule"]) for item in json.loads(ran.stdout)}


def test_the_default_rules_find_what_the_examples_mark() -> None:
    assert found() == marked("static")


def test_the_opt_in_rules_on_performance_find_the_rest() -> None:
    assert found("--extend-select=TA204") == marked("static", "opt-in")


def test_the_readme_shows_what_the_command_prints() -> None:
    shown = re.search(r"```console\n\$ ta-lint (.+)\n((?:.*\n)*?)```", (ROOT / "README.md").read_text())
    assert shown is not None
    command = [sys.executable, "-m", "ta_lint", *shown[1].split()]
    assert subprocess.run(command, cwd=ROOT, capture_output=True, text=True).stdout == shown[2]


def test_the_readme_shows_the_verdicts_of_a_run(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    shown = re.search(
        r"```console\n\$ ta-runtime (run --lint (\S+))\n((?:.*\n)*?)```", (ROOT / "README.md").read_text()
    )
    assert shown is not None
    log = tmp_path / "verdicts.json"
    command, *words = shown[1].split()
    ran = ta_runtime(ROOT, command, "--output", str(log), *words)
    assert ran.returncode == 0, ran.stderr
    told = ran.stderr.replace(f" The report is in {os.path.relpath(log, ROOT)}.", "")
    told = re.sub(r"Looked at \d+ of", "Looked at 4 of", told)  # as many as the machine can afford
    assert told.endswith(shown[3])
    marks = re.finditer(r"#\s*(confirmed|refuted|unobserved): (TA\d{3})", (ROOT / shown[2]).read_text())
    found = {(item["verdict"], item["rule"]) for item in json.loads(log.read_text())}
    assert found == {(mark[1], mark[2]) for mark in marks}


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_an_example_runs_to_its_end(path: Path, tmp_path: Path) -> None:
    """Silently wrong is the point: not one of them raises."""
    pytest.importorskip("torch")
    ran = warm(tmp_path, "-W", "error", "-W", NO_NUMPY, str(path))
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout
