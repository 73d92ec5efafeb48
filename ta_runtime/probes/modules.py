"""Calls of modules, by torch's global hooks: a model needs no preparation, and nothing of ours is in it."""

import sys
from collections.abc import Callable
from functools import partial
from types import FrameType, TracebackType
from typing import Any

import torch
from torch import nn
from torch.nn.modules import module as hooks
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from torch.utils.hooks import RemovableHandle

from ta_runtime.probes.compile import compiled_modules
from ta_runtime.probes.patching import Watch, attribute, watching
from ta_runtime.probes.threads import is_watched
from ta_runtime.probes.undo import Undo, nothing

Enter = Callable[[nn.Module, tuple[Any, ...]], object]
Leave = Callable[..., object]
"""Called with the module, its arguments, and those by keyword unless it raised (torch 2.13), and its result, None if it did."""

_listening: tuple[tuple[Enter, Leave], ...] = ()
_hooks = Undo()


def follow(enter: Enter, leave: Leave) -> Callable[[], None]:
    """Call these around each call of each module, until what is returned is called: these hooks are told no `Call`."""
    global _listening
    both = (enter, leave)
    if not _listening:
        _hooks.append(register_module_forward_pre_hook(_enter).remove)
        _hooks.append(_removal(register_module_forward_hook(_leave, with_kwargs=True, always_call=True)))
    _listening = (*_listening, both)
    return partial(_forget, both)


def _forget(both: tuple[Enter, Leave]) -> None:
    global _listening
    _listening = tuple(each for each in _listening if each is not both)
    if not _listening:
        _hooks()


def _is_frozen(module: nn.Module) -> bool:
    """Whether TorchScript has frozen it: then it has no mode and no parameters any more."""
    return isinstance(module, torch.jit.ScriptModule) and not hasattr(module, "training")


def _enter(module: nn.Module, args: tuple[Any, ...]) -> None:
    if _is_frozen(module) or not (torch.compiler.is_compiling() or is_watched()):
        return
    for enter, _ in _listening:
        enter(module, args)


def _leave(module: nn.Module, args: tuple[Any, ...], *rest: Any) -> None:
    if _is_frozen(module) or not (torch.compiler.is_compiling() or is_watched()):
        return
    for _, leave in _listening:
        leave(module, args, *rest)
    if not torch.compiler.is_compiling() and (error := sys.exception()) is not None:
        _leave_out_inner(module, sys._getframe(1), error.__traceback__)


def _leave_out_inner(module: nn.Module, frame: FrameType, trace: TracebackType | None) -> None:
    """Take out of a traceback the frame of torch in which a call runs that has hooks, if it has none but ours."""
    if trace is None or trace.tb_frame is not frame or trace.tb_next is None:  # an error from before the call
        return
    own = vars(module)
    has_hooks = (
        own["_forward_hooks"]
        or own["_forward_pre_hooks"]
        or own["_backward_hooks"]
        or own["_backward_pre_hooks"]
    )
    of_all = len(hooks._global_forward_hooks) + len(hooks._global_forward_pre_hooks) > len(_hooks)
    of_all = of_all or bool(hooks._global_backward_hooks or hooks._global_backward_pre_hooks)
    if not (has_hooks or of_all) and trace.tb_next.tb_frame.f_back is frame:
        trace.tb_next = trace.tb_next.tb_next


def _removal(hook: RemovableHandle) -> Callable[[], None]:
    """Takes a hook off that gets keyword arguments: torch 2.13 leaves a part of it behind, by which compiled models warn."""

    def remove() -> None:
        hook.remove()
        getattr(hooks, "_global_forward_hooks_with_kwargs", {}).pop(hook.id, None)

    return remove


def _compiled(watch: Watch) -> Callable[[], None]:
    """Hooks further inside would be compiled into the model."""
    kind = compiled_modules()
    return nothing if kind is None else watching(kind, "__call__", watch).undo


def around(
    module: nn.Module, enter: Callable[..., object], leave: Callable[..., object], *, always: bool = False
) -> Undo:
    """Call these before and after each call of one module, until what is returned is called; `always`, also if it raised.

    `enter` is given the module, its arguments and those by keyword; `leave`, the module, its arguments and its result.
    """
    return Undo(
        (
            module.register_forward_pre_hook(enter, with_kwargs=True).remove,
            module.register_forward_hook(leave, always_call=always).remove,
        )
    )


PLACES = {
    "call_module": (attribute(nn.Module, "__call__"),),
    "call_compiled": (_compiled,),
    "named_parameters": (attribute(nn.Module, "named_parameters"),),
    "register_parameter": (attribute(nn.Module, "register_parameter"),),
}
