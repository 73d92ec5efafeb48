"""The ways in that torch-audit's users know: the code shapes of its README, with nothing changed but the imports."""

import copy
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import pytest
import torch
from sarif_validator import unexplained
from torch import nn

import ta_runtime
from ta_lint.core.errors import UsageError
from ta_lint.core.finding import Finding
from ta_runtime import (
    Auditor,
    ConsoleReporter,
    JSONReporter,
    SARIFReporter,
    audit_dynamic,
    audit_step,
    autopatch,
)
from ta_runtime.audit import Audit


@pytest.fixture(autouse=True)
def _project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def parts() -> tuple[nn.Module, torch.optim.Optimizer, list[tuple[torch.Tensor, torch.Tensor]]]:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-4, weight_decay=0.1)
    return model, optimizer, [(torch.randn(8, 4), torch.randint(0, 2, (8,))) for _ in range(3)]


def test_autopatch_needs_no_wrappers_and_replaces_no_method(capsys: pytest.CaptureFixture[str]) -> None:
    model, optimizer, dataloader = parts()
    criterion = nn.CrossEntropyLoss()
    auditor = autopatch(
        model,
        optimizer=optimizer,
        every_n_steps=1000,
        reporters=[ConsoleReporter()],
        fail_level="ERROR",
        run_static=True,
        run_init=True,
    )
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
    copied = copy.deepcopy(model)
    nn.init.zeros_(copied[2].weight)
    torch.save(model, io.BytesIO())
    for batch, targets in dataloader:
        optimizer.zero_grad(set_to_none=True)
        outputs = model(batch)
        loss = criterion(outputs, targets)
        loss.backward()
        optimizer.step()
        scheduler.step()
    assert not torch.equal(copied(batch), model(batch))
    assert "forward" not in vars(model)
    result = auditor.finish(report=True)
    auditor.unpatch()
    assert [finding.rule for finding in result.findings if finding.rule == "TA401"] == ["TA401"]
    assert "TA401" in capsys.readouterr().err
    assert not auditor.attached


def test_audit_dynamic_wraps_the_phases() -> None:
    model, optimizer, dataloader = parts()
    criterion = nn.CrossEntropyLoss()
    with audit_dynamic(
        model, optimizer=optimizer, every_n_steps=1000, reporters=[ConsoleReporter()], fail_level="WARN"
    ) as auditor:
        for batch, targets in dataloader:
            optimizer.zero_grad(set_to_none=True)
            outputs = auditor.forward(batch)
            loss = criterion(outputs, targets)
            auditor.backward(loss)
            auditor.optimizer_step()
    result = auditor.finish(report=False)
    assert result.exit_code == 1
    assert "TA401" in {finding.rule for finding in auditor.pop_new_findings()}
    assert auditor.pop_new_findings() == []


def test_audit_step_decorates_a_training_step(tmp_path: Path) -> None:
    model, optimizer, dataloader = parts()
    auditor = Auditor(
        model, optimizer=optimizer, every_n_steps=1000, reporters=[JSONReporter(dest="audit.json")]
    )

    @audit_step(auditor)
    def train_step(batch: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        optimizer.zero_grad(set_to_none=True)
        loss = nn.functional.cross_entropy(model(batch), targets)
        loss.backward()
        optimizer.step()
        return loss

    with auditor:
        auditor.audit_static()
        auditor.audit_init()
        for batch, targets in dataloader:
            assert train_step(batch, targets).dim() == 0
    assert '"TA401"' in (tmp_path / "audit.json").read_text()


def test_a_batch_and_a_single_step_can_be_audited(tmp_path: Path) -> None:
    model, optimizer, [(batch, targets), *_] = parts()
    with Auditor(model, optimizer, every_n_steps=0) as auditor:
        auditor.audit_data({"x": batch, "y": targets})
        auditor.audit_step()
        assert auditor.audit.session.window.step is not None
        nn.functional.cross_entropy(auditor.forward(batch), targets).backward()
        auditor.optimizer_step()
        assert auditor.audit.session.window.step is None
    assert not [finding for finding in auditor.findings if finding.rule == "TA000"]


def test_without_an_optimizer_init_says_what_is_missing() -> None:
    with pytest.raises(ValueError, match="there is no optimizer to check"):
        Auditor(parts()[0]).audit_init()


def trained(auditor: Auditor) -> None:
    [optimizer] = auditor.optimizers
    with auditor:
        for batch, targets in parts()[2]:
            optimizer.zero_grad()
            auditor.backward(nn.functional.cross_entropy(auditor.forward(batch), targets))
            auditor.optimizer_step()


def test_json_and_sarif_go_to_standard_output_or_to_a_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], validate_sarif: Callable[[str], list[str]]
) -> None:
    for reporter in (
        JSONReporter(),
        SARIFReporter(),
        SARIFReporter(dest="a.sarif"),
        JSONReporter(dest="a.log"),
    ):
        trained(Auditor(*parts()[:2], select_rules="TA401", reporters=[reporter]))
        out, err = capsys.readouterr()
        assert err == ""
        if reporter.dest is not None:
            assert out == ""
            out = (tmp_path / reporter.dest).read_text()
        document = json.loads(out)
        if isinstance(reporter, SARIFReporter):
            assert [result["ruleId"] for result in document["runs"][0]["results"]] == ["TA401"]
            outside = {"SARIF2016": "this file lies outside the folder that the test runs in"}
            assert not unexplained(validate_sarif(out), outside)
        else:
            assert [item["rule"] for item in document] == ["TA401"]


def test_the_console_has_a_line_at_once_and_the_table_at_the_end(capsys: pytest.CaptureFixture[str]) -> None:
    auditor = Auditor(*parts()[:2], select_rules="TA401", reporters=[ConsoleReporter()], auto_finish=False)
    trained(auditor)
    out, live = capsys.readouterr()
    assert live.startswith("ta-runtime: step 0: ")
    assert live.count("\n") == 1
    auditor.finish()
    heading, *_, last = capsys.readouterr().err.splitlines()
    assert heading.split() == ["rule", "line", "step", "times"]
    assert (last, out) == ("ta-runtime: Found 1 warning in 1 file.", "")


def test_a_reporter_of_ones_own_is_told_of_each_finding_and_of_the_end() -> None:
    class Told:
        def __init__(self) -> None:
            self.told: list[str] = []

        def opened(self, finding: Finding, audit: Audit) -> None:
            self.told.append(finding.rule)

        def finished(self, audit: Audit) -> None:
            self.told += ["end", *(finding.rule for finding in audit.findings)]

    reporter = Told()
    trained(Auditor(*parts()[:2], select_rules="TA401", reporters=[reporter]))
    assert reporter.told == ["TA401", "end", "TA401"]


@pytest.mark.parametrize("compiled", ["skip", "eager"])
def test_the_wrappers_take_a_compiled_model(compiled: Literal["skip", "eager"]) -> None:
    model, optimizer, _ = parts()
    module: Any = torch.compile(model, backend="eager")
    auditor = Auditor(module, optimizer, every_n_steps=1, compiled=compiled)
    trained(auditor)
    result = auditor.finish(report=False)
    assert "TA401" in {finding.rule for finding in result.findings}
    assert not {finding.rule for finding in result.findings} & {"TA000"}
    assert any("compiled" in what for what in result.not_seen) == (compiled == "skip"), result.not_seen


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"model": 3}, "model: a int is no torch.nn.Module"),
        ({"optimizer": 3}, "optimizer: a int is no torch.optim.Optimizer; give one, a list of them, or None"),
        ({"optimizer": [None]}, "optimizer: a NoneType is no torch.optim.Optimizer"),
        ({"reporters": [3]}, r"reporters: 3 is none; give \[JSONReporter\(\)\]"),
        ({"fail_level": "loud"}, "fail_level: 'loud' is none of note, warning, error"),
        ({"select_rules": "TA4O1"}, "select_rules: no rule, .* 'TA4O1'; did you mean"),
        ({"ignore_rules": [3]}, "ignore_rules: 3 names no rule; write 'TA102,stability', or a list"),
        ({"baseline_file": 3}, "baseline_file: 3 is not the path of a file"),
        ({"update_baseline": True}, "update_baseline: name the file as baseline_file"),
        ({"every_n_steps": -1}, "every_n_steps: -1 is not a number of steps, 0 or more"),
    ],
)
def test_wrong_arguments_are_named_with_the_remedy(options: dict[str, Any], told: str) -> None:
    model, optimizer, _ = parts()
    with pytest.raises(UsageError, match=told):
        Auditor(**{"model": model, "optimizer": optimizer, **options})


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"rules": "TA4O1"}, "rules: no rule, .* 'TA4O1'; did you mean"),
        ({"rules": 5}, "rules: 5 names no rule; write 'TA102,stability', or a list"),
        ({"rules": "TA910"}, "rules: a run sees none of these rules; `ta-lint rules` says which it sees"),
        ({"ignore": "nope"}, "ignore: no rule, .* 'nope'; `ta-lint rules` lists them all"),
        ({"output": 3}, "output: 3 is not the path of a file"),
        ({"output": "none/x.sarif"}, "cannot write .*: there is no folder none"),
        ({"baseline": "none.json"}, "none.json does not exist"),
        ({"compiled": "never"}, "compiled: 'never' is neither 'skip' nor 'eager'"),
    ],
)
def test_wrong_arguments_of_enable_are_named_and_nothing_is_enabled(
    options: dict[str, Any], told: str
) -> None:
    with pytest.raises(UsageError, match=told):
        ta_runtime.enable(**options)
    assert ta_runtime.disable() == []


def test_enabling_twice_is_an_error_and_the_first_goes_on() -> None:
    assert ta_runtime.disable() == []
    ta_runtime.enable(output=None, live=False, rules="TA401")
    with pytest.raises(RuntimeError, match=r"enabled already; call ta_runtime\.disable"):
        ta_runtime.enable(output=None)
    model, optimizer, _ = parts()
    model(torch.ones(8, 4)).sum().backward()
    optimizer.step()
    assert [finding.rule for finding in ta_runtime.disable()] == ["TA401"]
    assert ta_runtime.findings() == []
