"""Python commands run in forks of this process, which has loaded torch already: most of a small script's time is its import.

A fork runs its command as `python WORDS` does, in a folder and a process group of its own.
"""

import os
import runpy
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import torch._dynamo  # for the forks, as each would load it
import torch.distributed.tensor
import torch.utils.data

J = TypeVar("J")


def python(words: list[str], folder: Path, seconds: float) -> tuple[int, str]:
    """`python WORDS` in a folder: its exit status, below 0 for a signal, and what it wrote to standard error."""
    said = folder / ".stderr"
    child = os.fork()
    if child == 0:
        os.setsid()
        os.chdir(folder)
        for stream, path in ((1, os.devnull), (2, str(said))):
            os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT), stream)
        os._exit(_status(words))
    try:
        status = _waited(child, seconds)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)  # workers that outlived it
    if status is None:
        os.waitpid(child, 0)
        return -signal.SIGKILL, f"not done after {seconds:.0f} s"
    return os.waitstatus_to_exitcode(status), said.read_text(encoding="utf-8", errors="replace").strip()


def _status(words: list[str]) -> int:
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w")
    sys.path.insert(0, "")
    try:
        if words[0] == "-m":
            sys.argv = words[1:]
            runpy.run_module(words[1], run_name="__main__", alter_sys=True)
        else:
            sys.argv = words
            runpy.run_path(words[0], run_name="__main__")
        status = 0
    except SystemExit as error:
        status = error.code if isinstance(error.code, int) else int(error.code is not None)
    except BaseException:  # noqa: BLE001 - as Python ends
        traceback.print_exc()
        status = 1
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    return status


def _waited(child: int, seconds: float) -> int | None:
    over = time.monotonic() + seconds
    while time.monotonic() < over:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return status
        time.sleep(0.02)
    return None


def each(
    tasks: Sequence[tuple[J, Callable[[Path], None]]], folder: Path, jobs: int
) -> Iterator[tuple[J, Path]]:
    """Each task in a fork, several at a time; it is given a file in `folder` to write, which comes with its name."""
    waiting, running = list(enumerate(tasks))[::-1], dict[int, tuple[J, Path]]()
    while waiting or running:
        while waiting and len(running) < jobs:
            number, (name, task) = waiting.pop()
            path = folder / str(number)
            sys.stdout.flush()
            child = os.fork()
            if child == 0:
                status = 1
                try:
                    task(path)
                    status = 0
                except BaseException:  # noqa: BLE001 - a fork must not go on as its parent
                    traceback.print_exc()
                finally:
                    os._exit(status)
            running[child] = name, path
        ended, _ = os.waitpid(-1, 0)
        if ended in running:
            yield running.pop(ended)
