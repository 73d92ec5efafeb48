"""Sees what a run saves and loads: `torch.save` and `torch.load`, `state_dict` and `load_state_dict`.

None of them has a hook: the functions run other code, the methods are wrapped. Nothing is kept alive by it but the keys.
"""

import os
import socket
import weakref
from collections.abc import Iterator, Mapping
from types import FrameType
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.distributed.tensor import DTensor

from ta_lint.events.kept import Kept
from ta_runtime.facts import CheckpointHistory, Loaded, PartialLoad, Run, Saved, SavedState
from ta_runtime.measure.memory import address
from ta_runtime.naming import stripped_key
from ta_runtime.observers.observer import Observer
from ta_runtime.probes.patching import Call, End
from ta_runtime.probes.places import Place, caller, discards, here, is_library
from ta_runtime.probes.registers import Register

if TYPE_CHECKING:
    from ta_runtime.observers.context import Context
    from ta_runtime.observers.window import Window

_MOST = 64  # calls of each kind that are looked at, and states that are remembered
_DEPTH = 3  # of dictionaries in what is saved


class _Taken:
    """A state that `state_dict()` returned: where, when, and its tensors as long as somebody has them."""

    __slots__ = ("place", "step", "tensors")

    def __init__(self, place: Place, step: int, tensors: list[Tensor]) -> None:
        self.place, self.step = place, step
        self.tensors = {id(tensor): weakref.ref(tensor) for tensor in tensors}

    def holds(self, tensor: Tensor) -> bool:
        reference = self.tensors.get(id(tensor))
        return reference is not None and reference() is tensor


class CheckpointObserver(Observer):
    """Watches what a session's run saves and loads."""

    def __init__(self, session: "Context") -> None:
        super().__init__(session)
        self._facts = CheckpointHistory()
        self._kept: list[Kept] = []
        self._taken: list[_Taken] = []
        self._last_taken: dict[int, tuple[Place, int]] = {}  # by where the first tensor lies: line, step
        self._trained: Register[bool] = Register()
        self._optimizers: Register[int] = Register()
        self._depth = 0  # of `state_dict` calls inside each other

    def detach(self) -> None:
        super().detach()
        self._taken.clear()

    def after_step(self, optimizer: torch.optim.Optimizer, window: "Window") -> None:
        """The parameters that a step moved are those that a checkpoint must hold."""
        count = sum(len(group["params"]) for group in optimizer.param_groups)
        if self._optimizers.get(optimizer) == count:
            return
        self._optimizers.add(optimizer, count)
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                if self._facts.stepped_at is None and isinstance(parameter, nn.Parameter):
                    self._facts.stepped_at = here()
                if parameter.grad is not None and parameter not in self._trained:
                    self._trained.add(parameter, True)

    def report(self, run: Run) -> None:
        run.checkpoints = self._facts
        run.kept = self._kept
        host = socket.gethostname()
        files = [saved for saved in self._facts.saved if saved.path]
        run.told.saved = [Saved(os.path.realpath(saved.path), host, saved.place) for saved in files]

    # -- saving -----------------------------------------------------------------------------------------------

    def save(self, call: Call) -> None:
        self._note_saved(call.given(0, "obj"), call.given(1, "f"))

    def save_elsewhere(self, call: Call) -> None:
        """What others save is not looked into."""
        self._note_saved(None, None)

    def _note_saved(self, content: Any, target: Any) -> None:
        path = os.path.abspath(target) if isinstance(target, (str, os.PathLike)) else ""  # noqa: PTH100
        place = here()
        saved = SavedState(place, str(path), self.session.step_count)
        for state in _states(content, _DEPTH):
            self._note_used(state, place)
            self._compare(state, content, saved)
        known = next(
            (one for one in self._facts.saved if one.place == place and one.path == saved.path), None
        )
        if (saved.changed or saved.lost) and not (known is not None and (known.changed or known.lost)):
            self.session.ask_soon()
        if known is None and len(self._facts.saved) < _MOST:
            self._facts.saved.append(saved)
        elif known is not None:
            known.step, known.names = saved.step, saved.names
            if saved.changed or saved.lost:
                known.kept, known.changed, known.lost = saved.kept, saved.changed, saved.lost

    @torch.no_grad()
    def _compare(self, state: Mapping[str, Tensor], content: Any, saved: SavedState) -> None:
        """Hold a state against the model that it is of: the one with which it has most tensors in common."""
        best: tuple[int, dict[str, Tensor], dict[str, bool]] | None = None
        for model in self.session.names.models:
            own = {stripped_key(name): value for name, value in _named(model)}
            same = {
                name: _same(value, own[stripped_key(name)])
                for name, value in state.items()
                if stripped_key(name) in own
            }
            count = sum(same.values())
            if count * 2 > len(state) and (best is None or count > best[0]):
                best = count, own, same
        if best is None:
            return
        saved.kept, own, same = best
        trained = {name for name, value in own.items() if value in self._trained}
        saved.changed = [name for name, equal in same.items() if not equal and stripped_key(name) in trained]
        everything = list(_tensors(content, _DEPTH))
        stored = {_storage(value) for value in everything}
        kept = {stripped_key(name) for name in state}
        saved.names = frozenset(kept)
        gone = [name for name in trained if name not in kept and _storage(own[name]) not in stored]
        saved.lost = sorted(name for name in gone if self._by_mistake(name, own, kept))

    def _by_mistake(self, name: str, own: Mapping[str, Tensor], kept: set[str]) -> bool:
        """Whether a trained parameter that is left out was hardly meant to be.

        Either others of its part of the model are kept, or it was frozen after it had been trained, and what is kept
        is what trains now.
        """
        part = name.partition(".")[0]
        if any(other != name and other.partition(".")[0] == part for other in kept):
            return True
        training = {other for other, value in own.items() if value.requires_grad}
        return not own[name].requires_grad and training == {
            other for other in kept if isinstance(own.get(other), nn.Parameter)
        }

    # -- loading ----------------------------------------------------------------------------------------------

    def load(self, call: Call) -> None:
        if _of_user(caller()):
            self._note_loaded(*call.args, **call.kwargs)

    def _note_loaded(
        self,
        f: Any = None,
        map_location: Any = None,
        pickle_module: Any = None,
        *,
        weights_only: bool | None = None,
        **rest: Any,
    ) -> None:
        place = here()
        if len(self._facts.loaded) == _MOST or any(one.place == place for one in self._facts.loaded):
            return
        unpickles = not weights_only
        if weights_only is None:  # the default of torch 2.6
            unpickles = pickle_module is not None or _set("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD")
        if _set("TORCH_FORCE_WEIGHTS_ONLY_LOAD"):
            unpickles = False
        path = os.path.abspath(f) if isinstance(f, (str, os.PathLike)) else ""  # noqa: PTH100
        own = bool(path) and any(saved.path == str(path) for saved in self._facts.saved)
        self._facts.loaded.append(Loaded(place, unpickles, own, _unsafe(f) if unpickles else []))

    def load_module_state(self, call: Call) -> End:
        state = call.given(1, "state_dict")
        self._note_used(state, None)
        self.session.tell("loads_state", call.args[0], state)
        return self._loaded

    def _loaded(self, call: Call) -> None:
        if not call.raised and not call.given(2, "strict", True) and _of_user(frame := caller()):
            self._note_partial(call.args[0], call.given(1, "state_dict"), call.result, discards(frame))

    def _note_partial(self, module: nn.Module, state: Any, result: Any, discarded: bool) -> None:
        missing, unexpected = list(result.missing_keys), list(result.unexpected_keys)
        if missing and not unexpected and _is_frozen(module, missing):
            return  # the state is that of adapters: of what is to be trained, nothing is missing
        if len(self._facts.partial) < _MOST:
            loaded = len(state) - len(unexpected)
            first = next(iter((*missing, *unexpected)), "")
            self._facts.partial.append(
                PartialLoad(here(), loaded, len(missing), len(unexpected), first, discarded)
            )

    # -- states that are kept ---------------------------------------------------------------------------------

    def module_state(self, call: Call) -> End:
        self._depth += 1
        return self._took

    def _took(self, call: Call) -> None:
        self._depth -= 1
        if not self._depth and not call.raised:
            self._note_taken(call.result)

    def _note_taken(self, state: Any) -> None:
        self.session.tell("took_state", state)
        values = [value for value in state.values() if isinstance(value, Tensor) and value.numel()]
        self._taken = [
            taken for taken in self._taken if any(ref() is not None for ref in taken.tensors.values())
        ]
        if values and len(self._taken) < _MOST:
            taken = _Taken(here(), self.session.step_count, values)
            self._taken.append(taken)
            self._last_taken[_storage(values[0])] = taken.place, taken.step

    def _note_used(self, state: Any, place: Place | None) -> None:
        """A state is loaded, or saved: it is looked at whether it is one that was kept from an earlier step."""
        if not isinstance(state, Mapping) or len(self._kept) == _MOST:
            return
        values = [value for value in state.values() if isinstance(value, Tensor) and value.numel()]
        first = values[0] if values else None
        if first is None:
            return
        taken = next((one for one in self._taken if one.holds(first)), None)
        # the tensors of the state, or others in the same memory, such as detached ones
        since = (taken.place, taken.step) if taken is not None else self._last_taken.get(_storage(first))
        step = self.session.step_count
        if since is None or since[1] == step:
            return
        parameters = {_storage(value) for model in self.session.names.models for _, value in _named(model)}
        shared = sum(
            (taken is None or taken.holds(value)) and _storage(value) in parameters for value in values
        )
        if taken is not None or shared:
            self._kept.append(Kept(since[0], place or here(), len(values), shared, (since[1], step)))


def _of_user(frame: FrameType) -> bool:
    return not is_library(frame.f_code.co_filename)


def _states(content: Any, depth: int) -> Iterator[Mapping[str, Tensor]]:
    """The dictionaries of named tensors in what is saved."""
    if isinstance(content, nn.Module) or not isinstance(content, Mapping):
        return
    if content and all(isinstance(name, str) for name in content):
        tensors = {name: value for name, value in content.items() if isinstance(value, Tensor)}
        if len(tensors) * 2 > len(content):
            yield tensors
            return
    if depth:
        for value in content.values():
            yield from _states(value, depth - 1)


def _tensors(content: Any, depth: int) -> Iterator[Tensor]:
    """All tensors in what is saved, also in lists."""
    if isinstance(content, Tensor):
        yield content
    elif depth >= 0 and isinstance(content, (Mapping, list, tuple)):
        for value in content.values() if isinstance(content, Mapping) else content:
            yield from _tensors(value, depth - 1)


def _named(model: nn.Module) -> Iterator[tuple[str, Tensor]]:
    yield from model.named_parameters()
    yield from model.named_buffers()


def _storage(tensor: Tensor) -> int:
    return -id(tensor) if isinstance(tensor, DTensor) else address(tensor)


def _same(value: Tensor, own: Tensor) -> bool:
    """Whether a tensor is that of the model, or a copy of it, in whatever precision and on whatever device."""
    if value.shape != own.shape or isinstance(own, DTensor) or isinstance(value, DTensor):
        return False
    if _storage(value) == _storage(own):
        return True
    return bool(torch.equal(value, own.to(value)))


def _is_frozen(module: nn.Module, missing: list[str]) -> bool:
    """Whether a module has parameters to train, and none of them is among the keys that are missing."""
    training = {
        name for name, value in module.named_parameters(remove_duplicate=False) if value.requires_grad
    }
    return bool(training) and training.isdisjoint(missing)


def _set(variable: str) -> bool:
    return os.environ.get(variable, "0").lower() in ("1", "y", "yes", "true")


def _unsafe(file: Any) -> list[str] | None:
    """What a file asks for beyond `weights_only=True`, read from its pickle without running it."""
    scan = getattr(torch.serialization, "get_unsafe_globals_in_checkpoint", None)
    if scan is None or not isinstance(file, (str, os.PathLike)):
        return None
    try:
        return [str(name) for name in scan(file)]
    except (OSError, ValueError, RuntimeError):  # no file, or one in the format of before torch 1.6
        return None
