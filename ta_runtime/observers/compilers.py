"""Knows whether this process compiles its models, and whether code runs now or is only traced.

Hooks and replaced functions that are there when a model is compiled end up in its code, and it is compiled once more
when they go. So forward passes are not observed where `torch.compile` is in use, unless audited steps run without it.
"""

import sys
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from ta_runtime.observers.patching import Patch

# none of these is public: without them, what some tracers run is looked at
_interpreters = getattr(torch._C._functorch, "peek_interpreter_stack", lambda: None)
_tracing = getattr(torch._C, "_is_tracing", lambda: False)
_modes = getattr(torch._C, "_len_torch_dispatch_stack", lambda: 0)
_mode = getattr(torch._C, "_get_dispatch_mode", lambda key: None)
_keys = getattr(torch._C, "_TorchDispatchModeKey", None)
_TRACERS = [key for name in ("PROXY", "FAKE") if (key := getattr(_keys, name, None)) is not None]


_suspending: "list[Compilers]" = []  # audited steps of several sessions begin and end in any order
_eager: list[Callable[[], object]] = []


def traced() -> bool:
    """Whether a compiler, tracer or function transform runs the code: its tensors hold no numbers of the run."""
    return (
        torch.compiler.is_compiling()
        or _tracing()
        or _interpreters() is not None
        or (_modes() > 0 and any(_mode(key) is not None for key in _TRACERS))
    )


class Compilers:
    """Watches for `torch.compile`; `on_use` is called before it first compiles anything."""

    def __init__(self, on_use: Callable[[], None]) -> None:
        self._on_use = on_use
        self._undo: list[Callable[[], None]] = []
        self._used = False

    @property
    def used(self) -> bool:
        """Whether anything was ever handed to `torch.compile`, also before the session."""
        if not self._used:
            frames = sys.modules.get("torch._dynamo.eval_frame")
            # not public; None stands for what is to run uncompiled
            backends = getattr(frames, "cached_backends", {})
            self._used = any(backend is not None for backend in backends.values())
        return self._used

    def attach(self) -> None:
        self._undo = [Patch(torch, "compile", self._compile).undo]  # nn.Module.compile calls it

    def detach(self) -> None:
        self.lift()
        while self._undo:
            self._undo.pop()()

    def lift(self) -> None:
        """Let compiled code run again, if no other session needs it uncompiled."""
        if self in _suspending:
            _suspending.remove(self)
            while not _suspending and _eager:
                _eager.pop()()

    def suspend(self) -> None:
        """Run everything uncompiled until `lift`, nothing is recompiled for it."""
        if self in _suspending:
            return
        _suspending.append(self)
        if len(_suspending) > 1:
            return
        stance = torch.compiler.set_stance("force_eager")
        _eager.append(lambda: stance.__exit__(None, None, None))  # back to the stance before
        if (frames := sys.modules.get("torch._dynamo.eval_frame")) is not None:
            # its own `__call__` warns of global hooks, and then does the same
            _eager.append(Patch(frames.OptimizedModule, "__call__", _plain_call).undo)

    def _compile(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def compile(*args: Any, **kwargs: Any) -> Any:
            if self._undo and not self._used:
                self._used = True
                self._on_use()
            return original(*args, **kwargs)

        return compile


def _plain_call(original: Callable[..., Any]) -> Callable[..., Any]:
    def __call__(module: nn.Module, *args: Any, **kwargs: Any) -> Any:
        return nn.Module.__call__(module, *args, **kwargs)

    return __call__
