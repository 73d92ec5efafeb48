"""Sees `load_state_dict`: which modules got values from elsewhere, and which a copy of their own."""

from collections.abc import Callable, Mapping
from itertools import chain
from typing import TYPE_CHECKING, Any

from torch import Tensor, nn

from ta_runtime.facts import Loading
from ta_runtime.observers.observer import Observer
from ta_runtime.observers.patching import Patch
from ta_runtime.places import NOWHERE, Place, Register, here

if TYPE_CHECKING:
    from ta_runtime.facts import Run

LOADED: Register[bool] = Register()
"""Every module that a state was loaded into while a session was on, those inside included."""

_PLAIN = (Tensor, nn.Parameter)


class Loads(Observer):
    """Compares what is loaded with where it is loaded to."""

    def attach(self) -> None:
        self._loadings: dict[Place, Loading] = {}
        self._taken: Register[int] = Register()  # states, and how many steps there had been
        self.undo += [
            Patch(nn.Module, "load_state_dict", self._load_state_dict).undo,
            Patch(nn.Module, "state_dict", self._state_dict).undo,
        ]

    def report(self, run: "Run") -> None:
        run.loadings = list(self._loadings.values())

    def _load_state_dict(self, original: Callable[..., Any]) -> Callable[..., Any]:
        note = self.session.guarded(self._note_load)

        def load_state_dict(module: nn.Module, state_dict: Any, *args: Any, **kwargs: Any) -> Any:
            if self.undo:
                note(module, state_dict)
            return original(module, state_dict, *args, **kwargs)

        return load_state_dict

    def _state_dict(self, original: Callable[..., Any]) -> Callable[..., Any]:
        note = self.session.guarded(self._note_state)

        def state_dict(module: nn.Module, *args: Any, **kwargs: Any) -> Any:
            state = original(module, *args, **kwargs)
            if self.undo and not args and kwargs.get("destination") is None:  # else one inside another
                note(state)
            return state

        return state_dict

    def _note_state(self, state: Any) -> None:
        if type(state) is not dict:
            self._taken.add(state, self.session.step_count)

    def _note_load(self, module: nn.Module, state: Any) -> None:
        for part in module.modules():
            LOADED.add(part, True)
        place = here()
        if not isinstance(state, Mapping) or place is NOWHERE:
            return
        own = dict(
            chain(
                module.named_parameters(remove_duplicate=False), module.named_buffers(remove_duplicate=False)
            )
        )
        tensors = {name: value for name, value in state.items() if isinstance(value, Tensor)}
        loading = self._loadings.setdefault(place, Loading(place))
        loading.times += 1
        loading.tensors = len(tensors)
        is_new = type(state) is not dict and self._taken.get(state) == self.session.step_count
        loading.onto_itself += (
            is_new and bool(tensors) and all(_is_same(own.get(name), t) for name, t in tensors.items())
        )


def _is_same(own: Tensor | None, given: Tensor) -> bool:
    """Whether a tensor lies in the very memory of another."""
    if own is None or type(own) not in _PLAIN or type(given) not in _PLAIN or own.is_meta or given.is_meta:
        return False
    return own.data_ptr() == given.data_ptr() and own.shape == given.shape
