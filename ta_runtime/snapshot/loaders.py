"""Sees what a `DataLoader` hands out, and how it was made."""

from collections.abc import Callable
from typing import Any

from torch.utils.data import DataLoader
from torch.utils.data.dataloader import _BaseDataLoaderIter

from ta_runtime.guarding import Guard
from ta_runtime.observers.patching import Undo
from ta_runtime.registers import Register
from ta_runtime.snapshot import environment

Settings = tuple[tuple[str, str], ...]


class BatchWatch:
    """Calls `ask` before a batch is drawn, `note` with its iterator, the batch and the settings of its loader.

    `ended` is called with an iterator that has no more.

    Batches are looked at between `watch` and `let_go` alone. The settings are noted where a pass over a loader begins, at
    any step: a loop may hold the iterator alone, and the loader is gone.
    """

    def __init__(
        self,
        ask: Callable[[], None],
        note: Callable[[Any, Any, Settings], None],
        ended: Callable[[Any], None],
        guard: Guard,
    ) -> None:
        self._ask, self._note, self._ended, self._guard = ask, note, ended, guard
        self._settings: Register[Settings] = Register()  # by iterator
        self._undo, self._watching = Undo(), Undo()

    def attach(self) -> None:
        self._undo.patch(DataLoader, "__iter__", self._iter)

    def detach(self) -> None:
        self.let_go()
        self._undo()

    def watch(self) -> None:
        self._watching.patch(_BaseDataLoaderIter, "__next__", self._next)

    def let_go(self) -> None:
        self._watching()

    def _iter(self, original: Callable[..., Any]) -> Callable[..., Any]:
        begins = self._guard(self._begins)

        def __iter__(loader: Any) -> Any:
            iterator = original(loader)
            if self._undo:
                begins(loader, iterator)
            return iterator

        return __iter__

    def _begins(self, loader: Any, iterator: Any) -> None:
        self._settings.add(iterator, tuple(environment.loader(loader)))

    def _next(self, original: Callable[..., Any]) -> Callable[..., Any]:
        ask, came, ended = self._guard(self._ask), self._guard(self._came), self._guard(self._ended)

        def __next__(iterator: Any) -> Any:
            if not self._watching:
                return original(iterator)
            ask()
            try:
                batch = original(iterator)
            except StopIteration:
                ended(iterator)
                raise
            came(iterator, batch)
            return batch

        return __next__

    def _came(self, iterator: Any, batch: Any) -> None:
        self._note(iterator, batch, self._settings.get(iterator) or ())
