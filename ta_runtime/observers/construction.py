"""Notes the line that builds each module, optimizer, loader, scheduler and scaler, in `places.BUILT`.

Modules by torch's registration hooks, which fire where `self.fc = nn.Linear(...)` runs and inside the constructor of a
layer with parameters; the others have no hook, so their `__init__` is wrapped. Shared by all sessions.
"""

import weakref
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn.modules.module import (
    register_module_module_registration_hook,
    register_module_parameter_registration_hook,
)
from torch.optim.lr_scheduler import LRScheduler
from torch.utils.data import DataLoader

from ta_runtime.observers.patching import Patch
from ta_runtime.places import BUILT, built

_users = 0
_undo: list[Callable[[], None]] = []
OPTIMIZERS: "weakref.WeakSet[torch.optim.Optimizer]" = weakref.WeakSet()
"""Every optimizer built while a session was on, also those that have not stepped yet."""


def attach() -> None:
    """Start noting, unless another session does already."""
    global _users
    _users += 1
    if _users > 1:
        return
    handles = [
        register_module_module_registration_hook(_module_registered),
        register_module_parameter_registration_hook(_parameter_registered),
    ]
    constructors = [torch.optim.Optimizer, DataLoader, LRScheduler, torch.amp.GradScaler]
    patches = [Patch(kind, "__init__", _noting) for kind in constructors]
    _undo.extend([*(handle.remove for handle in handles), *(patch.undo for patch in patches)])


def detach() -> None:
    """Stop noting, if no other session needs it."""
    global _users
    _users -= 1
    if _users == 0:
        while _undo:
            _undo.pop()()
        OPTIMIZERS.clear()


def _module_registered(parent: nn.Module, name: str, child: nn.Module | None) -> None:
    if torch.compiler.is_compiling():
        return
    for module in (parent, child):
        if module is not None and module not in BUILT:
            BUILT.add(module, built(module))


def _parameter_registered(module: nn.Module, name: str, parameter: nn.Parameter | None) -> None:
    if not torch.compiler.is_compiling() and module not in BUILT:
        BUILT.add(module, built(module))


def _noting(original: Callable[..., None]) -> Callable[..., None]:
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        if _users and self not in BUILT:
            BUILT.add(self, built(self))
            if isinstance(self, torch.optim.Optimizer):
                OPTIMIZERS.add(self)
        original(self, *args, **kwargs)

    return __init__
