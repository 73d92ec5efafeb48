"""What the dry run says of the gradients that a step finds is what a real run of the same program finds."""

from collections import defaultdict
from pathlib import Path
from textwrap import indent

import pytest
from observed import both

from ta_lint.core.protocol import Action
from ta_lint.dryrun.collect.run import run_of
from ta_lint.dryrun.dryrun import dry_run
from ta_lint.events import Run
from ta_lint.events.loop import Condition

START = """\
import torch

model, other = torch.nn.Linear(4, 4), torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
second = torch.optim.SGD(other.parameters(), lr=0.01)


def loss(x=None):
    return other(model(torch.randn(8, 4))).square().mean()


for i in range(8):
"""

LOOPS = {
    "never cleared": "loss().backward()\noptimizer.step()",
    "cleared before the backward pass": "optimizer.zero_grad()\nloss().backward()\noptimizer.step()",
    "cleared after the step": "loss().backward()\noptimizer.step()\noptimizer.zero_grad(set_to_none=False)",
    "cleared before the step": "loss().backward()\noptimizer.zero_grad()\noptimizer.step()",
    "cleared by the module": "model.zero_grad()\nloss().backward()\noptimizer.step()",
    "cleared by another module": "other.zero_grad()\nloss().backward()\noptimizer.step()",
    "cleared one by one": "for p in model.parameters():\n    p.grad = None\nloss().backward()\noptimizer.step()",
    "half of it is cleared": "model.bias.grad = None\nloss().backward()\noptimizer.step()",
    "cleared together": "loss().backward()\noptimizer.step()\ntorch._foreach_zero_([p.grad for p in model.parameters()])",
    "scaled by hand": "loss().backward()\nfor p in model.parameters():\n    p.grad = p.grad / 2\noptimizer.step()",
    "stepped twice": "optimizer.zero_grad()\nloss().backward()\noptimizer.step()\noptimizer.step()",
    "accumulated": "loss().backward()\nif i % 2 == 1:\n    optimizer.step()\n    optimizer.zero_grad()",
    "accumulated, and never cleared": "loss().backward()\nif i % 2 == 1:\n    optimizer.step()",
    "cleared now and then": "loss().backward()\noptimizer.step()\nif i % 3 == 2:\n    optimizer.zero_grad()",
    "two that share a loss": "optimizer.zero_grad()\nsecond.zero_grad()\nloss().backward()\noptimizer.step()\nsecond.step()",
    "two of which one is forgotten": "optimizer.zero_grad()\nloss().backward()\noptimizer.step()\nsecond.step()",
    "a loss that reaches one of two": "second.zero_grad()\nother(model(torch.randn(8, 4)).detach()).mean().backward()\nsecond.step()\noptimizer.step()",
    "a closure that clears": "def closure():\n    optimizer.zero_grad()\n    value = loss()\n    value.backward()\n    return value\noptimizer.step(closure)",
    "epochs that clear": "optimizer.zero_grad()\nfor _ in range(3):\n    loss().backward()\n    optimizer.step()",
    "an optimizer for each pass": "optimizer = torch.optim.SGD(model.parameters(), lr=0.01)\nmodel.zero_grad()\nloss().backward()\noptimizer.step()",
}


def found(run: Run) -> dict[int, set[Condition]]:
    """The conditions that the steps of each line find."""
    conditions: dict[int, set[Condition]] = defaultdict(set)
    for history in run.loop.histories:
        for pattern in history.patterns:
            step, _ = pattern[-1]
            if step.action is Action.STEP:
                conditions[step.place.line].add(step.gradients)
    return conditions


@pytest.mark.parametrize("loop", LOOPS.values(), ids=LOOPS.keys())
def test_a_step_finds_in_the_dry_run_what_it_finds_in_the_real_one(
    loop: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = START + indent(loop, "    ")
    real, dry = map(found, both(code, tmp_path, monkeypatch))
    assert dry.keys() == real.keys()
    for line, conditions in dry.items():
        if Condition.UNKNOWN not in real[line]:  # as where the program itself writes to `.grad`
            assert conditions - {Condition.UNKNOWN} <= real[line], line
            assert Condition.UNKNOWN in conditions or conditions == real[line], line


UNSEEN = {
    "a function gets the optimizer": "helpers.prepare(optimizer)\nloss().backward()\noptimizer.step()",
    "the number of a step is asked for": "if helpers.state.step:\n    optimizer.zero_grad()\nloss().backward()\noptimizer.step()",
    "an agent steps with it": "helpers.agent.step(optimizer)\nloss().backward()\noptimizer.step()",
    "a function gets it in a list": "helpers.prepare([optimizer])\nloss().backward()\noptimizer.step()",
    "a function gets what clears": "helpers.run(optimizer.zero_grad)\nloss().backward()\noptimizer.step()",
    "a hook of somebody else": "hooks.before_batch()\nloss().backward()\noptimizer.step()",
    "an engine gets the loss": "helpers.engine.backward(loss())\noptimizer.step()",
    "a closure of somebody else": "optimizer.step(helpers.closure)",
}


@pytest.mark.parametrize("loop", UNSEEN.values(), ids=UNSEEN.keys())
def test_where_code_out_of_sight_may_clear_nothing_is_said(loop: str, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("import helpers\nfrom helpers import hooks\n" + START + indent(loop, "    "))
    [conditions] = found(run_of(dry_run(str(script)).events)).values()
    assert Condition.UNKNOWN in conditions
    assert conditions.isdisjoint({Condition.STALE, Condition.USED})


def test_what_a_program_writes_to_the_attributes_of_an_optimizer_does_not_change_its_gradients(
    tmp_path: Path,
) -> None:
    script = tmp_path / "train.py"
    loop = "for key in vars(optimizer):\n    vars(optimizer)[key] = str(key)\noptimizer.zero_grad()\nloss().backward()\noptimizer.step()"
    script.write_text(START + indent(loop, "    "))
    assert list(found(run_of(dry_run(str(script)).events)).values()) == [{Condition.FRESH}]


COMPUTED = {
    "a function gets the model": "helpers.accumulate(model)",
    "a function gets the loss": "helpers.go_back(loss())",
    "an agent steps": "agent.step()",
    "a gradient is put back": "model.weight.grad = model.weight.grad.clone()",
    "a hook writes gradients": "optimizer.register_step_pre_hook(bring)",
}


@pytest.mark.parametrize("call", COMPUTED.values(), ids=COMPUTED.keys())
def test_code_out_of_sight_may_compute_gradients_where_there_are_none(call: str, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    hook = "def bring(*_):\n    for p in model.parameters():\n        p.grad = torch.ones_like(p)\n\n\n"
    start = START.replace("for i in", f"from helpers import agent\nimport helpers\n\n\n{hook}for i in")
    script.write_text(start + indent(f"optimizer.zero_grad()\n{call}\noptimizer.step()", "    "))
    assert found(run_of(dry_run(str(script)).events)).popitem()[1] == {Condition.UNKNOWN}


WAITS = {
    "by a remainder": ("", "if i % 4 == 3:\n    optimizer.step()"),
    "by what is left of it": ("", "if (i + 1) % 4:\n    continue\noptimizer.step()"),
    "by a name": ("", "last = (i + 1) % 4 == 0\nif last:\n    optimizer.step()"),
    "by a counter": ("count = 0", "count += 1\nif count == 4:\n    optimizer.step()\n    count = 0"),
}


@pytest.mark.parametrize(("before", "guard"), WAITS.values(), ids=WAITS.keys())
def test_a_step_that_comes_every_few_passes_has_those_before_it_in_its_pattern(
    before: str, guard: str, tmp_path: Path
) -> None:
    loop = f"optimizer.zero_grad()\nloss().backward()\n{guard}"
    script = tmp_path / "train.py"
    script.write_text(
        START.replace("for i in range(8)", f"{before}\nfor i in range(800)") + indent(loop, "    ")
    )
    history = next(one for one in run_of(dry_run(str(script)).events).loop.histories if one.patterns)
    pattern = [event for event, _ in history.patterns.most_common(1)[0][0]]
    taken = [event.action for event in pattern if event.action is not Action.FORWARD]
    assert taken == [Action.CLEAR, Action.BACKWARD] * 2 + [Action.STEP]
    assert [event.gradients for event in pattern if event.action is Action.CLEAR][1] is Condition.FRESH


@pytest.mark.parametrize(
    "guard", ["if torch.isfinite(value):", "if i > 100:", "if value.item() < 3:", "if len(rows) % 2:"]
)
def test_a_step_that_is_left_out_for_another_reason_does_not_wait(guard: str, tmp_path: Path) -> None:
    loop = f"value = loss()\noptimizer.zero_grad()\nvalue.backward()\n{guard}\n    optimizer.step()"
    script = tmp_path / "train.py"
    start = START.replace("for i in range(8)", "from helpers import rows\nfor i in range(800)")
    script.write_text(start + indent(loop, "    "))
    assert all(event.waits is None for event in dry_run(str(script)).events)


def test_one_of_two_optimizers_is_the_same_in_each_call(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    builds = "if parts:\n    chosen = torch.optim.SGD(model.parameters(), lr=0.01)\nelse:\n    chosen = torch.optim.Adam([*model.parameters(), *other.parameters()])\n"
    start = START.replace("for i in", f"parts = bool(len(str(loss)) % 7)\n{builds}\n\nfor i in")
    loop = "chosen.zero_grad()\nloss().backward()\nchosen.step()"
    script.write_text(start + indent(loop, "    "))
    assert list(found(run_of(dry_run(str(script)).events)).values()) == [{Condition.FRESH}]


def test_a_loop_whose_first_passes_do_not_train_finds_old_gradients_in_the_later_ones(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    loop = "if i > 100:\n    loss().backward()\n    optimizer.step()"
    start = START.replace("for i in range(8)", "optimizer.zero_grad()\nfor i in range(800)")
    script.write_text(start + indent(loop, "    "))
    [conditions] = found(run_of(dry_run(str(script)).events)).values()
    assert Condition.STALE in conditions


SCALED = """\
import torch

model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
scaler = torch.amp.GradScaler("cpu")


def loss():
    return model(torch.randn(8, 4)).square().mean()


for i in range(8):
    optimizer.zero_grad()
"""

FACTORS = {
    "clipped as they are": "scaler.scale(loss()).backward()\nclip()\nscaler.step(optimizer)\nscaler.update()",
    "unscaled before": "scaler.scale(loss()).backward()\nscaler.unscale_(optimizer)\nclip()\nscaler.step(optimizer)\nscaler.update()",
    "stepped past the scaler": "scaler.scale(loss()).backward()\nclip()\noptimizer.step()",
    "a loss that is not scaled": "loss().backward()\nclip()\noptimizer.step()",
    "a second loss": "scaler.scale(loss()).backward()\nloss().backward()\nclip()\nscaler.step(optimizer)\nscaler.update()",
    "never updated": "scaler.scale(loss()).backward()\nclip()\nscaler.step(optimizer)",
    "scaled and switched off": "off = torch.amp.GradScaler('cpu', enabled=False)\noff.scale(loss()).backward()\nclip()\noff.step(optimizer)",
}


def factors(run: Run) -> set[tuple[int, bool | None, bool]]:
    """The lines of clippings and steps, whether gradients hold the factor of a scaler there, and whether it makes the step."""
    return {
        (event.place.line, event.is_scaled, event.by_scaler)
        for history in run.loop.histories
        for pattern in history.patterns
        for event, _ in pattern
        if event.action in (Action.CLIP, Action.STEP)
    }


@pytest.mark.parametrize("loop", FACTORS.values(), ids=FACTORS.keys())
def test_the_factor_of_a_scaler_is_where_it_is_in_the_real_run(
    loop: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clip = "torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)"
    real, dry = both(SCALED + indent(loop.replace("clip()", clip), "    "), tmp_path, monkeypatch)
    assert factors(dry) == factors(real)
    [at], [of] = real.loop.histories, dry.loop.histories
    assert (at.without_update is None) == (of.without_update is None)
    assert at.limits.keys() == of.limits.keys()


BY_HAND = {
    "divided": "for p in model.parameters():\n    p.grad /= scaler.get_scale()",
    "divided in place": "for p in model.parameters():\n    p.grad.div_(scaler.get_scale())",
    "out of sight": "import helpers\nhelpers.unscale(model.parameters())",
}


@pytest.mark.parametrize("code", BY_HAND.values(), ids=BY_HAND.keys())
def test_nobody_knows_the_factor_of_gradients_that_something_multiplies(code: str, tmp_path: Path) -> None:
    body = f"scaler.scale(loss()).backward()\n{code}\noptimizer.step()"
    script = tmp_path / "train.py"
    script.write_text(SCALED + indent(body, "    "))
    assert {held for _, held, _ in factors(run_of(dry_run(str(script)).events))} == {None}
