"""What is known of objects of the run that may have no hash, and that nothing of ours may keep alive."""

import weakref
from collections.abc import Iterator, KeysView
from typing import Any, Generic, TypeVar

from ta_runtime.probes.places import Place

_V = TypeVar("_V")


class Register(Generic[_V]):
    """What is known of objects, by their identity, as they may have no hash; forgets what the run forgets.

    So an object that comes to lie where another was is not taken for it.
    """

    def __init__(self) -> None:
        self._entries: dict[int, tuple[weakref.ref[Any], _V]] = {}

    def __contains__(self, instance: object) -> bool:
        return self.get(instance) is not None

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def ids(self) -> KeysView[int]:
        """Of the objects that still live."""
        return self._entries.keys()

    def instances(self) -> Iterator[Any]:
        """Those that still live, in the order in which they came."""
        for reference, _ in list(self._entries.values()):
            if (instance := reference()) is not None:
                yield instance

    def values(self) -> list[_V]:
        """What is known of those that still live."""
        return [value for _, value in self._entries.values()]

    def get(self, instance: object) -> _V | None:
        entry = self._entries.get(id(instance))
        return entry[1] if entry is not None and entry[0]() is instance else None

    def discard(self, instance: object) -> None:
        if instance in self:
            del self._entries[id(instance)]

    def add(self, instance: object, value: _V) -> None:
        key = id(instance)
        entries = self._entries

        def forget(reference: "weakref.ref[Any]") -> None:
            if (entry := entries.get(key)) is not None and entry[0] is reference:
                del entries[key]

        entries[key] = (weakref.ref(instance, forget), value)


BUILT: Register[Place] = Register()
"""Every module, optimizer, loader, scheduler and scaler built while a session was on. See `observers.construction`."""
