"""What is known of objects of the run that may have no hash, and that nothing of ours may keep alive."""

import weakref
from collections.abc import Iterator, KeysView
from functools import partial
from typing import Any, Generic, TypeVar

from ta_runtime.probes import threads
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

    def clear(self) -> None:
        """Forget all."""
        self._entries.clear()

    def discard(self, instance: object) -> None:
        if instance in self:
            del self._entries[id(instance)]

    def add(self, instance: object, value: _V) -> None:
        # in C alone: Python would swallow what a signal handler raises in a function that it calls for a weak reference
        forget = partial(self._entries.pop, id(instance))
        self._entries[id(instance)] = (weakref.ref(instance, forget), value)


BUILT: Register[Place] = Register()
"""Every module, optimizer, loader, scheduler and scaler built while a session was on. See `observers.construction`."""


# -- the optimizers of the thread that is watched -----------------------------------------------------------------


class _Known:
    """What is known of an optimizer: the thread that built it, and who steps it."""

    __slots__ = ("built_in", "stepped", "stepped_elsewhere")

    def __init__(self, built_in: object = None) -> None:
        self.built_in = built_in
        self.stepped = self.stepped_elsewhere = False

    @property
    def is_ours(self) -> bool:
        return not self.stepped_elsewhere and (self.stepped or threads.is_ours(self.built_in))


_optimizers: Register[_Known] = Register()
_built = 0


def built(optimizer: Any) -> None:
    """An optimizer was built in this thread."""
    global _built
    _built += 1
    _optimizers.add(optimizer, _Known(threads.mark()))


def count_built() -> int:
    """How many optimizers were built in all."""
    return _built


def count_alive() -> int:
    """How many of them, and of those that have stepped, still live."""
    return len(_optimizers)


def used(optimizer: Any) -> None:
    """An optimizer steps in the thread that is watched."""
    if (known := _optimizers.get(optimizer)) is None:
        _optimizers.add(optimizer, known := _Known())
    known.stepped, known.stepped_elsewhere = True, False


def left(optimizer: Any) -> bool:
    """An optimizer steps in another thread; whether what it steps on is stepped on in the one that is watched too."""
    known = _optimizers.get(optimizer)
    if known is not None and known.stepped_elsewhere:
        return False
    if known is None:
        _optimizers.add(optimizer, known := _Known())
    known.stepped_elsewhere = True
    own = {id(parameter) for other in stepped() for parameter in _parameters(other)}
    return known.stepped or any(id(parameter) in own for parameter in _parameters(optimizer))


def stepped() -> list[Any]:
    """The optimizers that step in the thread that is watched, and still live."""
    return [one for one in _optimizers.instances() if (known := _optimizers.get(one)) and known.stepped]


def is_ours(optimizer: Any) -> bool:
    """Whether an optimizer is, as far as is known, only used in the thread that is watched."""
    known = _optimizers.get(optimizer)
    return threads.are_alone() if known is None else known.is_ours


def is_left(optimizer: Any) -> bool:
    """Whether another thread steps an optimizer."""
    known = _optimizers.get(optimizer)
    return known is not None and known.stepped_elsewhere


def optimizers() -> list[Any]:
    """The optimizers that were built while a session was on, still live, and are used in no other thread."""
    return [
        one
        for one in _optimizers.instances()
        if (known := _optimizers.get(one)) and known.built_in is not None and known.is_ours
    ]


def forget_optimizers() -> None:
    """Nobody watches any more."""
    _optimizers.clear()


def _parameters(optimizer: Any) -> Iterator[Any]:
    return (parameter for group in optimizer.param_groups for parameter in group["params"])
