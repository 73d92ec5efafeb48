"""Worker processes that live for a whole run, take the next item when free, and end when their parent does."""

import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from types import FrameType
from typing import Any, TypeVar, cast

from ta_lint.core.errors import UsageError

S = TypeVar("S")
T = TypeVar("T")

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def each(task: Callable[[S], T], items: Sequence[S], processes: int) -> Iterator[tuple[S, T]]:
    """Each item with the result of the task, computed in one of several processes, as they become ready.

    However this ends, no worker remains: a busy one is killed.

    Raises:
        UsageError: a worker was killed from outside.
        Exception: the task raised it; it carries the worker's traceback as a note.
    """
    workers: list[BaseProcess] = []
    ends: list[Connection] = []
    busy: dict[Connection, int] = {}  # the index of the item that each works on
    waiting = iter(range(len(items)))

    def hand_out(end: Connection) -> None:
        index = next(waiting, None)
        if index is None:
            end.close()  # tells the worker to end
        else:
            end.send(index)
            busy[end] = index

    with _terminable():
        try:
            _start(task, items, processes, workers, ends)
            for end in ends:
                hand_out(end)
            while busy:
                for end in cast(list[Connection], wait(list(busy))):
                    index = busy.pop(end)
                    result, failure = end.recv()
                    if failure is not None:
                        raise failure
                    hand_out(end)
                    yield items[index], result
        except (EOFError, ConnectionError) as error:
            raise UsageError(
                "a worker process was killed, perhaps for lack of memory; try --jobs 1"
            ) from error
        finally:
            for worker in workers:
                worker.kill()
            for worker in workers:
                worker.join()


def _start(
    task: Callable[[S], T],
    items: Sequence[S],
    processes: int,
    workers: list[BaseProcess],
    ends: list[Connection],
) -> None:
    """Start the workers, by `fork` where that is safe: they then inherit what this process has loaded."""
    forks = sys.platform == "linux" and threading.active_count() == 1
    context: Any = get_context("fork" if forks else "spawn")
    for _ in range(processes):
        ours, theirs = context.Pipe()
        ends.append(ours)
        worker = context.Process(target=_work, args=(theirs, ends if forks else [], task, items), daemon=True)
        with _held_back():  # until set up, a worker would handle Ctrl-C like its parent
            worker.start()
            workers.append(worker)
        theirs.close()


def _work(end: Connection, others: list[Connection], task: Callable[[S], T], items: Sequence[S]) -> None:
    """Run in a worker: perform the task on one item after another until the parent has none left or is gone."""
    for other in others:
        other.close()  # the parent's ends: open here, they would hide that the parent is gone
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all; the parent kills its workers
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
    while True:
        try:
            index = end.recv()
        except (EOFError, OSError):
            return
        answer: tuple[T | None, BaseException | None]
        try:
            answer = task(items[index]), None
        except Exception as error:  # noqa: BLE001 - the parent raises it
            error.add_note(traceback.format_exc(limit=-5, chain=False))
            answer = None, error
        try:
            end.send(answer)
        except OSError:
            return


@contextmanager
def _held_back() -> Iterator[None]:
    """Delay signals that end the process until after the block."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _terminable() -> Iterator[None]:
    """Make SIGTERM raise SystemExit in the block, so that the workers end too."""
    if (
        threading.current_thread() is not threading.main_thread()
        or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL
    ):
        yield
        return
    signal.signal(signal.SIGTERM, _leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _leave(number: int, _: FrameType | None) -> None:
    raise SystemExit(128 + number)
