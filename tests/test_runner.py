"""Many files on several processes: the same findings, and nothing left when a signal comes at a bad moment."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from operator import floordiv
from pathlib import Path

import pytest

from ta_lint.cache import FOLDER
from ta_lint.core.config import Configs, Options
from ta_lint.discovery import discover
from ta_lint.runner import lint_files

BUGGY = "import torch\noptimizer = torch.optim.Adam(model.parameters(), weight_decay=0.1)\n"
# A parser is busy with it for far longer than any of these tests takes.
ENDLESS = BUGGY + "x = [" + "f(a, b + 1, c=torch.zeros(1)), " * 40 + "]\n"
ENDLESS = ENDLESS + ENDLESS.partition("0.1)\n")[2] * 8_000


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A project of 30 files with a finding in each."""
    (tmp_path / "pyproject.toml").touch()
    for number in range(30):
        (tmp_path / f"train{number}.py").write_text(BUGGY)
    return tmp_path


@pytest.fixture
def busy(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """A run on two processes that lints 30 files, and is in the midst of one that takes a minute."""
    (folder / "endless.py").write_text(ENDLESS)
    code = (
        "import sys, ta_lint.cache; from ta_lint.cli import main\n"
        "ta_lint.cache._SECONDS_BETWEEN_WRITES = 0\n"
        "sys.exit(main('check --select TA401 --jobs 2 --format sarif --output report.sarif'.split()))"
    )
    run = subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    wait_until(lambda: len(group(run.pid)) == 3 and list((folder / FOLDER).glob("findings-*.json")))
    yield run
    for pid in group(run.pid):
        os.kill(pid, signal.SIGKILL)
    run.communicate(timeout=60)


def group(leader: int) -> list[int]:
    """The processes of a session that are alive."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[3]) == leader and fields[0] != "Z":
                found.append(int(entry.name))
    return found


def wait_until(happens: "object", seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not happens():
        assert time.monotonic() < end, "it does not happen"
        time.sleep(0.02)


@pytest.mark.parametrize("jobs", [1, 2, 3, 50])
def test_any_number_of_processes_finds_the_same_in_each_file_once(folder: Path, jobs: int) -> None:
    files = discover([folder], Configs(Options(select=["TA401"]), folder), folder)
    found = list(lint_files(files, jobs))
    assert sorted(file.name for file, _ in found) == sorted(file.name for file in files)
    assert all([finding.site.path for finding in findings] == [file.name] for file, findings in found)


def test_few_files_start_no_process_and_many_do(folder: Path) -> None:
    code = (
        "import sys; from ta_lint.cli import main\n"
        "main(['check', '--select=TA401', '--quiet', '--exit-zero', '--no-cache', '--output=report'])\n"
        "print('multiprocessing' in sys.modules)"
    )
    run = lambda: subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True)
    assert run().stdout.strip() == "False"
    for number in range(400):
        (folder / f"long{number}.py").write_text("x = 1\n" * 1000)
    if len(os.sched_getaffinity(0)) > 1:
        assert run().stdout.strip() == "True"


def test_a_task_that_raises_in_a_worker_raises_here_and_says_where(folder: Path) -> None:
    from ta_lint.workers import each

    with pytest.raises(ZeroDivisionError) as caught:
        list(each(partial(floordiv, 1), [3, 2, 1, 0], 2))
    assert "in _work" in caught.value.__notes__[0]


def test_ctrl_c_in_the_midst_of_a_large_file_ends_all_at_once_and_writes_no_report(
    busy: subprocess.Popen[str], folder: Path
) -> None:
    os.killpg(busy.pid, signal.SIGINT)
    out, err = busy.communicate(timeout=30)
    assert (busy.returncode, out) == (130, "")
    assert err == "ta-lint: interrupted, nothing was written\n"
    assert not group(busy.pid)
    assert not list(folder.glob("*report*"))


def test_what_was_linted_before_ctrl_c_is_known_afterwards(busy: subprocess.Popen[str], folder: Path) -> None:
    time.sleep(2)  # the small files need milliseconds
    os.killpg(busy.pid, signal.SIGINT)
    busy.communicate(timeout=30)
    (folder / "endless.py").unlink()
    code = (
        "import sys, ta_lint.engine; from ta_lint.cli import main\n"
        "ta_lint.engine.lint_file = None\n"
        "main(['check', '--select=TA401', '--quiet', '--format=concise'])"
    )
    ran = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True)
    assert (ran.stdout.count("TA401"), ran.stderr) == (30, "")


def test_sigterm_leaves_no_worker_and_no_report(busy: subprocess.Popen[str], folder: Path) -> None:
    busy.terminate()
    assert busy.wait(30) == 128 + signal.SIGTERM
    assert not group(busy.pid)
    assert not list(folder.glob("*report*"))


def test_a_worker_that_is_killed_is_said_with_a_remedy(busy: subprocess.Popen[str]) -> None:
    for pid in set(group(busy.pid)) - {busy.pid}:
        os.kill(pid, signal.SIGKILL)
    err = busy.communicate(timeout=30)[1]
    assert busy.returncode == 2
    assert "a worker process was killed" in err
    assert "--jobs 1" in err


def test_workers_do_not_outlive_a_parent_that_was_killed(folder: Path) -> None:
    """Each has a file of a fraction of a second in hand, and then nobody to give it to."""
    for number in range(200):
        (folder / f"larger{number}.py").write_text(BUGGY + "y = torch.zeros(1) + x\n" * 400)
    run = subprocess.Popen(
        [sys.executable, "-m", "ta_lint", "check", "--jobs=2", "--select=TA401", "--no-cache", "--quiet"],
        cwd=folder,
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    )
    wait_until(lambda: len(group(run.pid)) == 3)
    run.kill()
    run.wait(60)
    wait_until(lambda: not group(run.pid))
