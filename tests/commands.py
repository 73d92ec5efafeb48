"""Scripts and commands run in processes of their own, which a test never waits for without end."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Ran:
    """How a process ended: its exit status, below 0 for a signal, and what it printed."""

    returncode: int
    stdout: str
    stderr: str


def python(
    folder: Path, *words: str, stdout: str | None = None, timeout: float = 60, **environment: str
) -> Ran:
    """`python WORDS` in a folder; after `timeout` seconds it is killed, with all that it started, and the test fails.

    `stdout` is a file for its standard output, which `Ran` then lacks.
    """
    with open(stdout or os.devnull, "w") as file:  # noqa: PTH123 - it may be a device
        process = subprocess.Popen(
            [sys.executable, *words],
            cwd=folder,
            env={**os.environ, "OMP_NUM_THREADS": "1", **environment},
            stdin=subprocess.DEVNULL,
            stdout=file if stdout is not None else subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
    try:
        out, err = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        out, err = process.communicate(timeout=10)
        raise AssertionError(f"{' '.join(words)}: not over after {timeout} s: {out}{err}") from None
    return Ran(process.returncode, out or "", err)


def ta_runtime(folder: Path, *words: str, **options: str) -> Ran:
    """`ta-runtime WORDS` in a folder."""
    return python(folder, "-m", "ta_runtime", *words, **options)


def at_once(runs: Sequence[Callable[[], Ran]]) -> list[Ran]:
    """The results of several runs, as many at a time as there are cores: each loads torch, for seconds."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(lambda run: run(), runs))
