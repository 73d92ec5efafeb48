"""`torch.compile` beside a session: nothing is compiled once more, no graph breaks, no warnings, the same numbers."""

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
import torch._dynamo
import torch.nn.functional as F
from test_bitwise import same
from torch import Tensor, nn

from ta_runtime.audit.audit import Audit
from ta_runtime.facts import Step
from ta_runtime.settings import resolve


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.BatchNorm1d(8))
        self.head = nn.Linear(8, 3)

    def forward(self, inputs: Tensor, target: Tensor) -> Tensor:
        return F.cross_entropy(self.head(self.body(inputs)), target)


def by_call(model: nn.Module, **options: Any) -> Callable[..., Any]:
    return torch.compile(model, **options)


def in_place(model: nn.Module, **options: Any) -> Callable[..., Any]:
    model.compile(**options)
    return model


def by_function(model: nn.Module, **options: Any) -> Callable[..., Any]:
    @torch.compile(**options)
    def loss(inputs: Tensor, target: Tensor) -> Tensor:
        return F.mse_loss(model(inputs, target), torch.zeros(()))

    return loss


WAYS = [by_call, in_place, by_function]


def train(
    model: nn.Module, forward: Callable[..., Any], optimizer: torch.optim.Optimizer, step: Any = None
) -> Any:
    losses = []
    for _ in range(6):
        loss = forward(torch.randn(4, 6), torch.randint(0, 3, (4,)))
        optimizer.zero_grad()
        loss.backward()
        (step or optimizer.step)()
        losses.append(loss.detach())
    return [model.state_dict(), losses]


def counters() -> dict[str, dict[str, int]]:
    return {name: dict(torch._dynamo.utils.counters[name]) for name in ("frames", "graph_break", "stats")}


def compiled_run(
    way: Callable[..., Any], when: str, audit: Audit | None, **options: Any
) -> tuple[Any, Any, list[str]]:
    """What came out, what was compiled, and the warnings; compiled before or after the session begins."""
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    torch.manual_seed(0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = Net()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        forward = way(model, **options) if when == "before" else None
        if audit is not None:
            audit.start()
        try:
            result = train(model, way(model, **options) if forward is None else forward, optimizer)
        finally:
            if audit is not None:
                audit.stop()
    return result, counters(), [str(warning.message) for warning in caught]


def watched(**options: Any) -> tuple[Audit, list[Step]]:
    audit = Audit(resolve(**{"every_n_steps": 1, "rules": "ALL", "output": None, "live": False} | options))
    steps: list[Step] = []
    audit.session._look_closer = steps.append
    return audit, steps


@pytest.mark.parametrize(("backend", "fullgraph"), [("eager", False), ("aot_eager", True)])
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_nothing_is_compiled_once_more(
    way: Callable[..., Any], when: str, fullgraph: bool, backend: str
) -> None:
    plain = compiled_run(way, when, None, backend=backend, fullgraph=fullgraph)
    audit, steps = watched(every_n_steps=2)
    assert same(plain, compiled_run(way, when, audit, backend=backend, fullgraph=fullgraph))
    assert [len(step.forwards) for step in steps] == [0, 0, 0]
    assert all(step.gradients[0].total > 0 and step.gradients[0].loss > 0 and step.updates for step in steps)
    [missed] = audit.not_seen
    assert "the process uses `torch.compile`" in missed
    assert not [finding for finding in audit.findings if finding.rule == "TA000"]


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_on_request_audited_steps_run_uncompiled(way: Callable[..., Any], when: str) -> None:
    plain = compiled_run(way, when, None, backend="eager")
    audit, steps = watched(every_n_steps=2, compiled="eager")
    result, counted, caught = compiled_run(way, when, audit, backend="eager")
    assert same(result, plain[0])  # this backend rounds as the model itself
    assert counted["frames"] == plain[1]["frames"]
    assert counted["graph_break"] == plain[1]["graph_break"]
    assert caught == plain[2]
    assert [len(step.training_forwards) for step in steps] == [1, 1, 1]
    names = {call.layer.name for step in steps for call in step.forwards[0].calls}
    assert {"", "body", "body.0", "head"} <= names
    assert all("cross_entropy" in [loss.function for loss in step.losses] for step in steps)
    assert audit.not_seen == []
    assert torch._dynamo.eval_frame._stance.stance == "default"


def test_a_compiled_step_is_seen() -> None:
    def run(audit: Audit | None) -> Any:
        torch._dynamo.reset()
        torch._dynamo.utils.counters.clear()
        torch.manual_seed(0)
        model = Net()
        optimizer = torch.optim.Adam(model.parameters(), lr=torch.tensor(0.1))
        if audit is not None:
            audit.start()
        result = train(model, model, optimizer, torch.compile(optimizer.step, backend="eager"))
        if audit is not None:
            audit.stop()
        return result, counters()["stats"]["unique_graphs"]

    for options in ({"every_n_steps": 0}, {"every_n_steps": 2}, {"every_n_steps": 2, "compiled": "eager"}):
        plain = run(None)
        audit, _ = watched(**options)
        result, graphs = run(audit)
        assert graphs == plain[1], options
        if "compiled" not in options:  # an eager Adam rounds in another way
            assert same(result, plain[0]), options
        assert audit.session.step_count == 6, options
        assert not [finding for finding in audit.findings if finding.rule == "TA000"], options


def test_a_model_that_is_not_compiled_is_seen_until_something_is() -> None:
    audit, steps = watched()
    audit.start()
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    train(model, model, optimizer)
    assert torch.nn.modules.module._has_any_global_hook()
    torch.compile(lambda x: x + 1, backend="eager")
    assert not torch.nn.modules.module._has_any_global_hook()
    train(model, model, optimizer)
    audit.stop()
    assert [len(step.forwards) for step in steps] == [1] * 6 + [0] * 6
