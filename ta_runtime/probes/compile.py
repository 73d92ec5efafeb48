"""Knows whether this process compiles its models, and whether code runs now or is only traced.

Hooks and replaced functions that are there when a model is compiled end up in its code, and it is compiled once more
when they go. So forward passes are not observed where `torch.compile` is in use, unless audited steps run without it.
"""

import sys
from collections.abc import Callable, Collection
from functools import partial

import torch
from torch import nn
from torch.autograd import forward_ad

from ta_runtime.probes.listener import Listener
from ta_runtime.probes.patching import Call, attribute
from ta_runtime.probes.undo import Undo, WhileNeeded

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
        or getattr(forward_ad, "_current_level", -1) >= 0
        or _interpreters() is not None
        or (_modes() > 0 and any(_mode(key) is not None for key in _TRACERS))
    )


def captured() -> bool:
    """Whether operations go into a CUDA graph, of which each would be repeated whenever it is replayed."""
    in_use = torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
    return in_use and torch.cuda.is_current_stream_capturing()


PLACES = {"compile": (attribute(torch, "compile"),)}


def compiled_modules() -> type[nn.Module] | None:
    """The class of what `torch.compile` makes of a module; None where it has made nothing yet."""
    return getattr(sys.modules.get("torch._dynamo.eval_frame"), "OptimizedModule", None)


def uncompiled(module: nn.Module) -> nn.Module:
    """What `torch.compile` has made this of; any other module as it is. It runs no code of the module."""
    kind = compiled_modules()
    if kind is None or not issubclass(type(module), kind):
        return module
    inner: nn.Module = vars(module)["_modules"]["_orig_mod"]
    return inner


def any_compiled(modules: Collection[nn.Module]) -> bool:
    """Whether one of them runs as compiled code, in which a hook that comes later is not heard."""
    optimized = compiled_modules() or ()
    if any(issubclass(kind, optimized) for kind in set(map(type, modules))):
        return True
    return any(module._compiled_call_impl is not None for module in modules)


class Compilers(Listener):
    """Whether the process compiles its models; `on_use` is called before each call of `torch.compile`."""

    def __init__(self, on_use: Callable[[], object]) -> None:
        self._on_use = on_use
        self._used = self._suspends = False

    def compile(self, call: Call) -> None:
        self._used = True
        self._on_use()

    @property
    def used(self) -> bool:
        """Whether anything was ever handed to `torch.compile`, also before anyone watched."""
        if not self._used:
            frames = sys.modules.get("torch._dynamo.eval_frame")
            # not public; None stands for what is to run uncompiled
            backends = getattr(frames, "cached_backends", {})
            self._used = any(backend is not None for backend in backends.values())
        return self._used

    def suspend(self) -> None:
        """Run everything uncompiled until `lift`; nothing is recompiled for it."""
        if not self._suspends:
            self._suspends = True
            _uncompiled.begin()

    def lift(self) -> None:
        """Let compiled code run again, if nobody else needs it uncompiled."""
        if self._suspends:
            self._suspends = False
            _uncompiled.end()


def _run_uncompiled(undo: Undo) -> None:
    stance = torch.compiler.set_stance("force_eager")
    undo.append(partial(stance.__exit__, None, None, None))  # back to the stance before
    if (frames := sys.modules.get("torch._dynamo.eval_frame")) is not None:
        undo.patch(frames.OptimizedModule, "__call__", _plainly)


def _plainly(call: Call) -> None:
    """Its own `__call__` warns of global hooks, and then does the same."""
    call.function = nn.Module.__call__


_uncompiled = WhileNeeded(_run_uncompiled)
