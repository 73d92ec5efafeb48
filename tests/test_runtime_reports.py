"""Reports of a run survive however it ends."""

import json
import sys
from pathlib import Path

import pytest
from commands import Ran, warm

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
def test_the_report_is_there(ending: str, status: int, told: str, tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "train.py").write_text(TRAIN + ending + "\n")
    ran = warm(tmp_path, "train.py")
    assert ran.returncode == status
    assert told in ran.stderr
    assert [item["rule"] for item in json.loads((tmp_path / "ta.json").read_text())] == ["TA401"]


@pytest.mark.skipif(sys.platform == "win32", reason="no limit on the size of files")
def test_a_full_disk_is_told_once_and_does_not_stop_the_run(tmp_path: Path) -> None:
    full = "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (900, 900))\nmodel ="
    code = TRAIN.replace("model =", full, 1).replace("ta.json", "ta.sarif").replace("0.1)", "0.1, lr=1e30)")
    (tmp_path / "train.py").write_text(code + "print('done')\n")
    ran = warm(tmp_path, "train.py")
    assert (ran.returncode, ran.stdout) == (0, "done\n")
    assert [path.name for path in tmp_path.iterdir()] == ["train.py"]
    assert ran.stderr.count("TA") > 2  # there were several findings to write
    assert ran.stderr.count("cannot write ") == 1
    assert "ta.sarif: File too large; the run goes on, and the report is tried again with" in ran.stderr


LOADER = """\
import sys
import torch, ta_runtime

ta_runtime.enable(output="ta.json", every_n_steps=1)


class Noise(torch.utils.data.Dataset):
    def __len__(self):
        return 32

    def __getitem__(self, index):
        return torch.randn(4)


def main(start):
    model = torch.nn.Linear(4, 2)
    optimizer = torch.optim.Adam(model.parameters(), weight_decay=0.1)
    for batch in torch.utils.data.DataLoader(Noise(), 8, num_workers=2, multiprocessing_context=start):
        optimizer.zero_grad()
        model(batch).square().mean().backward()
        optimizer.step()


if __name__ == "__main__":
    main(sys.argv[1])
"""
FORK = """\
import os, sys
import torch, ta_runtime

ta_runtime.enable(output="ta.json")
model = torch.nn.Linear(4, 2)
optimizer = torch.optim.Adam(model.parameters(), weight_decay=0.1)


def train():
    model(torch.ones(8, 4)).square().mean().backward()
    optimizer.step()


train()
child = os.fork()
train()
if child == 0:
    sys.exit(5)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def rules_of(path: Path) -> list[str]:
    return [item["rule"] for item in json.loads(path.read_text())]


def lives(ran: Ran) -> list[str]:
    """What the tool printed, but for the rows of the table, by its first words."""
    return [line for line in ran.stderr.splitlines() if line.startswith("ta-runtime: ")]


@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_workers_of_a_loader_neither_write_nor_print(start: str, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(LOADER)
    ran = warm(tmp_path, "train.py", start)
    assert ran.returncode == 0, ran.stderr
    assert sorted(path.name for path in tmp_path.glob("*.json")) == ["ta.json"]
    live, last, early = lives(ran)
    assert live.startswith("ta-runtime: step 0: train.py:17: TA401")
    assert early.startswith("ta-runtime: too few steps to judge TA102")
    assert last == "ta-runtime: Found 1 warning in 1 file. The report is in ta.json."


def test_a_spawned_worker_that_runs_the_script_again_leaves_the_reporting_to_its_parent(
    tmp_path: Path,
) -> None:
    """Without `if __name__ == "__main__"`: Python forbids it, and says so."""
    (tmp_path / "train.py").write_text(LOADER.replace('if __name__ == "__main__":', "if True:"))
    ran = warm(tmp_path, "train.py", "spawn")
    assert ran.returncode == 1
    assert "freeze_support()" in ran.stderr
    assert sorted(path.name for path in tmp_path.glob("*.json")) == ["ta.json"]
    assert rules_of(tmp_path / "ta.json") == ["TA401"]
    assert ran.stderr.count("ta-runtime: Found 1 warning in 1 file. The report is in ta.json.\n") == 1


def test_a_forked_child_leaves_the_reporting_to_its_parent(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(FORK)
    ran = warm(tmp_path, "train.py")
    assert (ran.returncode, ran.stdout) == (0, "5\n")
    assert len([line for line in lives(ran) if "too few steps" not in line]) == 2
    assert rules_of(tmp_path / "ta.json") == ["TA401"]


@pytest.mark.parametrize(
    ("bad", "rule"),
    [
        ("model(torch.tensor([[1, 10]]))", "TA305"),
        (
            "check(nn.functional.mse_loss(model[2](torch.full((1, 4), torch.nan)), torch.ones(1, 1)))",
            "TA101",
        ),
    ],
    ids=["IndexError", "NaN"],
)
def test_the_step_in_which_the_run_dies_is_judged(bad: str, rule: str, tmp_path: Path) -> None:
    code = f"""\
import torch, ta_runtime
from torch import nn
ta_runtime.enable(output="ta.json", every_n_steps=1)
model = nn.Sequential(nn.Embedding(10, 2), nn.Flatten(), nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model(torch.tensor([[1, 2]])).square().mean().backward()
optimizer.step()
def check(loss):
    loss.backward()
    if not torch.isfinite(loss):
        raise ValueError
{bad}
"""
    (tmp_path / "train.py").write_text(code)
    ran = warm(tmp_path, "train.py")
    assert ran.returncode == 1
    found = json.loads((tmp_path / "ta.json").read_text())
    assert [(item["rule"], item["evidence"]["step"]) for item in found] == [(rule, 1)], ran.stderr
    assert "not seen: anything after step 1, in which the run raised `" in ran.stderr
