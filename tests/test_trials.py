"""An audit of a few steps, as the user asks for, says as a note what each of them shows; of healthy programs nothing."""

from pathlib import Path

import pytest
from observed import watched
from torch.optim.optimizer import register_optimizer_step_pre_hook

RUNS = sorted((Path(__file__).parent / "runs").glob("*.py"))
NOTES = {"TA102", "TA103", "TA104", "TA105", "TA500"}


class OverError(Exception):
    """The trial made its steps."""


@pytest.mark.parametrize("steps", [1, 4])
@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.stem)
def test_the_first_steps_of_a_healthy_run_show_nothing(run: Path, steps: int, tmp_path: Path) -> None:
    made = 0

    def end(*_: object) -> None:
        nonlocal made
        made += 1
        if made > steps:
            raise OverError

    handle = register_optimizer_step_pre_hook(end)
    try:
        audit = watched(run.read_text(encoding="utf-8"), tmp_path, path=run.name, every_n_steps=1, asks=True)
    finally:
        handle.remove()
    assert made
    assert [(one.rule, one.site.line, one.message) for one in audit.findings if one.rule in NOTES] == []


UNUSED = """\
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.used, self.ghost = nn.Linear(8, 2), nn.Linear(8, 2)
    def forward(self, x):
        return self.used(x)

model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for _ in range(STEPS):
    optimizer.zero_grad()
    model(torch.randn(8, 8)).square().mean().backward()
    optimizer.step()
"""


@pytest.mark.parametrize(("steps", "asks", "said"), [(1, True, 1), (4, True, 1), (5, True, 0), (1, False, 0)])
def test_only_an_audit_of_a_few_steps_notes_what_each_of_them_shows(
    steps: int, asks: bool, said: int, tmp_path: Path
) -> None:
    code = UNUSED.replace("STEPS", str(steps))
    audit = watched(code, tmp_path, path="train.py", every_n_steps=1, asks=asks)
    notes = [(one.rule, one.severity.value, one.site.line) for one in audit.findings]
    assert notes == [("TA500", "note", 7)] * said


def test_what_a_later_step_shows_otherwise_is_no_note(tmp_path: Path) -> None:
    joins = "return self.used(x) + (self.ghost(x) if len(x) == 9 else 0)"
    code = UNUSED.replace("return self.used(x)", joins).replace("STEPS", "3")
    later = code.replace("torch.randn(8, 8)", "torch.randn(7 + _, 8)")
    assert [
        one.rule for one in watched(code, tmp_path, path="a.py", every_n_steps=1, asks=True).findings
    ] == ["TA500"]
    assert watched(later, tmp_path, path="b.py", every_n_steps=1, asks=True).findings == []
