"""The ways in that torch-audit's users know: the code shapes of its README, with nothing changed but the imports."""

import copy
import io
import json
import math
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import numpy
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
from ta_runtime.audit.audit import Audit
from ta_runtime.measure.tree import tensors


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
    assert not [finding for finding in auditor.findings if finding.rule == "TA000"]  # type: ignore[unreachable]


def images(*shape: int) -> torch.Tensor:
    return torch.rand(shape, generator=torch.Generator().manual_seed(0))


def convolution() -> nn.Module:
    return nn.Sequential(nn.Conv2d(3, 8, 3, bias=False), nn.BatchNorm2d(8), nn.Dropout(), nn.Flatten())


def rows() -> nn.Module:
    return nn.Sequential(nn.Linear(4, 4, bias=False), nn.BatchNorm1d(4))


def table() -> nn.Module:
    return nn.Sequential(nn.Embedding(10, 4), nn.Flatten(), nn.Linear(12, 2))


class Named(nn.Module):
    """A model whose `forward` takes two of the three parts of a batch, by name, and counts its calls."""

    def __init__(self) -> None:
        super().__init__()
        self.calls, self.lengths, self.last = 0, [0], torch.zeros(1)
        self.layer = nn.LSTM(4, 4, batch_first=True)

    def forward(self, *, pixels: torch.Tensor, scale: torch.Tensor | None = None) -> torch.Tensor:
        self.calls += 1
        self.lengths.append(len(pixels))
        self.last.add_(1)
        self.made_here = random.random() + numpy.random.random()
        with torch.no_grad():
            self.layer.weight_ih_l0.mul_(2)
            pixels.mul_(0.5)
        result: torch.Tensor = self.layer(pixels)[0]
        return result


BATCHES: dict[str, tuple[nn.Module, Any, set[str]]] = {
    "NaN": (convolution(), (torch.full((8, 3, 32, 32), math.nan), torch.zeros(8)), {"TA101"}),
    "pixels to 255": (convolution(), (images(8, 3, 32, 32) * 255, torch.zeros(8)), {"TA301"}),
    "zeros": (convolution(), torch.zeros(8, 3, 32, 32), {"TA302"}),
    "channels last": (convolution(), [images(8, 32, 32, 3), torch.zeros(8)], {"TA303"}),
    "two rows": (rows(), {"x": images(2, 4), "y": torch.zeros(2)}, {"TA304"}),
    "negative ids": (table(), {"input_ids": torch.tensor([[5, -1, 0]])}, {"TA305"}),
    "ids out of range": (table(), {"input_ids": torch.tensor([[5, 99, 0]])}, {"TA305"}),
    "another device": (rows().to("meta"), images(8, 4), {"TA300"}),
    "healthy images": (convolution(), (images(8, 3, 32, 32), torch.zeros(8)), set()),
    "healthy rows": (rows(), images(8, 4), set()),
    "healthy ids": (table(), {"input_ids": torch.tensor([[5, 9, 0]])}, set()),
    "healthy, by name": (Named(), {"pixels": images(8, 2, 4), "labels": torch.zeros(8)}, set()),
}


@pytest.mark.parametrize("attached", [True, False], ids=["attached", "apart"])
@pytest.mark.parametrize("batch", BATCHES)
def test_a_batch_shows_what_an_audited_step_would(batch: str, attached: bool) -> None:
    """D1: no training step is needed for it."""
    model, given, rules = BATCHES[batch]
    auditor = Auditor(model, select_rules="ALL", ignore_rules="TA2")
    if attached:
        auditor.attach()
    found = auditor.audit_data(given)
    auditor.detach()
    assert {(finding.rule, Path(finding.site.path).name) for finding in found} == {
        (rule, Path(__file__).name) for rule in rules
    }
    assert not auditor.audit.session.step_count


@pytest.mark.parametrize("batch", BATCHES)
def test_a_batch_leaves_the_model_and_the_generators_as_they_are(batch: str) -> None:
    """D1: to the last bit, statistics of batch norms and counters of the user's own included."""
    model, given, _ = BATCHES[batch]
    state = model.state_dict(keep_vars=True)
    inputs = [tensor.clone() for _, tensor in tensors(given)]
    values = [tensor.clone() for tensor in state.values()]
    versions = [tensor._version for tensor in state.values()]
    attributes = [repr(vars(module)) for module in model.modules()]
    generators = random.getstate(), repr(numpy.random.get_state(legacy=False)), torch.get_rng_state().tolist()
    with Auditor(model) as auditor:
        auditor.audit_data(given)
    after = model.state_dict(keep_vars=True)
    assert all(after[name] is tensor and tensor.grad is None for name, tensor in state.items())
    assert [tensor._version for tensor in after.values()] == versions
    for before, tensor in zip(values, after.values(), strict=True):
        assert tensor.is_meta or torch.equal(before, tensor)
    for before, (_, tensor) in zip(inputs, tensors(given), strict=True):
        assert torch.equal(before.nan_to_num(1e9), tensor.nan_to_num(1e9))
    assert [repr(vars(module)) for module in model.modules()] == attributes
    assert generators == (
        random.getstate(),
        repr(numpy.random.get_state(legacy=False)),
        torch.get_rng_state().tolist(),
    )


def test_what_a_trial_could_not_tell_is_said() -> None:
    """D1: a batch that the model cannot be called with is no finding, and no silence."""
    with Auditor(rows()) as auditor:
        assert auditor.audit_data(images(8, 5)) == []
        [said, _] = auditor.finish(report=False).not_seen
        assert said.startswith(
            "what the model makes of the batch of `audit_data`: it raised `RuntimeError`: mat1"
        )
    with Auditor(nn.Sequential(nn.LazyLinear(2))) as auditor:
        auditor.audit_data(images(8, 5))
        said = auditor.finish(report=False).not_seen[0]
        assert said.endswith("`audit_data`: a lazy layer is made by its first call")


def test_a_batch_is_no_part_of_the_run(tmp_path: Path) -> None:
    """D1: what is recorded, and what the audited steps see, is the same with and without it."""
    counts = []
    for wants_batch in (True, False):
        model, optimizer, [(batch, targets), *_] = parts()
        with Auditor(model, optimizer, every_n_steps=1) as auditor:
            if wants_batch:
                auditor.audit_data((batch, targets))
            step = auditor.audit.session.window.step
            assert step is not None
            assert (step.forwards, step.losses, step.expressions) == ([], [], [])
            nn.functional.cross_entropy(model(batch), targets).backward()
            counts.append((len(step.forwards), len(step.losses)))
            optimizer.step()
    assert counts[0] == counts[1] == (1, 1)


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
        ({"model": 3}, "model: int is not a torch.nn.Module"),
        (
            {"optimizer": 3},
            "optimizer: int is not a torch.optim.Optimizer; give one, a list of them, or None",
        ),
        ({"optimizer": [None]}, "optimizer: NoneType is not a torch.optim.Optimizer"),
        ({"reporters": [3]}, r"reporters: 3 is not a reporter; give for example \[JSONReporter\(\)\]"),
        ({"fail_level": "loud"}, "fail_level: 'loud' is none of note, warning, error"),
        ({"select_rules": "TA4O1"}, "select_rules: no rule, .* 'TA4O1'; did you mean"),
        ({"ignore_rules": [3]}, "ignore_rules: 3 is not a rule; write 'TA102,stability', or a list"),
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
        ({"rules": 5}, "rules: 5 is not a rule; write 'TA102,stability', or a list"),
        ({"rules": "TA910"}, "rules: a run sees none of these rules; see `ta-lint rules`"),
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


class Wrapped(torch.optim.Optimizer):
    """As `Accelerator.prepare` gives an optimizer: it never becomes one itself, and steps the one inside."""

    def __init__(self, optimizer: torch.optim.Optimizer) -> None:
        self.optimizer = optimizer

    @property
    def param_groups(self) -> Any:  # type: ignore[override]
        return self.optimizer.param_groups

    def zero_grad(self, set_to_none: bool = True) -> None:
        self.optimizer.zero_grad(set_to_none)

    def step(self, closure: Any = None) -> Any:
        return self.optimizer.step(closure)


def test_the_steps_of_an_optimizer_are_those_of_the_one_that_it_wraps() -> None:
    """As a demo of torch-audit hands one to the `Auditor`: no step was seen, and all checks had passed."""
    model, inside, batches = parts()
    optimizer = Wrapped(inside)
    criterion = nn.CrossEntropyLoss()
    with Auditor(model, optimizer, every_n_steps=1) as auditor:
        auditor.audit_init()
        for inputs, targets in batches:
            optimizer.zero_grad()
            auditor.backward(criterion(auditor.forward(inputs), targets))
            auditor.optimizer_step()
    assert auditor.audit.session.step_count == 3
    assert [finding.rule for finding in auditor.findings] == ["TA401", "TA402"]
