"""Forward hooks that are there for a monitored step alone."""

import sys
import weakref
from collections.abc import Callable, Collection, Iterable
from types import MethodType
from typing import Any, Protocol, cast

import torch
from torch import nn

from ta_runtime.observers.compilers import traced, transformed

Heard = Callable[[str, Any], None]

_is_compiling = torch.compiler.is_compiling
# not public: without it, what checkpointed layers compute again in a backward pass counts twice
_graph_task = getattr(torch._C, "_current_graph_task_id", lambda: -1)


def recomputing() -> bool:
    """Whether a backward pass runs, in which a forward pass is that of checkpointed layers once more."""
    return bool(_graph_task() != -1)


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


class Companion(Protocol):
    """What has hooks of its own in the model, which are also there for monitored steps alone."""

    def attach(self) -> None: ...
    def detach(self) -> None: ...


def compiled(modules: Collection[nn.Module]) -> bool:
    """Whether one of them runs as compiled code, in which a hook that comes later is not heard."""
    optimized = getattr(sys.modules.get("torch._dynamo.eval_frame"), "OptimizedModule", ())
    if any(issubclass(kind, optimized) for kind in set(map(type, modules))):
        return True
    return any(module._compiled_call_impl is not None for module in modules)
