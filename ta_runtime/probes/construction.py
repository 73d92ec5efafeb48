"""Notes the line that builds each module, optimizer, loader, scheduler and scaler, in `registers.BUILT`.

Their constructors are wrapped, as none has a hook that fires for every object. What is put into a module without having
been built, such as a copy, stands on the line that puts it there, by torch's registration hook. Shared by all sessions.
"""

import weakref
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.module import register_module_module_registration_hook
from torch.optim.lr_scheduler import ChainedScheduler, LRScheduler, ReduceLROnPlateau, SequentialLR
from torch.utils.data import DataLoader

from ta_runtime.probes.patching import Call
from ta_runtime.probes.places import built
from ta_runtime.probes.registers import BUILT
from ta_runtime.probes.undo import Undo, removing

_users = 0
_undo = Undo()
_listeners: list[Callable[[], None]] = []
_watchers: list[Callable[[nn.Module], object]] = []
_optimizers: "list[weakref.ref[torch.optim.Optimizer]]" = []  # not a set: a subclass may have no hash

_schedulers: "list[weakref.ref[LRScheduler]]" = []


def schedulers() -> list[LRScheduler]:
    """Every learning rate scheduler that was built while a session was on and still lives."""
    return [scheduler for reference in _schedulers if (scheduler := reference()) is not None]


def optimizers() -> list[torch.optim.Optimizer]:
    """Every optimizer that was built while a session was on and still lives, also those that have not stepped yet."""
    return [optimizer for reference in _optimizers if (optimizer := reference()) is not None]


def has_optimizer() -> bool:
    """Whether an optimizer was built while a session was on."""
    return bool(_optimizers)


def held(optimizer: torch.optim.Optimizer | None = None) -> dict[int, Tensor]:
    """What an optimizer holds in its groups, by id and in order; without one, what all that still live hold."""
    holders = optimizers() if optimizer is None else [optimizer]
    groups = (group for holder in holders for group in holder.param_groups)
    return {id(parameter): parameter for group in groups for parameter in group["params"]}


def attach(on_model: Callable[[], None]) -> None:
    """Start noting, unless another session does already. `on_model` is called whenever a module is built."""
    global _users
    _users += 1
    _listeners.append(on_model)
    if _users > 1:
        return
    # the last three schedulers do not call the constructor of LRScheduler
    constructors = [
        nn.Module,
        torch.optim.Optimizer,
        DataLoader,
        LRScheduler,
        ReduceLROnPlateau,
        SequentialLR,
        ChainedScheduler,
        torch.amp.GradScaler,
    ]
    _undo.append(removing(register_module_module_registration_hook(_registered)))
    for kind in constructors:
        _undo.patch(kind, "__init__", _noting)


def detach(on_model: Callable[[], None]) -> None:
    """Stop noting, if no other session needs it."""
    global _users
    _users -= 1
    _listeners.remove(on_model)
    if _users == 0:
        _undo()
        _optimizers.clear()
        _schedulers.clear()


def watch(watcher: Callable[[nn.Module], object]) -> Callable[[], None]:
    """Call `watcher` with every module that is built while a session is on; returns what ends that."""
    _watchers.append(watcher)
    return partial(_watchers.remove, watcher)


def _registered(parent: nn.Module, name: str, child: nn.Module | None) -> None:
    if child is not None and not torch.compiler.is_compiling():
        _note(child)


def _noting(call: Call) -> None:
    _note(call.args[0])


def _note(instance: Any) -> None:
    try:
        if instance in BUILT:
            return
        BUILT.add(instance, built(instance))
        if isinstance(instance, nn.Module):
            for listener in tuple(_listeners):
                listener()
            for watcher in tuple(_watchers):
                watcher(instance)
        elif isinstance(instance, torch.optim.Optimizer):
            _optimizers[:] = [reference for reference in _optimizers if reference() is not None]
            _optimizers.append(weakref.ref(instance))
        elif isinstance(instance, LRScheduler):
            _schedulers[:] = [reference for reference in _schedulers if reference() is not None]
            _schedulers.append(weakref.ref(instance))
    except Exception:  # noqa: BLE001 - an object without a line is better than none
        return
