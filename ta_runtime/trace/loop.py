"""Records the calls of a training loop: backward passes, clearing, clipping, scalers, schedulers, modes and steps."""

import inspect
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import nn
from torch.nn.utils import clip_grad
from torch.optim import lr_scheduler

from ta_lint.core.protocol import Action
from ta_runtime.observers import construction
from ta_runtime.observers.patching import Undo
from ta_runtime.trace import titles
from ta_runtime.trace.course import LAYERS_QUIET, LOUD, Open
from ta_runtime.trace.event import KIND_OF
from ta_runtime.trace.layers import LayerNames
from ta_runtime.trace.states import States
from ta_runtime.trace.wrapping import Args, Kwargs, Said, Wrapping

Optimizer = torch.optim.Optimizer

_BACKWARD = "torch.Tensor.backward"
_STEP = KIND_OF[Action.STEP]
_OF_SCALER = {
    "scale": Action.SCALE,
    "unscale_": Action.UNSCALE,
    "step": Action.STEP,
    "update": Action.UPDATE,
}


class Loop:
    """Watches a training loop between `attach` and `detach`; `steps.Steps` calls it at the steps of optimizers."""

    def __init__(self, wrapping: Wrapping, layers: LayerNames, states: States) -> None:
        self._wrapping, self._layers, self._states = wrapping, layers, states
        self._course = wrapping.course
        self._undo = Undo()

    def attach(self) -> None:
        telling, named = self._wrapping.telling, self._wrapping.named
        scaler = torch.amp.GradScaler
        schedulers = [
            kind for kind in vars(lr_scheduler).values() if isinstance(kind, type) and "step" in vars(kind)
        ]
        clips = [inspect.unwrap(clip_grad.clip_grad_norm_), inspect.unwrap(clip_grad.clip_grad_value_)]
        patch, recode = self._undo.patch, self._undo.recode
        backward = telling(self._backward, quiet=LAYERS_QUIET, given=named(torch.autograd.backward))
        patch(torch.autograd, "backward", backward)
        clears = telling(self._clear, given=named(Optimizer.zero_grad), after=self._cleared)
        patch(Optimizer, "zero_grad", clears)
        given = named(nn.Module.zero_grad)
        patch(nn.Module, "zero_grad", telling(self._clear_module, given=given, after=self._cleared_module))
        patch(nn.Module, "train", telling(self._mode("train"), given=named(nn.Module.train)))
        patch(nn.Module, "eval", telling(self._mode("eval")))
        for kind in schedulers:
            patch(kind, "step", telling(self._scheduler, given=named(kind.step)))  # type: ignore[attr-defined]
        for name in _OF_SCALER:
            patch(scaler, name, telling(self._scaler(name), quiet=LAYERS_QUIET))
        for clip in clips:
            recode(clip, telling(_clip(clip.__name__), given=named(clip)))

    def detach(self) -> None:
        self._undo()

    # -- steps ------------------------------------------------------------------------------------------------

    def before_step(self, optimizer: Optimizer, has_closure: bool) -> Callable[[], None] | None:
        """Begin the event of a step.

        If a closure computes the gradients, the caller must call what is returned after the closure.
        """
        course = self._course
        course.abandon(optimizer)
        name = f"{titles.of_class(type(optimizer))}.step"
        event = course.begin(
            _STEP,
            name,
            self._layers.of_optimizer(optimizer),
            LOUD if has_closure else LAYERS_QUIET,
            sys._getframe(1),
            told=self._wrapping.wanted(_STEP, name),
            of=optimizer,
        )
        look = partial(self._states.before_step, event, optimizer)
        if has_closure:
            return look
        look()
        return None

    def after_step(self, optimizer: Optimizer, has_closure: bool) -> None:
        event = next((each for each in reversed(self._course.open) if each.of is optimizer), None)
        if event is not None:
            self._states.after_step(event, optimizer)
            self._course.end(event, value=_rate(optimizer))

    # -- what is wrapped --------------------------------------------------------------------------------------

    def _backward(self, args: Args, kwargs: Kwargs) -> Said | None:
        if any(event.kind == KIND_OF[Action.BACKWARD] for event in self._course.open):
            return None
        return Action.BACKWARD, _BACKWARD, ""

    def _clear(self, args: Args, kwargs: Kwargs) -> Said:
        optimizer = args[0]
        name = f"{titles.of_class(type(optimizer))}.zero_grad"
        return Action.CLEAR, name, self._layers.of_optimizer(optimizer)

    def _clear_module(self, args: Args, kwargs: Kwargs) -> Said:
        return Action.CLEAR, "torch.nn.Module.zero_grad", self._layers.of(args[0]).subject

    def _mode(self, method: str) -> Callable[[Args, Kwargs], Said]:
        def begin(args: Args, kwargs: Kwargs) -> Said:
            module = args[0]
            mode = method == "train" and (args[1] if len(args) > 1 else kwargs.get("mode", True))
            if self._course.state != "setup" and self._layers.is_model(module):
                self._course.state = "train" if mode else "eval"
            action = Action.TRAIN if mode else Action.EVAL
            return action, f"torch.nn.Module.{method}", self._layers.of(module).subject

        return begin

    def _scheduler(self, args: Args, kwargs: Kwargs) -> Said | None:
        if getattr(args[0], "_is_initial", False):  # the constructor calls it
            return None
        name = f"{titles.of_class(type(args[0]))}.step"
        return Action.SCHEDULE, name, self._layers.of_optimizer(_steered(args[0]))

    def _scaler(self, method: str) -> Callable[[Args, Kwargs], Said | None]:
        def begin(args: Args, kwargs: Kwargs) -> Said | None:
            if not args[0].is_enabled():
                return None
            optimizer = args[1] if method in ("step", "unscale_") and len(args) > 1 else None
            subject = self._layers.of_optimizer(optimizer) if optimizer is not None else ""
            return _OF_SCALER[method], f"torch.amp.GradScaler.{method}", subject

        return begin

    def _cleared(self, event: Open, args: Args) -> None:
        self._states.cleared(event, construction.held(args[0]).values())

    def _cleared_module(self, event: Open, args: Args) -> None:
        self._states.cleared(event, args[0].parameters())


def _clip(name: str) -> Callable[[Args, Kwargs], Said]:
    said = (Action.CLIP, f"torch.nn.utils.{name}", "")
    return lambda args, kwargs: said


def _rate(optimizer: Optimizer) -> float | None:
    """The largest learning rate of its groups, where they are plain numbers."""
    largest = None
    for group in optimizer.param_groups:
        rate = group.get("lr")
        if type(rate) not in (int, float):
            return None
        largest = rate if largest is None or rate > largest else largest
    return largest


def _steered(scheduler: Any) -> Optimizer | None:
    optimizer = getattr(scheduler, "optimizer", None)
    return optimizer if isinstance(optimizer, Optimizer) else None
