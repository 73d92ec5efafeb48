"""Keeps what goes wrong in a snapshot or a trace away from the run, and both away from what is no training."""

import os
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from typing import Any

from ta_lint.core.errors import oneline
from ta_runtime import reports
from ta_runtime.observers.compilers import captured, traced
from ta_runtime.observers.patching import OWN_WORK

Guard = Callable[[Callable[..., Any]], Callable[..., Any]]

_PATIENCE = 3


class Guarding:
    """Wraps methods so that they cannot stop the run: what they raise is said, and the third time `give_up` is called.

    They do nothing while it is not `on` or `paused`, in other threads than the one that trains, in a process that was
    forked off, where a compiler traces, and where a CUDA graph is captured.
    """

    def __init__(
        self,
        give_up: Callable[[], object],
        *,
        failed: str = "a snapshot is not complete",
        ended: str = "no more snapshots are taken",
    ) -> None:
        """`failed` and `ended` are what is said of what was raised, and when that was once too often."""
        self.on = self.paused = False
        self._said, self._last = failed, ended
        self._give_up = give_up
        self._thread: int | None = None
        self._process = os.getpid()
        self._failures = 0

    @property
    def is_child(self) -> bool:
        return os.getpid() != self._process

    @property
    def elsewhere(self) -> bool:
        """Whether another thread than the one that trains runs this, or a process that was forked off."""
        return self.is_child or (self._thread is not None and threading.get_ident() != self._thread)

    def __call__(self, method: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(method)
        def run(*args: Any, **kwargs: Any) -> None:
            if self.on and not (self.paused or self.elsewhere or traced() or captured()):
                OWN_WORK.depth += 1
                try:
                    method(*args, **kwargs)
                except Exception as error:  # noqa: BLE001 - the run goes on
                    self.failed(getattr(method, "__qualname__", ""), error)
                finally:
                    OWN_WORK.depth -= 1

        return run

    def leading(self, method: Callable[..., Any]) -> Callable[..., Any]:
        """The same of a method that is first called in the thread that trains."""
        guarded = self(method)

        @wraps(method)
        def run(*args: Any, **kwargs: Any) -> None:
            if self._thread is None and self.on and not self.paused:
                self._thread = threading.get_ident()
            guarded(*args, **kwargs)

        return run

    def stay(self) -> None:
        """Nothing is looked at in other threads than this one."""
        self._thread = threading.get_ident()

    def failed(self, name: str, error: Exception) -> None:
        """Say that something of ours raised; the third time it is the last."""
        self._failures += 1
        reports.error_line(f"{self._said}: {name}: {type(error).__name__}: {oneline(error)}")
        if self._failures == _PATIENCE:
            reports.error_line(self._last)
            with suppress(Exception):
                self._give_up()
