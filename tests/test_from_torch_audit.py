"""What `docs/from-torch-audit.md` promises users of torch-audit 0.3.0: each of its names is there, and the code runs."""

import re
from collections.abc import Iterator
from functools import partial
from importlib import import_module
from operator import attrgetter
from pathlib import Path

import commands
import pytest
import torch
from commands import at_once

from ta_runtime import Auditor, ConsoleReporter

PAGE = (Path(__file__).parents[1] / "docs" / "from-torch-audit.md").read_text(encoding="utf-8")
ROWS = [row.strip("| ").split(" | ") for row in PAGE.splitlines() if row.startswith("| `")]
BLOCKS = dict(re.findall(r"```python (\w+)\n(.*?)```", PAGE, re.DOTALL))

OF_TORCH_AUDIT = """
    torch_audit.Auditor torch_audit.AuditResult torch_audit.Finding torch_audit.Phase torch_audit.Rule torch_audit.Severity
    torch_audit.audit torch_audit.audit_dynamic torch_audit.audit_step torch_audit.autopatch torch_audit.runtime.Auditor
    torch_audit.reporters.base.Reporter torch_audit.reporters.console.ConsoleReporter
    torch_audit.reporters.json.JSONReporter torch_audit.reporters.sarif.SARIFReporter
    attach audit_data audit_init audit_static backward detach findings forward optimizer_step pop_new_findings unpatch
    batch_extractor show_suppressed strict suppress_internal_errors validators
    --explain --list-rules --phase
""".split()
"""Its public names, the methods of its `Auditor`, and those arguments and options that are not ours."""


@pytest.mark.parametrize("name", OF_TORCH_AUDIT)
def test_each_name_has_a_row_that_says_what_replaces_it(name: str) -> None:
    """D8."""
    assert any(re.search(rf"(?<!\w){re.escape(name)}\b", theirs) for theirs, _ in ROWS)


MODELS = """\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 16, 3), nn.BatchNorm2d(16))

    def forward(self, x):
        return self.stem(x)
"""

COMMANDS = [
    (theirs.strip("`"), re.match(r"`([^`]+)`", ours)[1])  # type: ignore[index]
    for theirs, ours in ROWS
    if theirs.startswith("`torch-audit ")
]


def test_each_command_of_its_readme_works_with_only_its_name_changed(tmp_path: Path) -> None:
    """D38. Also without `audit`."""
    (tmp_path / "models.py").write_text(MODELS)
    assert len(COMMANDS) == 11
    for theirs, ours in COMMANDS:
        assert ours == theirs.replace("torch-audit", "ta-runtime audit")
        for words in (ours.split()[1:], ours.split()[2:])[: 1 + ("static" not in theirs)]:
            ran = commands.warm(tmp_path, "-m", "ta_runtime", *words)
            assert (
                ran.returncode,
                ran.stderr.replace("ta-runtime: recorded 1 finding in baseline.json\n", ""),
            ) == (0, ""), ours
            if "--list-rules" in words:
                assert "TA405  dead-filter" in ran.stdout
            elif "--explain" in words:
                assert ran.stdout.startswith("# TA405: dead-filter\n")
            elif "-o" in words:
                assert "TA400" in (tmp_path / words[-1]).read_text()
            elif "init" in words:
                assert "models:Net gives no optimizer to look at" in ran.stdout
            elif "--baseline" in words and "--update-baseline" not in words:
                assert ran.stdout == "All checks passed (1 in the baseline).\n"
            elif "--select" in words:
                assert ran.stdout == "All checks passed.\n"
            elif "--update-baseline" not in words:
                assert "TA400 note" in ran.stdout


@pytest.mark.parametrize(
    "option", "--format --fail-level --step --show-suppressed --ignore-internal-errors".split()
)
def test_each_option_that_means_something_else_has_a_row(option: str) -> None:
    assert re.search(rf"^\| (several )?`{option}` \|", PAGE, re.MULTILINE)


def names() -> Iterator[str]:
    for _, ours in ROWS:
        yield from re.findall(r"`((?:ta_runtime|ta_lint)\.[\w.]+)`", ours)


@pytest.mark.parametrize("name", sorted(set(names())))
def test_each_name_that_takes_the_place_of_one_is_there(name: str) -> None:
    package = re.match(r"ta_lint\.core\.\w+|ta_runtime\.reporters|ta_runtime", name)
    assert package is not None
    assert attrgetter(name.removeprefix(f"{package[0]}."))(import_module(package[0]))


def test_the_code_of_the_page_runs_and_finds_what_it_marks(tmp_path: Path) -> None:
    """D8: also an `Auditor` in a callback, which checks a batch in the middle of the framework's loop."""
    pytest.importorskip("lightning")
    pytest.importorskip("accelerate")
    for name, code in BLOCKS.items():
        (tmp_path / f"use_{name}.py").write_text(code)
    runs = [partial(commands.warm, tmp_path, f"use_{name}.py") for name in BLOCKS]
    for (name, code), ran in zip(BLOCKS.items(), at_once(runs), strict=True):
        assert ran.returncode == 0, ran.stderr
        [line] = [number for number, text in enumerate(code.splitlines(), 1) if "# TA401" in text]
        assert f"use_{name}.py:{line}: TA401" in ran.stderr
        assert "TA000" not in ran.stderr
        assert "Traceback" not in ran.stderr


def test_the_console_reporter_tells_a_result_as_the_demos_ask_it_to(
    capsys: pytest.CaptureFixture[str],
) -> None:
    model = torch.nn.Linear(4, 2)
    optimizer = torch.optim.Adam(model.parameters(), weight_decay=0.1)
    with Auditor(model, optimizer=optimizer) as auditor:
        auditor.audit_static(step=0)
        auditor.audit_init(step=0)
    ConsoleReporter().report(auditor.finish(report=False))
    assert "TA401" in capsys.readouterr().err
