"""Lints many files: through the cache, in one or several processes, on a stack that is deep enough for nested code."""

import os
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from ta_lint.core import collector
from ta_lint.project.project import project_of, renew

if TYPE_CHECKING:
    from ta_lint.cache import Cache
    from ta_lint.core.finding import Finding
    from ta_lint.file import File
    from ta_lint.fixing import Fixed

# libcst recurses once per level of nesting, in Rust and in Python. On the default stack 1,500 parentheses killed the
# process, and a sum of 900 terms exceeded the recursion limit; this stack is enough for everything that Python itself can
# compile. Only the pages that are touched take memory.
_STACK_BYTES = 512 << 20
_RECURSION_LIMIT = 50_000

_FEW_BYTES = 200_000  # starting workers costs more than linting less
_BATCH_BYTES = 128_000

Result = tuple["File", "list[Finding]"]
T = TypeVar("T")


def lint_files(
    files: "list[File]", jobs: int | None = None, cache: "Cache | None" = None
) -> Iterator[Result]:
    """Each file with its findings, as they become ready and in no particular order; see `_each`.

    Cached files come first; the others are linted and added to the cache.
    """
    project_of.kept = cache.outlines if cache is not None else None
    renew()
    if cache is None:
        from ta_lint.engine import lint_file

        yield from _each(lint_file, files, jobs)
        return
    from ta_lint.cache import lint

    known, unknown = cache.find(files)
    yield from known
    try:
        for file, (found, learned) in _each(lint, unknown, jobs):
            cache.keep(file, found, learned)
            yield file, found
    finally:
        cache.close()


def fix_files(files: "list[File]", accepted: frozenset[str], jobs: int | None = None) -> "Iterator[Fixed]":
    """Apply the fixes of each file in memory; see `fixing.fix_file` and `_each`."""
    from ta_lint.fixing import fix_file

    renew()
    return (fixed for _, fixed in _each(partial(fix_file, accepted=accepted), files, jobs))


def silence_files(
    files: "list[File]", accepted: frozenset[str], jobs: int | None = None, *, notes: bool = True
) -> "Iterator[Fixed]":
    """Add suppression comments to each file in memory; see `fixing.silence_file` and `_each`."""
    from ta_lint.fixing import silence_file

    renew()
    task = partial(silence_file, accepted=accepted, notes=notes)
    return (silenced for _, silenced in _each(task, files, jobs))


def _each(task: "Callable[[File], T]", files: "list[File]", jobs: int | None) -> "Iterator[tuple[File, T]]":
    """Each file with the result of a task, as they become ready and in no particular order.

    `jobs` is the number of processes; None means every core that this process may use, or one for few bytes.

    Raises:
        UsageError: a worker process was killed from outside.
    """
    sized = [(file.size, file) for file in files]
    sized.sort(key=lambda item: (item[0] < _BATCH_BYTES, item[1].name))  # neighbours share what they import
    if jobs is None:
        jobs = 1 if sum(size for size, _ in sized) < _FEW_BYTES else _cores()
    batches = _batches(sized, jobs)
    done: Iterator[tuple[list[File], list[T]]]
    if jobs == 1 or len(batches) < 2:
        done = ((batch, _on_deep_stack(task, batch)) for batch in batches)
    else:
        from ta_lint import workers

        done = workers.each(partial(_on_deep_stack, task), batches, min(jobs, len(batches)))
    for batch, results in done:
        yield from zip(batch, results, strict=True)
    collector.resume()


def _batches(sized: "list[tuple[int, File]]", jobs: int) -> "list[list[File]]":
    """The files in batches that get smaller towards the end, so that all processes finish together."""
    batches: list[list[File]] = []
    left = sum(size for size, _ in sized)
    room = 0.0
    for size, file in sized:
        if room <= 0:
            batches.append([])
            room = min(_BATCH_BYTES, left / (4 * jobs))
        batches[-1].append(file)
        room -= size + 1
        left -= size
    return batches


def _on_deep_stack(task: "Callable[[File], T]", files: "list[File]") -> list[T]:
    """Run the task on several files in a thread with a deep stack."""
    results: list[T] = []
    failure: list[BaseException] = []

    def work() -> None:
        try:
            with collector.paused():
                for file in files:
                    results.append(task(file))
                    collector.sweep()
        except BaseException as error:  # noqa: BLE001 - raised again in the caller's thread
            failure.append(error)

    start_thread(work).join()
    if failure:
        raise failure[0]
    return results


def start_thread(work: Callable[[], None]) -> threading.Thread:
    """Start a daemon thread with a stack deep enough for linting; Ctrl-C need not wait for it."""

    def on_deep_stack() -> None:
        with _deep_recursion:
            work()

    previous = threading.stack_size(_STACK_BYTES)
    thread = threading.Thread(target=on_deep_stack, daemon=True)
    try:
        thread.start()
    finally:
        threading.stack_size(previous)
    return thread


class _DeepRecursion:
    """While threads with a deep stack work, Python may call as deep as it allows.

    The limit is one for all threads: after the last of them it is what it was, or a recursion without an end in a thread with a
    small stack would kill the process.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._threads = 0
        self._before = 0

    def __enter__(self) -> None:
        with self._lock:
            if not self._threads:
                self._before = sys.getrecursionlimit()
                sys.setrecursionlimit(max(_RECURSION_LIMIT, self._before))
            self._threads += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._threads -= 1
            if not self._threads:
                sys.setrecursionlimit(self._before)


_deep_recursion = _DeepRecursion()


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
