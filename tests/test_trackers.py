"""N24: a recorded run keeps a link to the runs of other trackers that the program has open."""

import json
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import commands
import pytest

from ta_runtime.runs import Run, RunWriter, trackers

SCRIPT = """\
import os
from pathlib import Path

os.environ["MLFLOW_ALLOW_FILE_STORE"] = "true"
import mlflow
import torch
import wandb
from torch import nn
from torch.utils.tensorboard import SummaryWriter

wandb.init(mode="offline", dir=".", id="abc123", name="fine sun", settings=wandb.Settings(console="off", silent=True))
mlflow.set_tracking_uri(Path("mlruns").absolute().as_uri())
mlflow.start_run(run_name="brave fox")
model = nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(3):
    optimizer.zero_grad()
    model(torch.randn(8, 4)).square().mean().backward()
    optimizer.step()
writer = SummaryWriter("logs")  # after the first step
wandb.finish()
mlflow.end_run()
"""


def test_a_run_keeps_what_wandb_mlflow_and_tensorboard_have_open(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    ran = commands.ta_runtime(tmp_path, "run", "-q", "--record", "run", "train.py")
    assert ran.returncode == 0, ran.stderr
    assert "WARNING" not in ran.stderr
    by_tool = {one["tool"]: one for one in Run(tmp_path / "run").about[0]["trackers"]}
    assert by_tool.keys() == {"Weights & Biases", "MLflow", "TensorBoard"}
    assert (by_tool["Weights & Biases"]["id"], by_tool["Weights & Biases"]["name"]) == ("abc123", "fine sun")
    assert "wandb" in by_tool["Weights & Biases"]["folder"]
    assert by_tool["MLflow"]["name"] == "brave fox"
    assert by_tool["MLflow"]["folder"] == str(tmp_path / "mlruns")
    assert by_tool["TensorBoard"]["folder"] == str(tmp_path / "logs")


def test_a_run_without_trackers_has_none_and_imports_none(tmp_path: Path) -> None:
    code = (
        "import sys; from ta_runtime.runs import RunWriter; w = RunWriter('run'); w.begin(); w.end();"
        "print([name for name in ('wandb', 'mlflow', 'tensorboard') if name in sys.modules])"
    )
    assert commands.python(tmp_path, "-c", code).stdout == "[]\n"
    assert json.loads((tmp_path / "run" / "rank0.json").read_text())["trackers"] == []


def test_a_link_has_no_password_and_what_goes_wrong_is_no_link(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake: Any = ModuleType("wandb")
    fake.run = SimpleNamespace(name="a", id="b", url="https://me:hunter2@wandb.example.org/a/b", dir="c")
    monkeypatch.setitem(sys.modules, "wandb", fake)
    [found] = [one for one in trackers.opened() if one["tool"] == "Weights & Biases"]
    assert found == {
        "tool": "Weights & Biases",
        "name": "a",
        "id": "b",
        "url": "https://wandb.example.org/a/b",
    }
    fake.run = SimpleNamespace(name="of a release without addresses")
    assert [one for one in trackers.opened() if one["tool"] == "Weights & Biases"] == []
    writer = RunWriter(tmp_path / "run")
    assert writer.begin()


@pytest.mark.parametrize(
    ("url", "is_web"),
    [("https://a.org/x", True), ("http://a:5000", True), ("javascript:alert(1)", False), ("file:///x", False),
     ("", False), ("http://[", False), ("data:text/html,x", False)],
)  # fmt: skip
def test_only_addresses_of_the_web_are_links(url: str, is_web: bool) -> None:
    assert trackers.is_web(url) is is_web
