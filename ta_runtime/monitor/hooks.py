"""Forward hooks that are there for a monitored step alone."""

import sys
import weakref
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import nn

from ta_runtime.observers.compilers import traced, transformed

# not public: without it, what checkpointed layers compute again in a backward pass counts twice
_backward_pass = getattr(torch._C, "_current_graph_task_id", lambda: -1)

Owner = TypeVar("Owner")
Heard = Callable[[Owner, str, Any], None]


def _silent(module: nn.Module, args: Any, output: Any) -> None:
    """What a hook becomes in a copy of its module, which nobody watches."""


def _silenced() -> Callable[..., None]:
    return _silent


class Silent:
    """A hook that keeps its owner not alive, and in a copy of its module, which nobody watches, does nothing."""

    __slots__ = ("_name", "_owner")

    def __init__(self, owner: object, name: str) -> None:
        """Of whom it is, and what its module is called."""
        self._owner = weakref.ref(owner)
        self._name = name

    def __deepcopy__(self, memo: Any) -> Callable[..., None]:
        return _silent

    def __reduce__(self) -> tuple[Callable[[], Any], tuple[()]]:
        return _silenced, ()


class Hook(Generic[Owner]):
    pass


    def __bool__(self) -> bool:
        return bool(self._hooks)

    def attach(self) -> None:
        # where `register_forward_hook` puts them: it and the removal take 20 times as long
        for module, hook in self._hooks:
            module._forward_hooks[self._key] = hook

    def detach(self) -> None:
        for module, _ in self._hooks:
            module._forward_hooks.pop(self._key, None)


def compiled(modules: Iterable[nn.Module]) -> bool:
    """Whether one of them runs as compiled code, in which a hook that comes later is not heard."""
    frames = sys.modules.get("torch._dynamo.eval_frame")
    optimized = getattr(frames, "OptimizedModule", ())
    return any(
        isinstance(module, optimized) or getattr(module, "_compiled_call_impl", None) is not None
        for module in modules
    )
