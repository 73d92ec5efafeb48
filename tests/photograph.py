"""A photograph of a process: what stands in every place of torch and its frameworks, and of Python itself, that code can write to.

Two of them differ where something was put on and not taken off. What a training changes by itself is told by two
photographs around one that nobody watches.
"""

import gc
import logging
import os
import random
import re
import signal
import sys
import threading
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import numpy as np
import torch

from ta_runtime.probes import patching

Photograph = dict[str, "_Seen"]

_MODULES = re.compile(
    r"torch(\._C|\._tensor|\._dynamo(\.eval_frame)?|\.amp(\..*)?|\.autograd(\..*)?|\.compiler|\.cuda(\..*)?|\.distributed"
    r"(\.distributed_c10d|\.tensor(\..*)?)?|\.functional|\.jit(\..*)?|\.nn(\..*)?|\.optim(\..*)?|\.overrides|\.random|"
    r"\.serialization|\.utils(\.data(\..*)?|\.hooks)?)?|numpy\.random|random|warnings|subprocess|multiprocessing\.process|accelerate(\.accelerator|\.optimizer)?|"
    r"lightning\.pytorch(\.(callbacks|core|trainer)(\..*)?)?|transformers\.trainer(_callback)?"
)
"""What is hooked or wrapped, and what may remember that: the rest of torch would take seconds."""
_PLAIN = (bool, int, float, str, bytes, type(None), tuple, frozenset, torch.dtype, torch.device)
_MOST = 64
"""Of a larger dictionary or list the length alone is compared: it is a cache or a table of names."""


class _Seen:
    """A value and what can be changed of it in its place. It is held, or another could come to have its identity."""

    def __init__(self, value: object) -> None:
        self.value = value
        self.inside: tuple[object, ...] = ()
        if type(value) is FunctionType:
            own = vars(value)
            self.inside = (value.__code__, value.__defaults__, value.__kwdefaults__, *own, *own.values())
        elif issubclass(type(value), dict):
            self.inside = (*value, *value.values()) if len(value) <= _MOST else (len(value),)
        elif issubclass(type(value), (list, set)):
            self.inside = tuple(value) if len(value) <= _MOST else (len(value),)

    def same(self, other: "_Seen") -> bool:
        return _same(self.value, other.value) and (
            len(self.inside) == len(other.inside) and all(map(_same, self.inside, other.inside))
        )


def _same(one: object, other: object) -> bool:
    return one is other or (type(one) is type(other) and isinstance(one, _PLAIN) and _equal(one, other))


def _equal(one: Any, other: Any) -> bool:
    try:
        return bool(one == other)
    except Exception:  # noqa: BLE001 - a tuple of tensors
        return False


def watched(function: Any) -> int:
    """How many layers of ours are around a function: it runs other code now, or something stands in for it."""
    depth = 0
    while (before := patching.original(function)) is not function:
        function, depth = before, depth + 1
    code = getattr(function, "__code__", None)
    while (layer := patching._by_stub.get(id(code))) is not None:
        code, depth = layer.before, depth + 1
    return depth


def taken(**objects: object) -> Photograph:
    """Of the process, and of these objects, such as a model."""
    gc.collect()
    seen: Photograph = {}
    for name, module in sorted(sys.modules.items()):
        if isinstance(module, ModuleType) and _MODULES.fullmatch(name):
            _add(seen, name, vars(module))
    for path, value in _of_python():
        seen[path] = _Seen(value)
    for name, value in objects.items():
        parts = value.named_modules() if isinstance(value, torch.nn.Module) else [("", value)]
        for part, holder in parts:
            for attribute, inner in vars(holder).items():
                if not isinstance(inner, (torch.Tensor, int, float)):
                    seen[f"{name}.{part}.{attribute}"] = _Seen(inner)
    return seen


def _add(seen: Photograph, path: str, members: Mapping[str, object]) -> None:
    for name, value in list(members.items()):
        if name == "__builtins__" or type(value) is ModuleType:
            continue
        seen[f"{path}.{name}"] = _Seen(value)
        if issubclass(type(value), type) and value.__module__ == path:
            for attribute, inner in list(vars(value).items()):
                seen[f"{path}.{name}.{attribute}"] = _Seen(inner)


def _of_python() -> Iterator[tuple[str, object]]:
    yield "modes of functions", torch._C._len_torch_function_stack()
    yield "modes of dispatch", torch._C._len_torch_dispatch_stack()
    yield "gradients", torch.is_grad_enabled()
    yield "default dtype", torch.get_default_dtype()
    yield "deterministic algorithms", torch.are_deterministic_algorithms_enabled()
    yield "anomaly mode", torch.is_anomaly_enabled()
    yield "autocast", (torch.is_autocast_enabled("cpu"), torch.is_autocast_cache_enabled())
    yield "threads of torch", torch.get_num_threads()
    yield "random numbers of torch", torch.get_rng_state().numpy().tobytes()
    yield "random numbers of Python", random.getstate()
    kind, keys, *rest = np.random.get_state()
    yield "random numbers of numpy", (kind, keys.tobytes(), *rest)
    for name in ("meta_path", "path_hooks", "path"):
        yield f"sys.{name}", tuple(getattr(sys, name))
    for name in ("excepthook", "displayhook", "unraisablehook", "breakpointhook"):
        yield f"sys.{name}", getattr(sys, name)
    yield "sys.settrace", sys.gettrace()
    yield "sys.setprofile", sys.getprofile()
    yield "recursion limit", sys.getrecursionlimit()
    yield "threading.excepthook", threading.excepthook
    yield "threads", frozenset(thread.name for thread in threading.enumerate())
    yield "signals", tuple(signal.getsignal(number) for number in sorted(signal.valid_signals()))
    yield "garbage collection", (gc.isenabled(), *gc.get_threshold())
    yield "callbacks of garbage collection", tuple(gc.callbacks)
    environment = {name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"}
    yield "environment", tuple(sorted(environment.items()))
    yield "folder", str(Path.cwd())
    yield "filters of warnings", tuple(warnings.filters)
    for logger in map(logging.getLogger, ["", "ta_runtime", "torch", "py.warnings"]):
        said = (
            logger.level,
            logger.disabled,
            logger.propagate,
            tuple(logger.handlers),
            tuple(logger.filters),
        )
        yield f"logger {logger.name}", said
    if (descriptors := Path("/proc/self/fd")).is_dir():
        yield "open files", len(list(descriptors.iterdir()))


_STAYS = {"torch.utils.hooks.RemovableHandle.next_id", "torch.jit._builtins._builtin_table"}
"""What counts for ever; and what TorchScript knows of wrappers, which a module that was imported meanwhile may have."""


def differences(before: Photograph, after: Photograph) -> set[str]:
    """The places in which something else stands; a module that was imported in the meantime is no difference."""
    both = before.keys() & after.keys()
    changed = {path for path in both if not before[path].same(after[path])}
    holders = {path.rpartition(".")[0] for path in before}
    came_or_went = {path for path in before.keys() ^ after.keys() if path.rpartition(".")[0] in holders}
    return (changed | came_or_went) - _STAYS
