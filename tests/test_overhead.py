"""What watching adds to a training step, counted exactly: operations, waiting for the device, and what is kept alive."""

import gc
import weakref
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from runtime import MODELS, Counted, counted, ours, plain, training
from torch import nn

from ta_runtime.audit.schedule import Look
from ta_runtime.audit.session import Session
from ta_runtime.settings import resolve


def added(model: str, every_n_steps: int, gradients_every_n_steps: int) -> Counted:
    """The operations of a step under a session, less those of the same step without."""
    counts = counted(ours(training(model), every_n_steps, gradients_every_n_steps))
    for name, count in counted(plain(training(model))).operations.items():
        counts.operations[name] -= count
    counts.operations = {name: count for name, count in counts.operations.items() if count}
    return counts


@pytest.mark.parametrize("model", MODELS)
def test_a_step_that_is_not_looked_at_has_no_operation_more(model: str) -> None:
    assert added(model, 0, 0).operations == {}


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("every_n_steps", [None, 1], ids=["the default budget", "each step in full"])
@pytest.mark.parametrize("model", MODELS)
def test_no_step_waits_for_the_gpu(model: str, every_n_steps: int | None) -> None:
    watched = training(model, "cuda")
    session = Session(resolve(every_n_steps=every_n_steps), models=[watched.model])
    session.start()
    try:
        torch.cuda.set_sync_debug_mode("error")
        for _ in range(100):
            watched.step()
    finally:
        torch.cuda.set_sync_debug_mode("default")
        session.stop()
    assert not [incident for incident in session.incidents if incident.rule == "TA000"]
    assert session.looked[Look.FULL]


@pytest.mark.parametrize("model", MODELS)
def test_the_gradients_of_a_step_cost_two_operations(model: str) -> None:
    assert added(model, 0, 1).operations == {"aten._foreach_norm.Scalar": 1, "aten.stack.default": 1}


def operations_of_a_loop(steps: int, gradients_every_n_steps: int | None) -> Counted:
    """The operations of steps with everything around them: a loader, a scaler, a clipping, a schedule and an evaluation."""
    torch.manual_seed(0)
    session = None
    if gradients_every_n_steps is not None:
        session = Session(resolve(every_n_steps=0, gradients_every_n_steps=gradients_every_n_steps))
        session.start()
    try:
        model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(), nn.Linear(8, 2))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=10)
        scaler = torch.amp.GradScaler("cpu")
        samples = [(torch.randn(4), number % 2) for number in range(4 * steps)]
        loader = torch.utils.data.DataLoader(samples, batch_size=4, shuffle=True)  # type: ignore[var-annotated]
        with Counted() as counts:
            for inputs, targets in loader:
                optimizer.zero_grad()
                loss = nn.functional.cross_entropy(model(inputs), targets)
                scaler.scale(loss).backward()
                scaler.unscale_(optimizer)
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                scaler.step(optimizer)
                scaler.update()
                scheduler.step()
            model.eval()
            with torch.no_grad():
                model(samples[0][0][None])
            model.train()
    finally:
        if session is not None:
            session.stop()
    return counts


@pytest.mark.parametrize("steps", [1, 40])
def test_a_whole_loop_that_is_not_looked_at_has_no_operation_more(steps: int) -> None:
    """But for a view of each of the two tensors of a batch, through which it is hashed on the CPU."""
    plain = operations_of_a_loop(steps, None).operations
    plain["aten.detach.default"] += 2 * steps
    assert operations_of_a_loop(steps, 0).operations == plain


def test_the_gradients_of_a_whole_loop_cost_two_operations_a_step() -> None:
    totals = [operations_of_a_loop(steps, every).total for every in (1, 0) for steps in (80, 40)]
    assert (totals[0] - totals[1]) - (totals[2] - totals[3]) == 2 * 40


@pytest.mark.parametrize("model", MODELS)
def test_an_audited_step_never_waits_for_the_device(model: str) -> None:
    counts = added(model, 1, 1)
    assert counts.syncs == 0
    assert not {
        name for name in counts.operations if "nonzero" in name or "equal" in name or "is_nonzero" in name
    }


def test_an_audited_step_of_many_layers_has_fewer_operations_than_layers() -> None:
    assert added("mlp", 1, 1).total < len(list(training("mlp").model.modules()))


def test_gradients_of_another_dtype_cost_one_operation_more_at_most() -> None:
    def mixed(gradients_every_n_steps: int) -> int:
        torch.manual_seed(0)
        first, second = nn.Linear(4, 4), nn.Linear(4, 4, dtype=torch.bfloat16)
        optimizer = torch.optim.SGD([*first.parameters(), *second.parameters()], lr=0.1)
        session = Session(
            resolve(every_n_steps=0, gradients_every_n_steps=gradients_every_n_steps), optimizers=[optimizer]
        )
        session.start()
        try:
            for _ in range(3):
                optimizer.zero_grad()
                with Counted() as counts:
                    second(first(torch.ones(2, 4)).bfloat16()).sum().backward()
                    optimizer.step()
        finally:
            session.stop()
        return counts.total

    assert mixed(1) - mixed(0) <= 3


class Mark:
    """Lives as long as the graph that it is in."""


class Marking(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, loss: torch.Tensor, mark: Mark) -> torch.Tensor:
        ctx.mark = mark
        return loss.clone()

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None]:
        return gradient, None


class Watched:
    """A model whose activations, loss and gradients are watched over some steps."""

    def __init__(self, **options: int) -> None:
        torch.manual_seed(0)
        self.seen: list[weakref.ref[object]] = []
        self.model = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Sigmoid(), nn.Linear(8, 4))
        for layer in self.model:
            layer.register_forward_hook(lambda module, args, result: self.seen.append(weakref.ref(result)))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.session = Session(resolve(**options), optimizers=[self.optimizer])

    def step(self) -> None:
        inputs = torch.randn(16, 8)
        mark = Mark()
        loss = Marking.apply(
            nn.functional.cross_entropy(self.model(inputs), torch.randint(0, 4, (16,))), mark
        )
        self.optimizer.zero_grad()
        loss.backward()
        self.seen += [weakref.ref(inputs), weakref.ref(loss), weakref.ref(mark)]
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.seen += [
            weakref.ref(parameter.grad) for parameter in self.model.parameters() if parameter.grad is not None
        ]


@pytest.mark.parametrize("every_n_steps", [0, 1], ids=["gradients", "audit"])
def test_nothing_of_a_step_is_kept_alive_after_it(every_n_steps: int) -> None:
    watched = Watched(every_n_steps=every_n_steps)
    watched.session.start()
    gc.disable()  # so that it is no cycle that keeps something either
    try:
        for _ in range(3):
            watched.step()
            assert not [reference() for reference in watched.seen if reference() is not None]
    finally:
        gc.enable()
        watched.session.stop()


@pytest.mark.parametrize("gradients_every_n_steps", [0, 1, 2])
def test_a_loss_that_was_scaled_is_not_kept_alive(gradients_every_n_steps: int) -> None:
    watched = Watched(every_n_steps=0, gradients_every_n_steps=gradients_every_n_steps)
    scaler = torch.amp.GradScaler("cpu")
    watched.session.start()
    try:
        for _ in range(3):
            mark = Mark()
            loss = Marking.apply(watched.model(torch.randn(16, 8)).sum(), mark)
            alive = weakref.ref(mark)
            scaler.scale(loss).backward()
            scaler.step(watched.optimizer)
            scaler.update()
            del loss, mark
            assert alive() is None
    finally:
        watched.session.stop()


@pytest.mark.parametrize("every_n_steps", [0, 1], ids=["gradients", "audit"])
def test_a_long_run_keeps_no_more_objects_than_a_short_one(every_n_steps: int) -> None:
    watched = Watched(every_n_steps=every_n_steps)
    watched.session.start()
    try:
        counts = [tracked(watched, steps) for steps in (300, 200)]
    finally:
        watched.session.stop()
    assert counts[1] - counts[0] < 20


def tracked(watched: Watched, steps: int) -> int:
    for _ in range(steps):
        watched.step()
        watched.seen.clear()
    gc.collect()
    return len(gc.get_objects())


@pytest.mark.parametrize(
    "variant", [partial(ours, every_n_steps=1, gradients_every_n_steps=1)], ids=["full audit"]
)
def test_the_benchmark_sees_a_session_that_failed(
    variant: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    from runtime import Missing

    monkeypatch.setattr("ta_runtime.observers.optimizers.Optimizers._measure", lambda *_: 1 / 0)
    with pytest.raises(Missing, match="ZeroDivisionError"):
        counted(variant(training("mlp")))
