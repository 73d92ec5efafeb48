"""Scripts and commands run in processes of their own, which a test never waits for without end."""

import atexit
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Ran:
    """How a process ended: its exit status, below 0 for a signal, and what it printed."""

    returncode: int
    stdout: str
    stderr: str


def python(
    folder: Path,
    *words: str,
    stdin: str | None = None,
    stdout: str | None = None,
    timeout: float = 180,
    **environment: str,
) -> Ran:
    """`python WORDS` in a folder; after `timeout` seconds it is killed, with all that it started, and the test fails.

    `stdin` is what it reads; `stdout` is a file for its standard output, which `Ran` then lacks.
    """
    with open(stdout or os.devnull, "w") as file:  # noqa: PTH123 - it may be a device
        process = subprocess.Popen(
            [sys.executable, *words],
            cwd=folder,
            env={**os.environ, "OMP_NUM_THREADS": "1", **environment},
            stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE,
            stdout=file if stdout is not None else subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
    try:
        out, err = process.communicate(stdin, timeout=timeout)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        out, err = process.communicate(timeout=10)
        raise AssertionError(f"{' '.join(words)}: not over after {timeout} s: {out}{err}") from None
    return Ran(process.returncode, out or "", err)


def ta_runtime(folder: Path, *words: str, **options: Any) -> Ran:
    """`ta-runtime WORDS` in a folder, as `warm` runs it."""
    return warm(folder, "-m", "ta_runtime", *words, **options)


def warm(
    folder: Path,
    *words: str,
    first: str = "",
    loads: tuple[str, ...] = (),
    stdout: str | None = None,
    timeout: float = 180,
    **environment: str,
) -> Ran:
    """As `python`, for what loads torch anyway, by the fork of a Python that has loaded it (`warm.py`).

    `first` is code that runs before it, and `loads` are modules that it finds loaded, as they are for `PYTHONPATH`.
    """
    if not first and not hasattr(os, "pidfd_open"):  # Linux has it
        return python(folder, *words, stdout=stdout, timeout=timeout, **environment)
    given = {**os.environ, "OMP_NUM_THREADS": "1", **environment}
    with (
        socket.socket(socket.AF_UNIX) as end,
        open(os.devnull) as nothing,  # noqa: PTH123
        tempfile.TemporaryFile("w+") as err,
        open(stdout, "w") if stdout is not None else tempfile.TemporaryFile("w+") as out,  # noqa: PTH123
    ):
        end.connect(_loaded(loads, given.get("PYTHONPATH", "") if loads else None))
        os.umask(umask := os.umask(0o077))
        request = {
            "words": words,
            "first": first,
            "folder": str(folder.absolute()),
            "environment": given,
            "umask": umask,
        }
        socket.send_fds(end, [json.dumps(request).encode()], [file.fileno() for file in (nothing, out, err)])
        answers = end.makefile()
        pid = int(answers.readline())
        end.settimeout(timeout)
        try:
            status = int(answers.readline())
        except TimeoutError:
            os.killpg(pid, signal.SIGKILL)
            status = None
        err.seek(0)
        if stdout is None:
            out.seek(0)
        told = Ran(status or 0, out.read() if stdout is None else "", err.read())
    assert status is not None, f"{' '.join(words)}: not over after {timeout} s: {told.stdout}{told.stderr}"
    return told


def pair(folder: Path, *words: str, **options: Any) -> list[Ran]:
    """How both processes of a group of two end that run the same at once, as `warm` runs it."""
    group = {"WORLD_SIZE": "2", "MASTER_ADDR": "localhost", "MASTER_PORT": str(free_port())}
    ranks = [{**group, "RANK": rank, "LOCAL_RANK": rank} for rank in ("0", "1")]
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(lambda rank: warm(folder, *words, **options, **rank), ranks))


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("localhost", 0))
        return int(free.getsockname()[1])


@cache
def _loaded(modules: tuple[str, ...] = (), path: str | None = None) -> str:
    """Where the Python that has loaded torch and these modules is asked for forks; `path` is its `PYTHONPATH`."""
    folder = tempfile.TemporaryDirectory()
    socket_path = str(Path(folder.name) / "warm")
    process = subprocess.Popen(
        [sys.executable, str(Path(__file__).parent / "warm.py"), socket_path, *modules],
        env={
            **os.environ,
            "OMP_NUM_THREADS": "1",
            **({} if path is None else {"PYTHONPATH": path}),
        },
        stdin=subprocess.PIPE,  # whose end it sees
        stdout=subprocess.PIPE,
        text=True,
    )
    atexit.register(folder.cleanup)
    atexit.register(process.wait)
    atexit.register(process.kill)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return socket_path


def at_once(runs: Sequence[Callable[[], Ran]]) -> list[Ran]:
    """The results of several runs, as many at a time as there are cores: each loads torch, for seconds."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(lambda run: run(), runs))
