"""The demos of the run end as they would without it, and give exactly the findings they mark; cured, none."""

import json
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import commands
import pytest
from commands import warm

pytest.importorskip("torch")

ROOT = Path(__file__).parents[1]
EXAMPLES = sorted((ROOT / "examples" / "runtime").glob("*.py"))
_MARK = re.compile(r"#\s*runtime:(?P<rules>(?: TA\d{3})+)")
_ENABLE = re.compile(r"^(import ta_runtime|ta_runtime\.enable\(.*\))$", re.MULTILINE)
_CURE = re.compile(r"^(?P<indent> *)# cured: (?P<code>.*)\n", re.MULTILINE)

by_example = pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)


@dataclass(frozen=True)
class Ran:
    """How a script ended. `findings` are (line, rule) of those that count; `foreign` the files of those elsewhere."""

    status: int
    printed: str
    complaints: str
    findings: frozenset[tuple[int, str]]
    foreign: frozenset[str]


def ran(code: str, name: str, folder: Path, *command: str, start: Callable[..., commands.Ran] = warm) -> Ran:
    """Run a script of this text in a project of its own, `folder`, as `python script` or by another command."""
    script = folder / "examples" / "runtime" / name
    script.parent.mkdir(parents=True, exist_ok=True)
    script.write_text(code)
    relative = script.relative_to(folder).as_posix()
    done = start(folder, *command, relative, timeout=300)
    report = folder / "ta-runtime.sarif"
    results = json.loads(report.read_text())["runs"][0]["results"] if report.exists() else []
    places = [(result["locations"][0]["physicalLocation"], result["ruleId"]) for result in results]
    own = {
        (place["region"]["startLine"], rule)
        for place, rule in places
        if place["artifactLocation"]["uri"] == relative
    }
    foreign = {place["artifactLocation"]["uri"] for place, _ in places} - {relative}
    return Ran(done.returncode, done.stdout, done.stderr, frozenset(own), frozenset(foreign))


def marked(code: str) -> set[tuple[int, str]]:
    return {
        (number, rule)
        for number, line in enumerate(code.splitlines(), 1)
        for mark in _MARK.finditer(line)
        for rule in mark["rules"].split()
    }


def without(code: str) -> str:
    """The script as it was before the audit, with every other line where it was."""
    return _ENABLE.sub("", code)


def cured(code: str) -> str:
    """The script with each comment `# cured: code` in place of the line below it."""
    return re.sub(_CURE.pattern + r".*\n", r"\g<indent>\g<code>\n\n", code, flags=re.MULTILINE)


@by_example
def test_a_demo_gives_exactly_the_findings_it_marks_and_ends_as_without(path: Path, tmp_path: Path) -> None:
    code = path.read_text()
    before = ran(without(code), path.name, tmp_path)
    audited = ran(code, path.name, tmp_path)
    assert (before.status, audited.status) == (0, 0), audited.complaints
    assert before.findings == frozenset()
    assert audited.findings == marked(code)
    assert audited.foreign == frozenset()
    assert audited.printed == before.printed  # every digit of every loss


@by_example
def test_a_cured_demo_gives_no_finding(path: Path, tmp_path: Path) -> None:
    code = cured(path.read_text())
    assert code.count("\n") == path.read_text().count("\n")
    audited = ran(code, path.name, tmp_path)
    assert audited.status == 0, audited.complaints
    assert audited.findings == audited.foreign == frozenset()  # type: ignore[comparison-overlap]
    assert "All checks passed" in audited.complaints


@pytest.mark.parametrize("name", ["plain_loop.py", "lightning_run.py"])
def test_the_command_finds_the_same_in_the_script_as_it_was(name: str, tmp_path: Path) -> None:
    code = (ROOT / "examples" / "runtime" / name).read_text()
    command = ["-m", "ta_runtime", "run", "--every=20", "--output=ta-runtime.sarif"]
    audited = ran(without(code), name, tmp_path, *command)
    assert audited.status == 0, audited.complaints
    assert audited.findings == marked(code)
    assert audited.foreign == frozenset()


def test_the_page_shows_what_a_demo_prints(tmp_path: Path) -> None:
    """But for what the floating point of a machine may change, and the blanks at the ends of the table's lines."""
    shown = re.search(
        r"```console\n\$ python examples/runtime/(.+)\n((?:.*\n)*?)```",
        (ROOT / "docs" / "runtime.md").read_text(),
    )
    assert shown is not None
    code = (ROOT / "examples" / "runtime" / shown[1]).read_text()

    def terminal(folder: Path, name: str, timeout: float) -> commands.Ran:
        command = ["/bin/sh", "-c", f'exec {sys.executable} -u "$0" 2>&1', name]
        done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, text=True, timeout=timeout)
        return commands.Ran(done.returncode, done.stdout, "")

    audited = ran(code, shown[1], tmp_path, start=terminal)

    def told(text: str) -> list[str]:
        return [re.sub(r"\d\.\d{3,}", "#", line).rstrip() for line in text.splitlines()]

    assert told(audited.printed) == told(shown[2])


def test_the_auditor_of_the_page_works_as_it_is_written(tmp_path: Path) -> None:
    [snippet] = re.findall(
        r"```python\n(from ta_runtime import Auditor\n.*?)```",
        (ROOT / "docs" / "runtime.md").read_text(),
        re.DOTALL,
    )
    code = (
        "import torch\n"
        "model = torch.nn.Linear(4, 1)\n"
        "optimizer = torch.optim.Adam(model.parameters(), weight_decay=0.1)\n"
        "criterion = torch.nn.MSELoss()\n"
        "loader = [(torch.randn(16, 4), torch.randn(16)) for _ in range(4)]\n"
        f"{snippet}"
        "print(*(f'{finding.rule}:{finding.site.line}' for finding in auditor.findings))\n"
    )
    (tmp_path / "train.py").write_text(code)
    ran = warm(tmp_path, "train.py")
    assert ran.returncode == 0, ran.stderr
    loss_line = code.splitlines().index("        loss = criterion(auditor.forward(inputs), targets)") + 1
    assert f"TA316:{loss_line}" in ran.stdout
