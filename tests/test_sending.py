"""`ta-runtime run --send`: numbers and findings in the runs of trackers that the script has open, with the real libraries."""

import math
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import commands
import pytest
import torch
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from test_sinks import history
from torch import nn
from torch.utils.tensorboard import SummaryWriter

from ta_runtime import api
from ta_runtime.audit.audit import Audit
from ta_runtime.monitor.sinks import MLflow
from ta_runtime.runs import Run
from ta_runtime.settings import resolve

SCRIPT = """\
import os
from pathlib import Path

os.environ["MLFLOW_ALLOW_FILE_STORE"] = "true"
import mlflow
import torch
import wandb
from torch import nn
from torch.utils.tensorboard import SummaryWriter

wandb.init(mode="offline", dir=".", settings=wandb.Settings(console="off", silent=True))
mlflow.set_tracking_uri(Path("mlruns").absolute().as_uri())
mlflow.start_run()
writer = SummaryWriter("logs")
model = nn.Linear(4, 2)
optimizer = torch.optim.Adam(model.parameters(), lr=0.1, weight_decay=0.1)
for step in range(8):
    optimizer.zero_grad()
    loss = model(torch.ones(8, 4)).square().mean() * (1 if step < 6 else float("nan"))
    loss.backward()
    optimizer.step()
    if step % 4 == 3:
        wandb.log({"own": step}, step=10 * step)
    writer.add_scalar("own", step, step)
wandb.finish()
mlflow.end_run()
writer.close()
"""


def test_every_tracker_that_is_open_gets_the_numbers_and_the_findings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    (tmp_path / "train.py").write_text(SCRIPT)
    ran = commands.ta_runtime(tmp_path, "run", "--send", "--every", "2", "--record", "run", "train.py")
    assert ran.returncode == 0, ran.stderr
    assert "no more" not in ran.stderr
    recorded = Run(tmp_path / "run").metrics.to_pylist()
    losses = {row["step"]: row["value"] for row in recorded if row["key"] == "step/loss"}
    assert {row["key"] for row in recorded if row["key"].startswith("logged/")} == {"logged/own"}

    events = EventAccumulator(str(tmp_path / "logs")).Reload()
    sent = {event.step: event.value for event in events.Scalars("ta/loss")}
    assert {step: sent[step] for step in range(5)} == pytest.approx({step: losses[step] for step in range(5)})
    assert {"ta/gradient_norm", "ta/learning_rate", "ta/seconds", "ta/errors"} <= set(
        events.Tags()["scalars"]
    )
    [text] = events.Tensors("ta/findings/text_summary")[-1].tensor_proto.string_val
    assert b"- TA401 " in text
    assert b"train.py:16: " in text

    import mlflow

    mlflow.set_tracking_uri((tmp_path / "mlruns").as_uri())
    [run] = mlflow.search_runs(output_format="list")
    assert "ta/loss" in run.data.metrics
    assert run.data.metrics["ta/errors"] == 1  # it takes what comes after its end
    assert "TA100" in run.data.tags["ta/findings"]
    assert "TA401" in run.data.tags["ta/findings"]

    rows = history(tmp_path)
    assert [row["own"] for row in rows if "own" in row] == [3, 7]
    drawn = {row["ta/step"]: row["ta/loss"] for row in rows if "ta/loss" in row}
    assert drawn == pytest.approx({step: losses[step] for step in drawn}, nan_ok=True)
    assert len(rows) <= 4  # the numbering of rows is the script's own


def test_nothing_is_sent_that_nobody_asked_for(tmp_path: Path) -> None:
    with watched(), SummaryWriter(tmp_path / "logs") as writer:
        train(4, lambda step: writer.add_scalar("own", step, step))
    assert EventAccumulator(str(tmp_path / "logs")).Reload().Tags()["scalars"] == ["own"]


@contextmanager
def watched(**options: Any) -> Iterator[Audit]:
    audit = Audit(resolve(live=False, output=None, every_n_steps=1, **options))
    api.begin(audit)
    try:
        yield audit
    finally:
        api.end()


def train(count: int, each: Any = lambda step: None) -> list[torch.Tensor]:
    torch.manual_seed(0)
    model = nn.Linear(4, 2)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1, weight_decay=0.1)
    for step in range(count):
        optimizer.zero_grad()
        model(torch.randn(8, 4)).square().mean().backward()
        optimizer.step()
        each(step)
    return [parameter.detach() for parameter in model.parameters()]


def test_a_tracker_that_fails_is_told_of_once_and_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Broken:
        id, step = "a", 0
        summary: dict[str, object] = {}  # noqa: RUF012

        def define_metric(self, *_: object, **__: object) -> None: ...

        def log(self, *_: object, **__: object) -> None:
            raise ConnectionError("gone")

    fake: Any = ModuleType("wandb")
    fake.run = Broken()
    monkeypatch.setitem(sys.modules, "wandb", fake)
    plain = train(8)
    with watched(send=True), SummaryWriter(tmp_path / "logs") as writer:
        sent = train(8, lambda step: writer.add_scalar("own", step, step))
    assert all(map(torch.equal, plain, sent))
    assert capsys.readouterr().err.count("Weights & Biases gets no more of what is measured and found") == 1
    assert len(EventAccumulator(str(tmp_path / "logs")).Reload().Scalars("ta/loss")) >= 6


def test_a_server_that_hangs_holds_up_neither_the_training_nor_its_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import mlflow

    from ta_runtime.monitor.sinks import mlflow as sink_of

    class Hanging:
        def log_batch(self, *_: object, **__: object) -> None:
            forever.wait()

    forever = threading.Event()
    monkeypatch.setattr(mlflow, "MlflowClient", Hanging)
    monkeypatch.setattr(sink_of, "_PATIENCE", 0.1)
    sink = MLflow("some run", waits=False)
    for step in range(100):
        sink.write(step, {"a": math.pi})
    sink.close()
    forever.set()


def test_a_writer_that_was_closed_is_left_for_one_that_is_open(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with watched(send=True):
        for name in ("first", "second"):
            with SummaryWriter(tmp_path / name) as writer:
                train(9, lambda step: writer.add_scalar("own", step, step))
    for name in ("first", "second"):
        assert "ta/loss" in EventAccumulator(str(tmp_path / name)).Reload().Tags()["scalars"]
    assert "no more" not in capsys.readouterr().err


def test_another_release_of_a_library_is_no_reason_to_end_a_training(monkeypatch: pytest.MonkeyPatch) -> None:
    fake: Any = ModuleType("wandb")
    fake.run = SimpleNamespace()
    monkeypatch.setitem(sys.modules, "wandb", fake)
    with watched(send=True) as audit:
        train(3)
    assert "TA000" not in {finding.rule for finding in audit.findings}
