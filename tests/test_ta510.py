"""Runs held against what other runs taught, from the trace to the finding: a healthy twin is clean, a broken one is told of."""

import random
import runpy
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from observed import watched

import ta_runtime
from ta_lint.core.errors import UsageError
from ta_lint.core.finding import Finding
from ta_runtime.audit.audit import Audit
from ta_runtime.invariants import file, live
from ta_runtime.invariants.checking import Checker
from ta_runtime.invariants.inferring import infer
from ta_runtime.invariants.invariant import Invariant
from ta_runtime.invariants.template import BrokenInvariant
from ta_runtime.runs import Run
from ta_runtime.settings import resolve
from ta_runtime.trace.collection import collecting
from ta_runtime.trace.event import Event

PROGRAM = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(4, 8)
        self.head = nn.Linear(8, 1)

    def forward(self, x):
        return self.head(torch.relu(self.hidden(x)))


torch.manual_seed(SEED)
x = torch.randn(60, 4)
loader = DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=BATCH, shuffle=True)
model = Net()
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
for epoch in range(4):
    for step, (data, target) in enumerate(loader):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(data), target)
        loss.backward()
        optimizer.step()
"""
CLEARS, STEPS = "        optimizer.zero_grad()\n", "        optimizer.step()\n"


def program(*, seed: int = 0, batch: int = 8) -> str:
    return PROGRAM.replace("SEED", str(seed)).replace("BATCH", str(batch))


@pytest.fixture(scope="module")
def learned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The invariants of two healthy runs, at every level."""
    folder = tmp_path_factory.mktemp("learned")
    traces = []
    for seed in range(2):
        script = folder / "example.py"
        script.write_text(program(seed=seed))
        with collecting(folder / str(seed), level="ops"):
            runpy.run_path(str(script), run_name="__main__")
        traces.append(Run(folder / str(seed)))
    file.save(folder / "invariants.json", infer(traces))
    return folder / "invariants.json"


def run_of(code: str, folder: Path, invariants: Path, **options: Any) -> Audit:
    return watched(
        code, folder, path="example.py", every_n_steps=0, rules=["TA510"], invariants=invariants, **options
    )


def findings(code: str, folder: Path, invariants: Path, **options: Any) -> list[Finding]:
    return run_of(code, folder, invariants, **options).findings


@pytest.mark.parametrize("changed", [{}, {"seed": 7}, {"batch": 16}, {"batch": 7}])
def test_a_healthy_run_breaks_nothing(changed: dict[str, int], learned: Path, tmp_path: Path) -> None:
    assert findings(program(**changed), tmp_path, learned) == []


def test_a_step_without_clearing_is_told_of_in_the_step_in_which_it_first_happens(
    learned: Path, tmp_path: Path
) -> None:
    bad = program().replace(CLEARS, "        if epoch < 2:\n    " + CLEARS)
    found = findings(bad, tmp_path, learned)
    assert found
    assert min(finding.evidence["step"] for finding in found) == 16
    assert {bad.splitlines()[finding.site.line - 1].strip() for finding in found} & {
        "loss.backward()",
        "optimizer.step()",
        "loss = nn.functional.mse_loss(model(data), target)",
    }


def test_an_operation_that_is_left_out_is_told_of_in_a_step_that_is_sampled(
    learned: Path, tmp_path: Path
) -> None:
    bad = program().replace("torch.relu(self.hidden(x))", "self.hidden(x)")
    [finding] = findings(bad, tmp_path, learned)
    assert finding.message == "`Net` does not call `relu`"
    assert finding.evidence["times"] == 10 + 3, "the first ten steps, and each tenth of 32"
    [finding] = findings(bad, tmp_path, learned, invariants_every_n_steps=1)
    assert finding.evidence["times"] == 32


def test_where_nothing_but_invariants_is_asked_for_nothing_else_is_watched(
    learned: Path, tmp_path: Path
) -> None:
    bad = program().replace(CLEARS, "        if epoch < 2:\n    " + CLEARS)
    alone = run_of(bad, tmp_path, learned, gradients_every_n_steps=1)
    audited = watched(
        bad, tmp_path, path="example.py", every_n_steps=1, extend_select=["TA510"], invariants=learned
    )
    recorded = run_of(bad, tmp_path, learned, record=tmp_path / "run")
    assert alone.session.observers == [] != audited.session.observers
    assert recorded.session.observers, "who draws a run wants to see its gradients"
    of_invariants = [finding for finding in audited.findings if finding.rule == "TA510"]
    assert alone.findings == of_invariants == recorded.findings != []


def test_what_cannot_be_said_is_listed_as_not_seen(learned: Path, tmp_path: Path) -> None:
    never = Invariant(
        "constant_output",
        {"kind": "module", "call": "torch.nn.LSTM", "what": "dtype", "value": "float32"},
        {},
    )
    file.save(tmp_path / "never.json", [never])
    audit = run_of(program(), tmp_path, tmp_path / "never.json")
    assert f"whether the result of `LSTM` is always float32 ({never.id})" in audit.not_seen


def test_with_no_invariant_of_its_own_a_run_is_held_against_those_that_come_with_the_tool(
    tmp_path: Path,
) -> None:
    file.save(tmp_path / "none.json", [])
    bad = program().replace(CLEARS, "        model.double() if epoch == 2 else None\n" + CLEARS)
    bad = bad.replace("model(data), target)", "model(data.to(model.head.weight.dtype)), target)").replace(
        "AdamW", "SGD"
    )
    [finding] = findings(bad, tmp_path, tmp_path / "none.json", invariants_every_n_steps=1)
    assert finding.message == "a parameter has another dtype than before"
    assert finding.evidence["step"] == 16
    assert findings(program(), tmp_path, tmp_path / "none.json") == []
    assert findings(bad, tmp_path, ()) == [], "without `invariants` nothing is looked at"  # type: ignore[arg-type]


def test_a_comment_accepts_it(learned: Path, tmp_path: Path) -> None:
    bad = program().replace("self.head(torch.relu(self.hidden(x)))", "self.head(self.hidden(x))")
    bad = bad.replace("mse_loss(model(data), target)", "mse_loss(model(data), target)  # noqa: TA510")
    [finding] = findings(bad, tmp_path, learned)
    assert not finding.counts


def test_numbers_and_random_states_stay_as_they_are(learned: Path, tmp_path: Path) -> None:
    def outcome(invariants: Path | None) -> tuple[list[torch.Tensor], torch.Tensor, object]:
        random.seed(0)
        kept: list[torch.Tensor] = []
        code = (
            program()
            + "\nimport builtins\nbuiltins.kept = [each.detach().clone() for each in model.parameters()]\n"
        )
        run_of(code, tmp_path, invariants)  # type: ignore[arg-type]
        import builtins

        kept = builtins.kept  # type: ignore[attr-defined]
        del builtins.kept  # type: ignore[attr-defined]
        return kept, torch.random.get_rng_state(), random.getstate()

    plain, held = outcome(None), outcome(learned)
    assert all(torch.equal(one, other) for one, other in zip(plain[0], held[0], strict=True))
    assert torch.equal(plain[1], held[1])
    assert plain[2] == held[2]


def test_a_file_that_holds_no_invariants_is_refused_before_the_run(tmp_path: Path) -> None:
    (tmp_path / "other.json").write_text("{}")
    with pytest.raises(UsageError, match="no file of invariants"):
        ta_runtime.enable(invariants=tmp_path / "other.json", output=None)
    with pytest.raises(UsageError, match="no such file"):
        ta_runtime.enable(invariants=[tmp_path / "missing.json"], output=None)
    with pytest.raises(UsageError, match="invariants: 3 is not the path of a file"):
        ta_runtime.enable(invariants=3, output=None)  # type: ignore[arg-type]


@pytest.mark.parametrize("off", [{"rules": ["TA600"]}, {"rules": "TA5,TA6", "ignore": "TA510"}])
def test_invariants_are_refused_where_the_rule_that_would_tell_is_off(
    off: dict[str, str], learned: Path
) -> None:
    said = r"^TA510 is not among the rules that are on \(\[tool.ta\] select, rules, ignore\): .* name it in `rules`"
    with pytest.raises(UsageError, match=said):
        resolve(invariants=learned, **off)  # type: ignore[arg-type]
    resolve(**off)  # type: ignore[arg-type]


def test_a_run_for_invariants_alone_says_that_none_are_given(learned: Path, tmp_path: Path) -> None:
    def said(**options: Any) -> bool:
        audit = watched(program(), tmp_path, path="example.py", every_n_steps=0, **options)
        return any(what.startswith("invariants, as none are given; ") for what in audit.not_seen)

    assert said(rules=["TA510"])
    assert not said(rules=["TA510"], invariants=learned)
    assert not said(), "other rules are looked for"


def test_of_a_long_evaluation_few_events_are_kept_and_the_findings_are_the_same(
    learned: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad = program().replace("torch.relu(self.hidden(x))", "self.hidden(x)")
    bad += "\nmodel.eval()\nfor _ in range(50):\n    model(x)\n"
    usual = findings(bad, tmp_path, learned, invariants_every_n_steps=1)
    assert usual
    most, see = 0, Checker.see

    def watching(checker: Checker, events: Iterable[Event], rank: int = 0) -> list[BrokenInvariant]:
        nonlocal most
        most = max(most, len(given := list(events)))
        return see(checker, given, rank)

    monkeypatch.setattr(Checker, "see", watching)
    monkeypatch.setattr(live, "_AT_ONCE", 64, raising=False)
    assert findings(bad, tmp_path, learned, invariants_every_n_steps=1) == usual
    assert 0 < most <= 64


def test_nothing_is_kept_once_the_session_has_stopped_after_failures(
    learned: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[live.Live] = []
    start = live.Live.start

    def broken(own: live.Live) -> None:
        raise RuntimeError("x")

    def failing(own: live.Live) -> None:
        started.append(own)
        start(own)
        for _ in range(3):
            own._session.guarded(partial(broken, own))()

    monkeypatch.setattr(live.Live, "start", failing)
    bad = program().replace(CLEARS, "        if epoch < 2:\n    " + CLEARS)
    bad += "\nimport builtins\nbuiltins.kept = len(builtins.started[-1]._events)\n"
    monkeypatch.setattr("builtins.started", started, raising=False)
    monkeypatch.setattr("builtins.kept", None, raising=False)
    audit = run_of(bad, tmp_path, learned)
    import builtins

    assert builtins.kept == 0  # type: ignore[attr-defined]
    assert {finding.rule for finding in audit.findings} == {"TA000"}
    assert any("kept failing" in what for what in audit.not_seen)
