"""Sees `load_state_dict`: which modules got values from elsewhere, and which a copy of their own."""

from collections.abc import Mapping
from itertools import chain
from typing import TYPE_CHECKING, Any

from torch import Tensor, nn

from ta_runtime.facts import Loading
from ta_runtime.measure.memory import address
from ta_runtime.observers.observer import Observer
from ta_runtime.probes.places import NOWHERE, Place, here
from ta_runtime.probes.registers import Register

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

    def report(self, run: "Run") -> None:
        run.loadings = list(self._loadings.values())

    def took_state(self, state: Mapping[str, Any]) -> None:
        if type(state) is not dict:  # to which nothing can refer weakly
            self._taken.add(state, self.session.step_count)

    def loads_state(self, module: nn.Module, state: Any) -> None:
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
    if own is None or type(own) not in _PLAIN or type(given) not in _PLAIN:
        return False
    return address(own) == address(given) and own.shape == given.shape
