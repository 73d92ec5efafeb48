"""Reports of a run survive however it ends."""

import json
from pathlib import Path

import pytest
from commands import python

TRAIN = """\
import os, signal, sys
import torch, ta_runtime

ta_runtime.enable(output="ta.json")
model = torch.nn.Linear(4, 2)
optimizer = torch.optim.Adam(model.parameters(), weight_decay=0.1)
for step in range(3):
    loss = model(torch.randn(8, 4)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("ending", "status", "told"),
    [
        ("os.kill(os.getpid(), signal.SIGKILL)", -9, ""),
        ("os.kill(os.getpid(), signal.SIGTERM)", -15, ""),
        ("raise IndexError", 1, "not seen: anything after step 3, in which the run raised `IndexError`"),
        ("sys.exit(3)", 3, "Found 1 warning"),
    ],
)
def test_the_report_is_there(
    ending: str, status: int, told: str, tmp_path: Path
) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "train.py").write_text(TRAIN + ending + "\n")
    ran = python(tmp_path, "train.py")
    assert ran.returncode == status
    assert told in ran.stderr
    assert [item["rule"] for item in json.loads((tmp_path / "ta.json").read_text())] == ["TA401"]


def test_a_full_disk_is_told_once_and_does_not_stop_the_run(tmp_path: Path) -> None:
    limit = "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))\nprint('done', file=sys.stdout)\n"
    code = (
        TRAIN.replace("model =", limit + "model =", 1)
        .replace("(100, 100)", "(900, 900)")
        .replace("ta.json", "ta.sarif")
    )
    (tmp_path / "train.py").write_text(code)
    ran = python(tmp_path, "train.py")
    assert (ran.returncode, ran.stdout) == (0, "done\n")
    assert [path.name for path in tmp_path.iterdir()] == ["train.py"]
