"""Two processes with gloo: each rank watches, rank 0 reports for both, and nobody waits for the dead."""

import json
import re
import signal
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from commands import Ran, warm

TRAIN = """\
import os, sys
import torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


def train(rank):
    model = DDP(torch.nn.Linear(4, 2))
    decay = 1e-30 if rank == 1 else 0.0  # so little that the replicas stay equal
    optimizer = torch.optim.Adam(model.parameters(), weight_decay=decay)
    for step in range(4):
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
BY_HAND = """\
import datetime, os, signal, time
import torch, torch.distributed as dist
import ta_runtime

ta_runtime.enable(output="ta.json")
dist.init_process_group("gloo")
rank = dist.get_rank()
model = torch.nn.Linear(4, 2)
optimizer = torch.optim.Adam(model.parameters(), weight_decay=0.1 * rank)
for step in range(3):
    loss = model(torch.randn(8, 4)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(time.time())
"""


def launched(folder: Path, script: str, *words: str) -> Ran:
    (folder / ".git").mkdir()
    (folder / "train.py").write_text(script)
    return warm(folder, *words, timeout=90)


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
    ran = launched(tmp_path, BY_RUN, *command, "--output=ta.json", "train.py", ending)
    assert ran.returncode == 0, ran.stderr
    assert reports(tmp_path) == {"ta.json": [("TA401", "1")]}
    assert ran.stderr.count("ta-runtime: Found 1 note in 1 file.") == 1


def test_a_run_of_several_ranks_says_how_much_each_looked_at(tmp_path: Path) -> None:
    """D33: it said "Looked at 1 of 40 steps in full", which was of rank 0."""
    command = ["-m", "torch.distributed.run", "--nproc-per-node=3", "--standalone", "-m", "ta_runtime", "run"]
    script = BY_RUN.replace("range(4)", "range(40)")
    ran = launched(tmp_path, script, *command, "--output=ta.txt", "train.py", "destroy")
    assert "Looked at 5 of 40 steps in full on each of 3 ranks." in ran.stderr
    assert "ta-runtime: too few steps to judge TA102" in ran.stderr
    assert "Looked at 5 of 40 steps in full on each of 3 ranks." in (tmp_path / "ta.txt").read_text()


@pytest.mark.parametrize("ending", ["destroy", "leave"])
def test_spawned_ranks_are_gathered_as_well(ending: str, tmp_path: Path) -> None:
    ran = launched(tmp_path, BY_SPAWN, "train.py", ending)
    assert ran.returncode == 0, ran.stderr
    assert reports(tmp_path) == {"ta.json": [("TA401", "1")]}


def by_hand(folder: Path, ending: str, script: str = BY_HAND) -> tuple[Ran, Ran, float]:
    """What two ranks that nobody supervises did, and for how long rank 0 lived after its own work."""
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = str(free.getsockname()[1])
    (folder / ".git").mkdir()
    (folder / "train.py").write_text(script + ending)

    def run(rank: int) -> tuple[Ran, float]:
        place = {"RANK": str(rank), "WORLD_SIZE": "2", "MASTER_ADDR": "localhost", "MASTER_PORT": port}
        return warm(folder, "train.py", **place), time.time()  # type: ignore[arg-type]

    with ThreadPoolExecutor(2) as pool:
        (zero, over), (one, _) = pool.map(run, range(2))
    return zero, one, over - float(zero.stdout)


def test_a_rank_that_is_killed_leaves_its_own_report_and_holds_up_nobody(tmp_path: Path) -> None:
    zero, one, waited = by_hand(tmp_path, "if rank == 1: os.kill(os.getpid(), signal.SIGKILL)\n")
    assert (zero.returncode, one.returncode) == (0, -signal.SIGKILL)
    assert reports(tmp_path) == {"ta.json": [], "ta.rank1.json": [("TA401", None)]}
    assert (
        "not seen: what rank 1 saw, which did not answer; see its own report, ta.rank1.json." in zero.stderr
    )
    assert waited < 15


def test_a_rank_that_is_killed_before_its_first_finding_leaves_a_report_that_says_so(tmp_path: Path) -> None:
    """D33: it left none, and rank 0 said that all checks passed."""
    script = BY_HAND.replace("0.1 * rank", "0.0").replace('"ta.json"', '"ta.txt"')
    ending = "if rank == 1: os.kill(os.getpid(), signal.SIGKILL)\n"
    zero, one, _ = by_hand(tmp_path, ending, script)
    assert (zero.returncode, one.returncode) == (0, -signal.SIGKILL)
    killed, told = (tmp_path / "ta.rank1.txt").read_text(), (tmp_path / "ta.txt").read_text()
    assert re.search(r"Not seen: anything after step [23], where the run was when this was written\.", killed)
    assert "what rank 1 saw, which did not answer; see its own report, ta.rank1.txt." in told
    for text in (told, zero.stderr):
        assert "Nothing was found on the ranks that answered." in text
        assert "All checks passed" not in text


def test_a_rank_that_comes_late_keeps_its_report(tmp_path: Path) -> None:
    late = "ta_runtime.ranks.PATIENCE = datetime.timedelta(seconds=0.5)\nif rank == 1: time.sleep(8)\n"
    zero, one, waited = by_hand(tmp_path, late)
    assert (zero.returncode, one.returncode) == (0, 0)
    assert reports(tmp_path) == {"ta.json": [], "ta.rank1.json": [("TA401", None)]}
    assert (
        "not seen: what rank 1 saw, which did not answer; see its own report, ta.rank1.json." in zero.stderr
    )
    assert waited < 8
