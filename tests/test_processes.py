"""Processes that a watched script starts: each is watched as a rank under torchrun is, and runs as it would alone."""

import json
import re
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from commands import Ran, warm
from test_ranks import BY_RUN, TRAIN

RUN = ("-m", "ta_runtime", "run", "--output=ta.json")

MODEL = """\
import torch


def train(steps=2):
    model = torch.nn.Linear(4, 2)
    optimizer = torch.optim.Adam(model.parameters(), weight_decay=0.1)
    for step in range(steps):
        optimizer.zero_grad()
        model(torch.randn(8, 4)).square().mean().backward()
        optimizer.step()
"""
TA401 = ("TA401", 6)  # the optimizer of that


@pytest.fixture
def temporary() -> Iterator[Path]:
    """A folder for a program's temporary files with a short name: a socket's may take 107 characters in all."""
    with tempfile.TemporaryDirectory(prefix="ta") as folder:
        yield Path(folder)


def run(folder: Path, script: str, *words: str, **environment: str) -> Ran:
    """How a script ends, beside the modules `model` and `ranks`, that trains as they do."""
    (folder / ".git").mkdir(exist_ok=True)
    (folder / "model.py").write_text(MODEL)
    (folder / "train.py").write_text(script)
    return warm(folder, *words, "train.py", timeout=300, **cast("Any", environment))


def found(folder: Path) -> dict[str, list[tuple[str, int]]]:
    """Rule and line of each finding, by report."""
    return {
        path.name: [(item["rule"], item["line"]) for item in json.loads(path.read_text())]
        for path in sorted(folder.glob("ta*.json"))
    }


def left(folder: Path) -> list[str]:
    """What is left of folders for reports in a folder for temporary files."""
    return [path.name for path in folder.glob("ta-runtime-*")]


BY_SPAWN = f"""import os
{TRAIN}
def work(rank, port):
    os.environ.update(MASTER_ADDR="localhost", MASTER_PORT=port)
    dist.init_process_group("gloo", rank=rank, world_size=2)
    train(rank)


if __name__ == "__main__":
    import socket
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = str(free.getsockname()[1])
    torch.multiprocessing.spawn(work, (port,), nprocs=2)
"""
BY_SUBPROCESS = f"""import os, subprocess, sys
{TRAIN}
if "RANK" in os.environ:
    dist.init_process_group("gloo")
    train(dist.get_rank())
elif __name__ == "__main__":
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=2", "--standalone", "train.py"]
    subprocess.run(command, check=True)
"""


def evidence(folder: Path) -> list[tuple[object, ...]]:
    """What a report says, but for the line."""
    return [
        (item["rule"], item["message"], item["scope"], item["evidence"])
        for item in json.loads((folder / "ta.json").read_text())
    ]


DESTROYED = BY_SPAWN.replace('if "destroy" in sys.argv', "if True")


@pytest.mark.parametrize(
    "script", [BY_SPAWN, DESTROYED, BY_SUBPROCESS], ids=["spawn", "destroyed", "subprocess"]
)
def test_ranks_that_a_script_starts_give_what_they_give_under_torchrun(
    script: str, tmp_path: Path, temporary: Path
) -> None:
    torchrun = ("-m", "torch.distributed.run", "--nproc-per-node=2", "--standalone")
    one, other = tmp_path / "one", tmp_path / "other"
    for folder in (one, other):
        folder.mkdir()
    expected = run(one, BY_RUN, *torchrun, *RUN)
    ran = run(other, script, *RUN, TMPDIR=str(temporary))
    assert (expected.returncode, ran.returncode) == (0, 0), ran.stderr
    assert evidence(other) == evidence(one) != []
    assert list(found(other)) == ["ta.json"]
    assert "not seen" not in ran.stderr
    assert ran.stderr.count("ta-runtime: Found 1 note in 1 file. The report is in ta.json.\n") == 1
    assert left(temporary) == []


STARTS = """\
import concurrent.futures, multiprocessing, os, subprocess, sys
import torch
from model import train


def work():
    train()
    assert "ta_runtime.audit.session" in sys.modules


if __name__ == "__main__":
    enabled = "ta_runtime" not in sys.modules
    if enabled:
        import ta_runtime
        ta_runtime.enable(output="ta.json")
    how = os.environ["HOW"]
    if how in ("fork", "spawn", "forkserver"):
        process = multiprocessing.get_context(how).Process(target=work)
        process.start()
        if "LEFT" not in os.environ:
            process.join()
    elif how == "pool":
        with multiprocessing.get_context("fork").Pool(1) as pool:
            pool.apply(work)
    elif how == "executor":
        with concurrent.futures.ProcessPoolExecutor(1, multiprocessing.get_context("fork")) as pool:
            pool.submit(work).result()
    elif how == "python":
        subprocess.run([sys.executable, "-c", "from train import work; work()"], check=True)
    elif how == "shell":
        subprocess.check_output(f"A=1 {sys.executable} -c 'from train import work; work()'", shell=True)
"""


@pytest.mark.parametrize("how", ["fork", "spawn", "forkserver", "pool", "executor", "python", "shell"])
def test_however_a_process_starts_it_is_watched(how: str, tmp_path: Path) -> None:
    command = RUN if how in ("spawn", "python") else ()
    ran = run(tmp_path, STARTS, *command, HOW=how)
    assert ran.returncode == 0, ran.stderr
    assert found(tmp_path) == {"ta.json": [TA401]}
    assert ran.stderr.count("ta-runtime: Found 1 warning in 1 file. The report is in ta.json.\n") == 1
    assert ("not seen" in ran.stderr) == (how == "pool")  # whose processes are terminated


@pytest.mark.parametrize("command", [RUN, ()], ids=["run", "enable"])
def test_a_process_that_outlives_the_script_is_waited_for(command: tuple[str, ...], tmp_path: Path) -> None:
    ran = run(tmp_path, STARTS, *command, HOW="fork", LEFT="1")
    assert ran.returncode == 0, ran.stderr
    assert found(tmp_path) == {"ta.json": [TA401]}


DIES = """\
import multiprocessing, os, signal, sys
import torch
from model import train


def die(how):
    train(3)
    if how == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif how == "raise":
        raise ValueError("of the script")
    elif how == "exit":
        sys.exit(3)
    elif how == "abort":
        os._exit(4)


if __name__ == "__main__":
    import os
    for how in ("kill", "raise", "exit", "abort"):
        process = multiprocessing.get_context(os.environ["START"]).Process(target=die, args=(how,), name=how)
        process.start()
        process.join()
        print(how, process.exitcode)
"""


def told_by_the_script(ran: Ran) -> list[str]:
    """What was printed on standard error that is not ours, without the table."""
    text = (
        ran.stderr[: at.start()] if (at := re.search(r"^rule .*", ran.stderr, re.MULTILINE)) else ran.stderr
    )
    return [line for line in text.splitlines() if not line.startswith("ta-runtime: ")]


@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_a_process_that_dies_leaves_its_report_and_dies_as_it_would_alone(start: str, tmp_path: Path) -> None:
    alone = run(tmp_path, DIES, START=start)
    ran = run(tmp_path, DIES, *RUN, START=start)
    assert ran.stdout == alone.stdout == "kill -9\nraise 1\nexit 3\nabort 4\n"
    assert told_by_the_script(ran) == told_by_the_script(alone) != []
    assert found(tmp_path) == {"ta.json": [TA401]}
    for how in ("kill", "abort"):
        assert f"where the run was when this was written, in process {how}." in ran.stderr
    assert "not seen: anything after step 3, in which the process failed, in process raise." in ran.stderr


WORKERS = """\
import os, sys
import torch
from model import train


class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        return any(name.startswith("ta_runtime") for name in sys.modules)


if __name__ == "__main__":
    train()
    loader = torch.utils.data.DataLoader(Data(), num_workers=2, multiprocessing_context="spawn")
    print([bool(each) for each in loader])
"""


def test_workers_that_load_data_are_not_watched(tmp_path: Path, temporary: Path) -> None:
    script = WORKERS + "    print(os.listdir(os.environ['TMPDIR']))\n"
    ran = run(tmp_path, script, *RUN, TMPDIR=str(temporary))
    assert ran.returncode == 0, ran.stderr
    loaded, folders = ran.stdout.splitlines()
    assert loaded == str([False] * 4)
    assert "ta-runtime-" not in folders


WITHOUT_TORCH = """\
import multiprocessing, subprocess, sys

LOADED = "import sys; print(sorted(name for name in sys.modules if name.startswith('ta_')))"


def work():
    exec(LOADED)


if __name__ == "__main__":
    process = multiprocessing.get_context("spawn").Process(target=work)
    process.start()
    process.join()
    subprocess.run([sys.executable, "-c", LOADED])
"""


def test_a_process_without_torch_loads_next_to_nothing_of_ours_and_a_program_nothing(tmp_path: Path) -> None:
    """D16. What travels with a process of `multiprocessing` is pickled by the name of its module."""
    ran = run(tmp_path, WITHOUT_TORCH, *RUN)
    spawned, program = ran.stdout.splitlines()
    assert spawned == "['ta_runtime', 'ta_runtime.startup', 'ta_runtime.startup.waiting']"
    assert program == "[]"


def without_numbers(ran: Ran) -> list[str]:
    """The lines that were printed, without addresses in memory."""
    return re.sub(r"0x\w+", "", ran.stdout).splitlines()


ENVIRONMENT = """\
import os, subprocess, sys

SHOW = (
    "import os, sys; given = dict(sorted(os.environ.items()));"
    "modules = sorted(name for name in sys.modules if 'sitecustomize' in name);"
    "print(given, sys.path, modules, sys.argv, sep=chr(10))"
)
os.environ["TORCHINDUCTOR_CACHE_DIR"] = "cache"  # where torch is loaded, it says so itself
os.environ.pop("_", None)
for options in ({}, {"env": {**os.environ, "PYTHONPATH": "a"}}, {"env": {"A": "1"}}):
    print(subprocess.run([sys.executable, "-c", SHOW, "b"], capture_output=True, text=True, **options).stdout)
subprocess.run([sys.executable, "-c", "import importlib.util as util; print(util.find_spec('torch').loader)"])
subprocess.run([sys.executable, "-c", "import torch; print(vars(torch.__loader__), torch.__spec__.has_location)"])
"""


def test_a_program_finds_its_environment_as_it_would_alone(tmp_path: Path) -> None:
    alone, ran = run(tmp_path, ENVIRONMENT), run(tmp_path, ENVIRONMENT, *RUN)
    assert (ran.returncode, without_numbers(ran)) == (0, without_numbers(alone))


def test_the_sitecustomize_of_an_environment_runs(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("print('runs')\n")
    script = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'import sitecustomize as it; print(it.__file__)'])"
    ran = run(tmp_path, script, *RUN, PYTHONPATH=str(tmp_path))
    assert ran.stdout == f"runs\n{tmp_path / 'sitecustomize.py'}\n"


ONE_AUDIT = """\
import multiprocessing
import torch, ta_runtime
from model import train

if "top" in __import__("os").environ["WHERE"]:
    ta_runtime.enable(output="ta.json")


def work():
    if "inside" in __import__("os").environ["WHERE"]:
        ta_runtime.enable(output="ta.json")
    train()


if __name__ == "__main__":
    if "top" not in __import__("os").environ["WHERE"]:
        ta_runtime.enable(output="ta.json")
    for name in ("one", "two"):
        process = multiprocessing.get_context("spawn").Process(target=work, name=name)
        process.start()
        process.join()
        print(process.exitcode)
    print(len(ta_runtime.disable()))
"""


@pytest.mark.parametrize("where", ["top", "inside"])
@pytest.mark.parametrize("command", [RUN, ()], ids=["run", "enable"])
def test_a_process_that_enables_the_audit_itself_has_one(
    command: tuple[str, ...], where: str, tmp_path: Path
) -> None:
    ran = run(tmp_path, ONE_AUDIT, *command, WHERE=where)
    assert ran.stdout == f"0\n0\n{0 if command else 1}\n", ran.stderr
    assert found(tmp_path) == {"ta.json": [TA401]}
    assert ran.stderr.count("TA401 warning: ") == 2  # once for each process, as it trains
    assert ran.stderr.count("Found 1 warning") == 1


PICKLED = """\
import multiprocessing, pickle, sys
import torch


class Own(multiprocessing.get_context("spawn").Process):
    def __init__(self):
        super().__init__()
        self.given = 7

    def __getstate__(self):
        state = dict(vars(self))
        state["given"] += 1
        return state

    def run(self):
        print(self.given, sorted(vars(self).keys() & {"_bootstrap"}), flush=True)


if __name__ == "__main__":
    process = Own()
    process.start()
    print(sorted(vars(process).keys() & {"_bootstrap"}), flush=True)
    process.join()
    print(process.exitcode)
    try:
        multiprocessing.get_context("spawn").Process(target=lambda: None).start()
    except (AttributeError, pickle.PicklingError) as error:
        print(type(error), error)
    print(multiprocessing.get_start_method(allow_none=True))
"""


def test_a_process_is_pickled_as_it_would_be_alone(tmp_path: Path) -> None:
    alone, ran = run(tmp_path, PICKLED), run(tmp_path, PICKLED, *RUN)
    assert (ran.returncode, without_numbers(ran)) == (0, without_numbers(alone))
    assert ran.stdout.startswith("[]\n8 []\n0\n")


def test_the_script_hears_of_what_its_processes_found(tmp_path: Path) -> None:
    script = """\
import multiprocessing, ta_runtime
from model import train

ta_runtime.enable(output=None, on_finding=lambda finding: print(finding.rule, finding.site.path))
process = multiprocessing.get_context("fork").Process(target=train)
process.start()
process.join()
assert [finding.rule for finding in ta_runtime.disable()] == ["TA401"]
"""
    ran = run(tmp_path, script)
    assert (ran.returncode, ran.stdout) == (0, "TA401 model.py\n"), ran.stderr


def test_the_parts_of_a_run_that_end_with_a_signal_end_with_it(tmp_path: Path) -> None:
    script = """\
import multiprocessing, signal, sys, time
from model import train


def work(ready):
    signal.signal(signal.SIGINT, lambda *_: sys.exit(6))
    train()
    ready.set()
    time.sleep(60)


context = multiprocessing.get_context("fork")
for way in ("terminate", "interrupt"):
    ready = context.Event()
    process = context.Process(target=work, args=(ready,))
    process.start()
    ready.wait()
    process.terminate() if way == "terminate" else __import__("os").kill(process.pid, signal.SIGINT)
    process.join()
    print(process.exitcode)
"""
    ran = run(tmp_path, script, *RUN)
    assert (ran.returncode, ran.stdout) == (0, f"{-signal.SIGTERM}\n6\n"), ran.stderr
    assert found(tmp_path) == {"ta.json": [TA401]}


def test_a_program_that_is_not_python_is_left_alone(tmp_path: Path) -> None:
    script = "import subprocess\nsubprocess.run(['env'])\nsubprocess.run('env', shell=True)\n"
    ran = run(tmp_path, script, *RUN)
    assert ran.returncode == 0
    assert "PATH=" in ran.stdout
    assert "TA_RUNTIME" not in ran.stdout


def test_processes_that_only_predict_are_gathered_too(tmp_path: Path) -> None:
    script = """\
import multiprocessing
import torch


def predict():
    model = torch.nn.Linear(4, 2).eval()
    for _ in range(10):
        model(torch.randn(8, 4))


multiprocessing.set_start_method("fork")
process = multiprocessing.Process(target=predict, name="worker")
process.start()
process.join()
"""
    ran = run(tmp_path, script, *RUN)
    assert ran.returncode == 0, ran.stderr
    assert found(tmp_path) == {"ta.json": [("TA613", 8)]}
    assert "looked at 8 of 10 forward passes, in process worker." in ran.stderr
