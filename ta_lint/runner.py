"""Linting many files: one process or several, Ctrl-C, and code nested deeper than a default stack allows."""

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from typing import TypeVar

from ta_lint.core.errors import UsageError
from ta_lint.core.finding import Finding
from ta_lint.engine import File, lint_file
from ta_lint.fixing import Fixed, fix_file

# libcst recurses once for each level of nesting, in Rust and in Python. On the default stack 1,500 parentheses killed
# the process, and a sum of 900 terms overflowed the recursion limit; on this one everything that Python itself can
# compile passes. Only the pages that are touched take memory.
_STACK_BYTES = 512 << 20
_RECURSION_LIMIT = 50_000

_FEW_FILES = 40  # starting workers costs more than linting these
_CHUNK = 8

Result = tuple[File, list[Finding]]
T = TypeVar("T")


def lint_files(files: list[File], jobs: int | None = None) -> Iterator[Result]:
    """Each file with its findings, as they are ready and in no certain order; see `_each`."""
    return _each(_linted, files, jobs)


def fix_files(files: list[File], accepted: frozenset[str], jobs: int | None = None) -> Iterator[Fixed]:
    """Each file as it is after its fixes, which nobody has written yet; see `fixing.fix_file` and `_each`."""
    return _each(partial(fix_file, accepted=accepted), files, jobs)


def _linted(file: File) -> Result:
    return file, lint_file(file)


def _each(task: Callable[[File], T], files: list[File], jobs: int | None) -> Iterator[T]:
    """What a task makes of each file, as it is ready and in no certain order.

    `jobs` is the number of processes; None takes every core that this process may use, or one for few files.

    Raises:
        UsageError: a worker process was killed from outside.
    """
    if jobs is None:
        jobs = 1 if len(files) < _FEW_FILES else _cores()
    largest_first = sorted(files, key=_size, reverse=True)
    chunks = [largest_first[start : start + _CHUNK] for start in range(0, len(files), _CHUNK)]
    if jobs == 1 or len(chunks) < 2:
        for chunk in chunks:
            yield from _chunk(task, chunk)
        return
    executor = ProcessPoolExecutor(min(jobs, len(chunks)), initializer=_ignore_interrupts)
    try:
        for future in as_completed([executor.submit(_chunk, task, chunk) for chunk in chunks]):
            yield from future.result()
    except BrokenProcessPool as error:
        raise UsageError("a worker process was killed, perhaps for lack of memory; try --jobs 1") from error
    except BaseException:
        _terminate(executor)
        raise
    executor.shutdown()


def _chunk(task: Callable[[File], T], files: list[File]) -> list[T]:
    """The task for several files, in a thread of its own, whose stack is deep enough."""
    results: list[T] = []
    failure: list[BaseException] = []

    def work() -> None:
        try:
            results.extend(map(task, files))
        except BaseException as error:  # noqa: BLE001 - carried over to the caller's thread
            failure.append(error)

    sys.setrecursionlimit(max(_RECURSION_LIMIT, sys.getrecursionlimit()))
    previous = threading.stack_size(_STACK_BYTES)
    thread = threading.Thread(target=work, daemon=True)  # Ctrl-C need not wait for it
    try:
        thread.start()
    finally:
        threading.stack_size(previous)
    thread.join()
    if failure:
        raise failure[0]
    return results


def _ignore_interrupts() -> None:
    """Ctrl-C reaches the whole process group; the parent ends its workers itself."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _terminate(executor: ProcessPoolExecutor) -> None:
    """End the workers at once: a shutdown alone would let each finish its file."""
    for process in list(executor._processes.values()):
        process.terminate()
    executor.shutdown(wait=False, cancel_futures=True)


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _size(file: File) -> int:
    try:
        return file.path.stat().st_size
    except OSError:
        return 0
