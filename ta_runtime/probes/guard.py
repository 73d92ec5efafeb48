"""The one fault barrier: what is ours cannot stop the run, and looks away from what is no part of it."""

import os
import time
from collections.abc import Callable
from functools import wraps
from typing import Any

import torch

from ta_runtime.faults import keep
from ta_runtime.probes import threads, tracers
from ta_runtime.probes.compile import captured, traced
from ta_runtime.probes.registers import Register
from ta_runtime.probes.work import apart


class FaultBarrier:
    """Runs methods that cannot stop the run: `failed` is called with what they raise, and may raise in turn.

    They are not run while it is not `on` or `paused`, in a thread that is not watched (`probes.threads`), in a process that was
    forked off, where a compiler traces, and where a CUDA graph is captured unless it `looks_at_captures`. They return None then.
    """

    def __init__(
        self, failed: Callable[[str, Exception], object], *, looks_at_captures: bool = False
    ) -> None:
        self._on = self.paused = False
        self._seconds = self._began = 0.0
        self._depth = 0
        _alive.add(self, True)
        self._failed = failed
        self._looks_away = traced if looks_at_captures else _traced_or_captured

    @property
    def on(self) -> bool:
        """Whether anything is run."""
        return self._on

    @on.setter
    def on(self, on: bool) -> None:
        if on and not self._on:
            threads.begin()
            tracers.FILTERS.begin()
        elif self._on and not on:
            threads.end()
            tracers.FILTERS.end()
        self._on = on

    @property
    def listens(self) -> bool:
        """Whether it runs what happens here and now."""
        return self._on and not self.paused and threads.is_watched() and not self._looks_away()

    def run(self, method: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Call a method now."""
        return self.tried(method, *args, **kwargs) if self.listens else None

    def tried(self, method: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Call a method now, also while it is not on."""
        depth, records = self._depth, torch.is_grad_enabled()
        if not depth:
            self._began = time.perf_counter()
        try:
            self._depth = depth + 1
            return apart(method, args, kwargs)
        except Exception as error:  # noqa: BLE001 - the run goes on
            torch.set_grad_enabled(records)  # what interrupts the end of a `no_grad` leaves it on
            keep(error)
            self._failed(getattr(method, "__qualname__", ""), error)
        finally:  # to what it was: an interruption may come before it changed
            self._depth = depth
            if not depth:
                self._seconds += time.perf_counter() - self._began
        return None

    @property
    def seconds(self) -> float:
        """How long these methods have run in all, by the clock."""
        return self._seconds + (time.perf_counter() - self._began if self._depth else 0.0)

    def __call__(self, method: Callable[..., Any]) -> Callable[..., Any]:
        """The method behind this barrier."""
        run = self.run

        @wraps(method)
        def guarded(*args: Any, **kwargs: Any) -> Any:
            return run(method, *args, **kwargs)

        return guarded


def _traced_or_captured() -> bool:
    return traced() or captured()


_alive: Register[bool] = Register()  # barriers


def _forked() -> None:
    for barrier in _alive.instances():
        barrier.on = False


os.register_at_fork(after_in_child=_forked)
