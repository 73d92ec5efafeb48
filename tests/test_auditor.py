"""The ways in that torch-audit's users know: the code shapes of its README, with nothing changed but the imports."""

import copy
import io
from pathlib import Path

import pytest
import torch
from torch import nn

from ta_runtime import Auditor, ConsoleReporter, JSONReporter, audit_dynamic, audit_step, autopatch


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
