"""Runs a function in a forked copy of this process: whatever it does to data sets, generators and files, the script keeps its own."""

import os
import pickle
import select
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import torch

_OPEN_FILES = "/dev/fd"


class NotForked(Exception):
    """There is no answer; the text says why, as the end of a sentence."""


def apart(function: Callable[[], Any], seconds: float) -> Any:
    """What the function returns in a copy of this process, which is killed if it takes longer.

    Raises:
        NotForked: there is no answer.
    """
    if not hasattr(os, "fork"):
        raise NotForked("this system cannot fork a process")
    reading, writing = os.pipe()
    with _files_as_they_were():
        process = os.fork()
        if not process:
            _answer(function, reading, writing)
        os.close(writing)
        try:
            answer = _read(reading, time.monotonic() + seconds)
        finally:
            os.close(reading)
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
            os.waitpid(process, 0)
    if answer is None:
        raise NotForked(f"it took longer than {seconds:.0f} s")
    if not answer:
        raise NotForked("the process that looked has died")
    result, complaint = pickle.loads(answer)
    if complaint:
        raise NotForked(complaint)
    return result


def _answer(function: Callable[[], Any], reading: int, writing: int) -> None:
    """In the copy, which ends here: nothing that the script has registered for its own end runs."""
    try:
        os.close(reading)
        nothing = os.open(os.devnull, os.O_RDWR)
        for stream in range(3):
            os.dup2(nothing, stream)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # who waits for it is told, and kills it
        torch.set_num_threads(1)  # the threads of the pool are not here
        try:
            answer: tuple[Any, str] = (function(), "")
        except Exception as error:  # noqa: BLE001 - the script's own code
            answer = (None, f"it raised `{type(error).__name__}`: {error}")
        with os.fdopen(writing, "wb") as stream_of_bytes:
            stream_of_bytes.write(pickle.dumps(answer))
    finally:
        os._exit(0)


def _read(reading: int, until: float) -> bytes | None:
    """All that comes up to the end; None if the time is over before it."""
    parts: list[bytes] = []
    while True:
        ready, _, _ = select.select([reading], [], [], max(0.0, until - time.monotonic()))
        if not ready:
            return None
        part = os.read(reading, 1 << 20)
        if not part:
            return b"".join(parts)
        parts.append(part)


@contextmanager
def _files_as_they_were() -> Iterator[None]:
    """A copy of a process reads on in the same open files: afterwards each is where it was."""
    before: dict[int, int] = {}
    with suppress(OSError):
        for name in [entry.name for entry in Path(_OPEN_FILES).iterdir()]:
            with suppress(OSError, ValueError):  # what cannot be sought in
                before[int(name)] = os.lseek(int(name), 0, os.SEEK_CUR)
    try:
        yield
    finally:
        for number, position in before.items():
            with suppress(OSError):
                os.lseek(number, position, os.SEEK_SET)
