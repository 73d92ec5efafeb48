"""Forward hooks in the modules of one model, which are put in and taken out at each step that is watched."""

import weakref
from collections.abc import Callable, Iterable
from types import MethodType
from typing import Any, cast

import torch
from torch import nn

from ta_runtime.probes.compile import traced, transformed

Heard = Callable[[str, Any], None]

_is_compiling = torch.compiler.is_compiling


def _silent(module: nn.Module, args: Any, output: Any) -> None:
    """What a hook becomes in a copy of its module, which nobody watches."""


def _silenced() -> Callable[..., None]:
    return _silent


class Hook:
    """Tells the owner of a method what a module put out. Keeps nobody alive, and is silent in a copy."""

    __slots__ = ("_function", "_name", "_owner")

    def __init__(self, name: str, heard: Callable[..., None]) -> None:
        method = cast("MethodType", heard)
        self._name = name
        self._owner = weakref.ref(method.__self__)  # a `WeakMethod` takes 7 times as long to call
        self._function = method.__func__

    def __call__(self, module: nn.Module, args: Any, output: Any) -> None:
        if _is_compiling():  # first and alone: the compiler can see through this
            return
        owner = self._owner()
        if owner is not None and not transformed():
            self._function(owner, self._name, output)

    def __deepcopy__(self, memo: Any) -> Callable[..., None]:
        return _silent

    def __reduce__(self) -> tuple[Callable[[], Any], tuple[()]]:
        return _silenced, ()


class CallHook(Hook):
    """Tells also which module it is, and what it was given."""

    __slots__ = ()

    def __call__(self, module: nn.Module, args: Any, output: Any) -> None:
        if traced():  # first, so that nothing of this gets into the graph
            return
        owner = self._owner()
        if owner is not None:
            self._function(owner, self._name, module, args, output)


class Hooks:
    """Those of one model, made once, and put into the modules and taken out again for each step."""

    def __init__(self, modules: Iterable[tuple[str, nn.Module]], heard: Heard) -> None:
        """Each module under the name by which it is told."""
        self._hooks = [(module, Hook(name, heard)) for name, module in modules]
        self._key = -id(self)  # torch counts upwards
        self._attached = False

    def __bool__(self) -> bool:
        return bool(self._hooks)

    def attach(self) -> None:
        # where `register_forward_hook` puts them: it and the removal take 20 times as long
        for module, hook in self._hooks:
            module._forward_hooks[self._key] = hook
        self._attached = True

    def detach(self) -> None:
        if self._attached:
            self._attached = False
            for module, _ in self._hooks:
                module._forward_hooks.pop(self._key, None)

    def __del__(
        self,
    ) -> None:  # a finalizer would keep the modules, and with them a monitor that one of them has
        self.detach()
