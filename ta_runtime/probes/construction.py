"""Notes the line that builds each module, optimizer, loader, scheduler and scaler, in `registers.BUILT`.

Their constructors are wrapped, as none has a hook that fires for every object. What is put into a module without having
been built, such as a copy, stands on the line that puts it there, by torch's registration hook. Shared by all sessions.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.module import register_module_module_registration_hook
from torch.optim.lr_scheduler import ChainedScheduler, LRScheduler, ReduceLROnPlateau, SequentialLR
from torch.utils.data import DataLoader

from ta_runtime.faults import keep
from ta_runtime.probes import registers, steps, threads
from ta_runtime.probes.patching import Call, watching
from ta_runtime.probes.places import built
from ta_runtime.probes.registers import BUILT, Register
from ta_runtime.probes.undo import Undo, removing

_FEW = 16
"""Optimizers whose parameters are read anew in each of their steps."""

_users = 0
_builds_optimizers = False
_undo = Undo()
_listeners: list[Callable[[], None]] = []
_watchers: list[Callable[[nn.Module], object]] = []
_schedulers: Register[bool] = Register()


def schedulers() -> list[LRScheduler]:
    """Every learning rate scheduler that was built while a session was on and still lives."""
    return list(_schedulers.instances())


def optimizers() -> list[torch.optim.Optimizer]:
    """Every optimizer that was built while a session was on and still lives, also those that have not stepped yet; none that
    another thread uses.
    """
    return registers.optimizers()


def has_optimizer() -> bool:
    """Whether an optimizer was built while a session was on."""
    return _builds_optimizers


def held(optimizer: torch.optim.Optimizer | None = None) -> dict[int, Tensor]:
    """What an optimizer holds in its groups, by id and in order; without one, what all that still live hold."""
    holders = optimizers() if optimizer is None else [optimizer]
    groups = (group for holder in holders for group in holder.param_groups)
    return {id(parameter): parameter for group in groups for parameter in group["params"]}


_ids: frozenset[int] = frozenset()
_ids_of: tuple[int, int] = (-1, -1)  # how many optimizers were built and lived then
_ids_until = 0  # the number of a step


def held_ids() -> frozenset[int]:
    """The ids of what all optimizers hold that still live.

    It is read anew when one came or went, and once as many steps were made as there are optimizers: so a step costs no more
    where there are many.
    """
    global _ids, _ids_of, _ids_until
    known = (registers.count_built(), registers.count_alive())
    if known != _ids_of or steps.count() >= _ids_until:
        _ids, _ids_of, _ids_until = frozenset(held()), known, steps.count() + known[1] // _FEW
    return _ids


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
        _undo.append(watching(kind, "__init__", _noting, threads.may_be_watched).undo)


def detach(on_model: Callable[[], None]) -> None:
    """Stop noting, if no other session needs it."""
    global _users, _builds_optimizers
    _users -= 1
    _listeners.remove(on_model)
    if _users == 0:
        _undo()
        registers.forget_optimizers()
        _schedulers.clear()
        _builds_optimizers = False


def watch(watcher: Callable[[nn.Module], object]) -> Callable[[], None]:
    """Call `watcher` with every module that is built while a session is on; returns what ends that."""
    _watchers.append(watcher)
    return partial(_watchers.remove, watcher)


def _registered(parent: nn.Module, name: str, child: nn.Module | None) -> None:
    if (
        child is not None
        and not torch.compiler.is_compiling()
        and (threads.is_watched() or threads.may_be_watched())
    ):
        _note(child)


def _noting(call: Call) -> None:
    _note(call.args[0])


def _note(instance: Any) -> None:
    global _builds_optimizers
    try:
        if instance in BUILT:
            return
        BUILT.add(instance, built(instance))
        if isinstance(instance, nn.Module):
            if threads.is_watched():
                for listener in tuple(_listeners):
                    listener()
                for watcher in tuple(_watchers):
                    watcher(instance)
        elif isinstance(instance, torch.optim.Optimizer):
            _builds_optimizers = True
            registers.built(instance)
        elif isinstance(instance, LRScheduler) and threads.is_watched():
            _schedulers.add(instance, True)
    except Exception as error:  # noqa: BLE001 - an object without a line is better than none
        keep(error)
        return
