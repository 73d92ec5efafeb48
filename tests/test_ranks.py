"""Two processes with gloo: each rank watches, rank 0 reports for both, and nobody waits for the dead."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

TRAIN = """\
import os, signal, sys
import torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


def train(rank):
    model = DDP(torch.nn.Linear(4, 2))
    decay = 0.1 if rank == 1 else 0.0
    optimizer = torch.optim.Adam(model.parameters(), weight_decay=decay)
    for step in range(4):
        if rank == 1 and step == 2 and "kill" in sys.argv:
            os.kill(os.getpid(), signal.SIGKILL)
        loss = model(torch.randn(8, 4)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if "destroy" in sys.argv:
        dist.destroy_process_group()

"""
BY_RUN = f"""{TRAIN}
dist.init_process_group("gloo")
train(dist.get_rank())
"""
BY_SPAWN = f"""import ta_runtime
{TRAIN}
def work(rank, port):
    os.environ.update(MASTER_ADDR="localhost", MASTER_PORT=port)
    ta_runtime.enable(output="ta.json")
    dist.init_process_group("gloo", rank=rank, world_size=2)
    train(rank)


if __name__ == "__main__":
    import socket
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = str(free.getsockname()[1])
    torch.multiprocessing.spawn(work, (port,), nprocs=2)
"""


def launched(
    folder: Path, script: str, command: list[str], *words: str
) -> "subprocess.CompletedProcess[str]":
    (folder / ".git").mkdir()
    (folder / "train.py").write_text(script)
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        [sys.executable, *command, *words],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=90,
    )


def reports(folder: Path) -> dict[str, list[tuple[str, object]]]:
    """Rule and ranks of each finding, by report."""
    return {
        path.name: [(item["rule"], item["evidence"].get("ranks")) for item in json.loads(path.read_text())]
        for path in folder.glob("ta*.json")
    }


@pytest.mark.parametrize("ending", ["destroy", "leave"])
def test_under_torchrun_rank_0_reports_what_all_saw(ending: str, tmp_path: Path) -> None:
    command = [
        "-m",
        "torch.distributed.run",
        "--nproc-per-node=2",
        "--standalone",
        "-m",
        "ta_runtime",
        "run",
    ]
    ran = launched(tmp_path, BY_RUN, command, "--output=ta.json", "train.py", ending)
    assert ran.returncode == 0, ran.stderr
    assert reports(tmp_path) == {"ta.json": [("TA401", "1")]}
    assert ran.stderr.count("ta-runtime: Found 1 warning in 1 file.") == 1


@pytest.mark.parametrize("ending", ["destroy", "leave"])
def test_spawned_ranks_are_gathered_as_well(ending: str, tmp_path: Path) -> None:
    ran = launched(tmp_path, BY_SPAWN, ["train.py"], ending)
    assert ran.returncode == 0, ran.stderr
    assert reports(tmp_path) == {"ta.json": [("TA401", "1")]}


def test_a_rank_that_is_killed_leaves_its_own_report_and_holds_up_nobody(tmp_path: Path) -> None:
    started = time.monotonic()
    ran = launched(tmp_path, BY_SPAWN, ["train.py"], "kill")
    assert ran.returncode != 0
    assert reports(tmp_path)["ta.rank1.json"] == [("TA401", None)]
    assert time.monotonic() - started < 45
