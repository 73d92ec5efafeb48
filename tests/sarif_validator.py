"""Microsoft's SARIF validator, as the tests call it: `npm install @microsoft/sarif-multitool` brings it."""

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

_CHECKOUT = Path(__file__).resolve().parents[1]


# What the validator may remark, and why we leave it so. Nothing that it calls a warning or an error is here.
ALLOWED = {
    "SARIF2002": "messages hold names from the code; ids and arguments would serve translation, which we do not offer",
    "SARIF2003": "the uploader knows the repository and the commit, and adds them",
    "SARIF2006": "it asks the network for each helpUri; not every machine that tests has one",
    "SARIF2010": "snippets double the file, and the readers have the source",
    "SARIF2011": "context regions likewise",
}


def unexplained(remarks: list[str], explained: dict[str, str] | None = None) -> list[str]:
    """The remarks that neither `ALLOWED` nor the test explains."""
    known = ALLOWED | (explained or {})
    return [remark for remark in remarks if remark.split()[1].rstrip(":") not in known]


def find_multitool() -> str | None:
    """The validator's command: from SARIF_MULTITOOL, the PATH or the checkout's own node_modules."""
    local = _CHECKOUT / "node_modules" / ".bin" / "sarif-multitool"
    return os.environ.get("SARIF_MULTITOOL") or shutil.which("sarif-multitool") or shutil.which(local)


def validate(sarif: str, directory: Path) -> list[str]:
    """Everything that SARIF's own rules and GitHub's say about a log, such as `warning SARIF1001: ...`.

    Skips the test if the validator is not installed, but fails it in CI, where it must be.
    """
    multitool = find_multitool()
    if multitool is None and os.environ.get("CI") == "true":
        pytest.fail("sarif-multitool is not installed")
    if multitool is None:
        pytest.skip("sarif-multitool is not installed")
    (directory / "log.sarif").write_text(sarif, encoding="utf-8")
    return [*_run(multitool, directory), *_run(multitool, directory, "--rule-kind", "Ghas")]


def _run(multitool: str, directory: Path, *options: str) -> list[str]:
    output = directory / "remarks.sarif"
    output.unlink(missing_ok=True)
    # not "Error;Warning;Note", as its help has it: the npm wrapper hands its arguments to a shell
    levels = ["--level", "Error", "Warning", "Note"]
    command = [multitool, "validate", "log.sarif", *options, *levels, "--output", output.name]
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert output.is_file(), done.stdout + done.stderr
    run = json.loads(output.read_text(encoding="utf-8-sig"))["runs"][0]
    invocation = run.get("invocations", [{}])[0]
    assert not invocation.get("toolExecutionNotifications"), invocation
    assert not invocation.get("toolConfigurationNotifications"), invocation
    rules = run["tool"]["driver"].get("rules", [])
    return [_line(result, rules[result["ruleIndex"]]) for result in run.get("results", [])]


def _line(result: dict[str, Any], rule: dict[str, Any]) -> str:
    text = rule["messageStrings"][result["message"]["id"]]["text"]
    for position, argument in enumerate(result["message"].get("arguments", [])):
        text = text.replace(f"{{{position}}}", argument)
    return f"{result.get('level', 'warning')} {result['ruleId']}: {text}"
