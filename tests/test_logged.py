"""The values that a script logs: recorded from the trackers that it uses, and from `ta_runtime.log`, with the real libraries."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import commands
import numpy as np
import pytest
import torch
import torch.utils.tensorboard.writer
from photograph import watched
from torch import nn

import ta_runtime
from ta_runtime import api
from ta_runtime.audit.audit import Audit
from ta_runtime.monitor.sinks import TensorBoard, Wandb
from ta_runtime.monitor.storage import StorageManager
from ta_runtime.observers.logged import numbers
from ta_runtime.runs import Run
from ta_runtime.settings import resolve

Logged = dict[tuple[int, str], float]


@contextmanager
def recording(folder: Path) -> Iterator[Audit]:
    audit = Audit(resolve(record=folder, live=False, output=None))
    api.begin(audit)
    try:
        yield audit
    finally:
        api.end()


def logged(folder: Path) -> Logged:
    rows = [row for row in Run(folder).metrics.to_pylist() if row["key"].startswith("logged/")]
    found = {(row["step"], row["key"].removeprefix("logged/")): row["value"] for row in rows}
    assert len(found) == len(rows)
    return found


def steps(count: int) -> Iterator[int]:
    """A training, which goes on after each of its steps."""
    model = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(count):
        optimizer.zero_grad()
        model(torch.randn(8, 4)).square().mean().backward()
        optimizer.step()
        yield step


def test_what_the_script_logs_is_recorded_at_the_last_step_that_was_made(tmp_path: Path) -> None:
    with recording(tmp_path / "run"):
        for step in steps(4):
            ta_runtime.log(accuracy=step / 4)
            if step % 2:
                ta_runtime.log({"val/loss": torch.tensor(float(step))}, epoch=step // 2)
        ta_runtime.log({"test/accuracy": np.float32(0.5)})
    accuracies: Logged = {(step, "accuracy"): step / 4 for step in range(4)}
    assert logged(tmp_path / "run") == accuracies | {
        (1, "val/loss"): 1.0, (1, "epoch"): 0.0, (3, "val/loss"): 3.0, (3, "epoch"): 1.0, (3, "test/accuracy"): 0.5,
    }  # fmt: skip


def test_a_step_may_be_named_and_of_one_step_the_last_value_holds(tmp_path: Path) -> None:
    with recording(tmp_path / "run"):
        for _ in steps(2):
            ta_runtime.log({"loss": 1.0}, step=100)
            ta_runtime.log({"loss": 2.0}, step=100)
    assert logged(tmp_path / "run") == {(100, "loss"): 2.0}


def test_nothing_happens_where_nothing_is_recorded() -> None:
    ta_runtime.log(accuracy=1.0)
    ta_runtime.enable(output=None, live=False)
    try:
        ta_runtime.log({"accuracy": 1.0}, step=3)
    finally:
        ta_runtime.disable()


def test_a_number_is_what_is_one_and_nothing_else() -> None:
    values: dict[Any, Any] = {
        "int": 3, "bool": True, "float": float("inf"), "one": torch.ones(1, 1, requires_grad=True),
        "half": torch.tensor(0.5, dtype=torch.bfloat16), "array": np.array([2.0]), "scalar": np.int64(7),
        "nested": {"deep": {"er": 1.5}}, 5: 6,
        "text": "0.5", "several": torch.ones(2), "none": None, "complex": 1j, "huge": 10**400, "meta": torch.ones((), device="meta"),
        "strings": np.array("a"), "complex tensor": torch.tensor(1j), "list": [1.0],
    }  # fmt: skip
    assert numbers(values) == {
        "int": 3.0, "bool": 1.0, "float": float("inf"), "one": 1.0, "half": 0.5, "array": 2.0, "scalar": 7.0,
        "nested.deep.er": 1.5, "5": 6.0,
    }  # fmt: skip
    assert numbers("accuracy") == {}


TENSORBOARD = """\
from torch.utils.tensorboard import SummaryWriter

writer = SummaryWriter("logs")
def log(values, epoch):
    for name, value in values.items():
        writer.add_scalar(name, value, epoch)
    writer.add_scalars("share", {"a": 0.25, "b": 0.75}, epoch)
    writer.add_text("note", "0.5", epoch)
"""
WANDB = """\
import wandb

wandb.init(mode="offline", dir=".", settings=wandb.Settings(console="off", silent=True))
def log(values, epoch):
    wandb.log({**values, "share": {"a": 0.25, "b": 0.75}, "note": "0.5"}, commit=True)
"""
MLFLOW = """\
import os
from pathlib import Path

os.environ["MLFLOW_ALLOW_FILE_STORE"] = "true"
import mlflow

mlflow.set_tracking_uri(Path("mlruns").absolute().as_uri())
mlflow.start_run()
def log(values, epoch):
    mlflow.log_metrics({name: float(value) for name, value in values.items()}, step=epoch)
    mlflow.log_metric("share.a", 0.25, step=epoch)
    mlflow.MlflowClient().log_metric(mlflow.active_run().info.run_id, "share.b", 0.75)
"""
TRAINING = """\
import torch
from torch import nn
from torch.utils.data import DataLoader

loader = DataLoader(torch.randn(16, 4), batch_size=4)
model = nn.Linear(4, 2)
def evaluated():
    with torch.no_grad():
        return sum(model(x).square().mean() for x in loader)
log({"val/loss": evaluated()}, -1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    for x in loader:
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()
    log({"val/loss": evaluated(), "accuracy": 0.5}, epoch)
"""


@pytest.mark.parametrize("tracker", [TENSORBOARD, WANDB, MLFLOW], ids=["tensorboard", "wandb", "mlflow"])
def test_a_run_has_what_its_script_tells_a_tracker(tmp_path: Path, tracker: str) -> None:
    (tmp_path / "train.py").write_text(tracker + TRAINING)
    ran = commands.ta_runtime(tmp_path, "run", "-q", "--record", "run", "train.py")
    assert ran.returncode == 0, ran.stderr
    found = {
        (step, name.replace("/", ".")): value for (step, name), value in logged(tmp_path / "run").items()
    }
    assert {(step, name) for step, name in found if name != "share.a" and name != "share.b"} == {
        (0, "val.loss"), (3, "val.loss"), (3, "accuracy"), (7, "val.loss"), (7, "accuracy"),
    }  # fmt: skip
    assert found[7, "val.loss"] < found[3, "val.loss"] < found[0, "val.loss"]
    assert (found[7, "accuracy"], found[7, "share.a"], found[7, "share.b"]) == (0.5, 0.25, 0.75)


def layers(kind: type) -> dict[str, int]:
    """How often each of the methods that are watched is."""
    return {name: depth for name, value in vars(kind).items() if (depth := watched(value))}


def test_a_tracker_is_wrapped_once_and_given_back(tmp_path: Path) -> None:
    writer = torch.utils.tensorboard.writer.SummaryWriter
    with recording(tmp_path / "run") as audit:
        for _ in steps(3):
            pass
        once = {"add_scalar": 1, "add_scalars": 1}
        assert layers(writer) == once
        other = Audit(resolve(record=tmp_path / "other", live=False, output=None))
        other.start()
        assert layers(writer) == once
        other.stop()
        assert audit.findings == []
    assert layers(writer) == {}


def test_a_run_that_is_not_recorded_wraps_no_tracker() -> None:
    writer = torch.utils.tensorboard.writer.SummaryWriter
    ta_runtime.enable(output=None, live=False)
    try:
        for _ in steps(3):
            assert layers(writer) == {}
    finally:
        ta_runtime.disable()


def test_what_a_tracker_refuses_is_not_recorded_and_raises_as_ever(tmp_path: Path) -> None:
    writer = torch.utils.tensorboard.writer.SummaryWriter(str(tmp_path / "logs"))
    with recording(tmp_path / "run") as audit:
        for _ in steps(2):
            pass
        with pytest.raises(NotImplementedError, match="Got") as refused:
            writer.add_scalar("accuracy", object())
        writer.add_scalar("accuracy", 0.5)
        writer.add_scalar(tag="loss", scalar_value=torch.tensor(2.0, requires_grad=True), global_step=77)
    assert "logged.py" not in str(refused.traceback[-1].path)
    assert logged(tmp_path / "run") == {(1, "accuracy"): 0.5, (1, "loss"): 2.0}
    assert audit.findings == []


def test_what_a_monitor_sends_to_a_tracker_is_no_value_of_the_script(tmp_path: Path) -> None:
    class Run_:
        """Of W&B, as far as it is told of values."""

        step = 0
        define_metric = staticmethod(lambda *_, **__: None)

        def log(self, data: dict[str, float], commit: bool) -> None:
            writer.add_scalar("from the monitor", 1.0)

    writer = torch.utils.tensorboard.writer.SummaryWriter(str(tmp_path / "logs"))
    storage = StorageManager(sinks=[Wandb(Run_()), TensorBoard(writer)])  # type: ignore[arg-type]
    with recording(tmp_path / "run"):
        for step in steps(2):
            storage.add(step, {"gradient/a/norm": 1.0})
            writer.add_scalar("from the script", 1.0)
    assert {name for _, name in logged(tmp_path / "run")} == {"from the script"}


def test_a_run_that_logs_is_bitwise_the_same_when_it_is_recorded(tmp_path: Path) -> None:
    def trained(folder: Path) -> tuple[list[torch.Tensor], torch.Tensor]:
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(4, 8), nn.Dropout(), nn.Linear(8, 2))
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
        with torch.utils.tensorboard.writer.SummaryWriter(str(folder)) as writer:
            for step in range(12):
                optimizer.zero_grad()
                loss = model(torch.randn(8, 4)).square().mean()
                loss.backward()
                optimizer.step()
                writer.add_scalar("loss", loss, step)
                ta_runtime.log(loss=loss)
        return [parameter.detach() for parameter in model.parameters()], torch.get_rng_state()

    weights, state = trained(tmp_path / "plain")
    with recording(tmp_path / "run"):
        recorded, after = trained(tmp_path / "recorded")
    assert len(logged(tmp_path / "run")) == 12
    assert all(map(torch.equal, weights, recorded))
    assert torch.equal(state, after)
