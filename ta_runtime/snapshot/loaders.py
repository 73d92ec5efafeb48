"""Sees what a `DataLoader` hands out, and how it was made."""

import sys
from collections.abc import Callable
from typing import Any

from ta_runtime.probes.listener import Listener
from ta_runtime.probes.patching import Call, End
from ta_runtime.probes.registers import Register
from ta_runtime.snapshot import environment

Settings = tuple[tuple[str, str], ...]


class LoaderSettings(Listener):
    """Knows the settings of the loader behind an iterator: a loop may hold the iterator alone, and the loader is gone."""

    def __init__(self) -> None:
        self._settings: Register[Settings] = Register()  # by iterator

    def of(self, iterator: Any) -> Settings:
        return self._settings.get(iterator) or ()

    def epoch(self, call: Call) -> End:
        return self._begun

    def _begun(self, call: Call) -> None:
        if not call.raised:
            self._settings.add(call.result, tuple(environment.loader(call.args[0])))


class BatchWatch(Listener):
    """Calls `ask` before a batch is drawn, `note` with its iterator and the batch, `ended` with an iterator that has no more."""

    def __init__(
        self, ask: Callable[[], None], note: Callable[[Any, Any], None], ended: Callable[[Any], None]
    ) -> None:
        self._ask, self._note, self._ended = ask, note, ended

    def batch(self, call: Call) -> End:
        self._ask()
        return self._came

    def _came(self, call: Call) -> None:
        if not call.raised:
            self._note(call.args[0], call.result)
        elif isinstance(sys.exception(), StopIteration):
            self._ended(call.args[0])
