"""Knows whether this process compiles its models, and whether code runs now or is only traced.

Hooks and replaced functions that are there when a model is compiled end up in its code, and it is compiled once more
when they go. So forward passes are not observed where `torch.compile` is in use, unless audited steps run without it.
"""

import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import nn

from ta_runtime.observers.patching import Shared, Undo

# none of these is public: without them, what some tracers run is looked at
_interpreters = getattr(torch._C._functorch, "peek_interpreter_stack", lambda: None)
_tracing = getattr(torch._C, "_is_tracing", lambda: False)
_modes = getattr(torch._C, "_len_torch_dispatch_stack", lambda: 0)
_mode = getattr(torch._C, "_get_dispatch_mode", lambda key: None)
_keys = getattr(torch._C, "_TorchDispatchModeKey", None)
_TRACERS = [key for name in ("PROXY", "FAKE") if (key := getattr(_keys, name, None)) is not None]


def traced() -> bool:
    """Whether a compiler, tracer or function transform runs the code: its tensors hold no numbers of the run."""
    return torch.compiler.is_compiling() or transformed()


def transformed() -> bool:
    """The same of code that no compiler runs."""
    return (
        _tracing()
        or _interpreters() is not None
        or (_modes() > 0 and any(_mode(key) is not None for key in _TRACERS))
    )


def captured() -> bool:
    """Whether operations go into a CUDA graph, of which each would be repeated whenever it is replayed."""
    in_use = torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
    return in_use and torch.cuda.is_current_stream_capturing()


class Compilers:
    """Watches for `torch.compile`; `on_use` is called before each call of it."""

    def __init__(self, on_use: Callable[[], None]) -> None:
        self._on_use = on_use
        self._undo = Undo()
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
        self._undo.patch(torch, "compile", self._compile)  # nn.Module.compile calls it

    def detach(self) -> None:
        self.lift()
        self._undo()

    def lift(self) -> None:
        """Let compiled code run again, if no other session needs it uncompiled."""
        _suspending.leave(self)

    def suspend(self) -> None:
        """Run everything uncompiled until `lift`, nothing is recompiled for it."""
        _suspending.join(self)

    def _compile(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def compile(*args: Any, **kwargs: Any) -> Any:
            if self._undo:
                self._used = True
                self._on_use()
            return original(*args, **kwargs)

        return compile


def compiled_modules() -> type[nn.Module] | None:
    """The class of what `torch.compile` makes of a module; None where it has made nothing yet."""
    return getattr(sys.modules.get("torch._dynamo.eval_frame"), "OptimizedModule", None)


def _run_eagerly(undo: Undo) -> None:
    stance = torch.compiler.set_stance("force_eager")
    undo.append(partial(stance.__exit__, None, None, None))  # back to the stance before
    if (frames := sys.modules.get("torch._dynamo.eval_frame")) is not None:
        # its own `__call__` warns of global hooks, and then does the same
        undo.patch(frames.OptimizedModule, "__call__", _plain_call)


_suspending: Shared[Compilers] = Shared(_run_eagerly)


def _plain_call(original: Callable[..., Any]) -> Callable[..., Any]:
    def __call__(module: nn.Module, *args: Any, **kwargs: Any) -> Any:
        return nn.Module.__call__(module, *args, **kwargs)

    return __call__
