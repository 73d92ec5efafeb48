"""Holds the keys of a state against those of the module that is to load it."""

from collections.abc import Mapping
from itertools import chain
from typing import TYPE_CHECKING, Any

from torch import nn

from ta_runtime.facts import LoadedKeys
from ta_runtime.observers.observer import Observer
from ta_runtime.probes.places import NOWHERE, Place, here

if TYPE_CHECKING:
    from ta_runtime.facts import Run

_PREFIXES = ("_orig_mod.", "module.")


class Keys(Observer):
    """Watches `load_state_dict`."""

    def attach(self) -> None:
        self._found: dict[Place, LoadedKeys] = {}

    def report(self, run: "Run") -> None:
        run.loaded_keys = list(self._found.values())

    def loads_state(self, module: nn.Module, state: Any) -> None:
        place = here()
        if not isinstance(state, Mapping) or place is NOWHERE or not state:
            return
        keys = [key for key in state if isinstance(key, str)]
        own = {
            name
            for name, _ in chain(
                module.named_parameters(remove_duplicate=False), module.named_buffers(remove_duplicate=False)
            )
        }
        prefix = _prefix(keys)
        wrapped = sum(key[len(prefix) :] in own for key in keys) if prefix else 0
        self._found[place] = LoadedKeys(place, sum(key in own for key in keys), wrapped, prefix)


def _prefix(keys: list[str]) -> str:
    """What all keys begin with if a wrapper has put it there: `_orig_mod.`, or `module._orig_mod.` of two."""
    found = ""
    while (one := next((one for one in _PREFIXES if keys[0].startswith(found + one)), None)) is not None:
        found += one
    return found if found and all(key.startswith(found) for key in keys) else ""
