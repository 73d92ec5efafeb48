"""Records the calls of a training loop: backward passes, clearing, clipping, scalers, schedulers, modes and steps."""

import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import nn

from ta_lint.core.protocol import Action
from ta_runtime.probes import construction
from ta_runtime.probes.listener import Listener
from ta_runtime.probes.patching import Call, End
from ta_runtime.trace import titles
from ta_runtime.trace.call_recorder import CallRecorder, Said
from ta_runtime.trace.course import LAYERS_QUIET, LOUD, Open
from ta_runtime.trace.event import KIND_OF
from ta_runtime.trace.layers import LayerNames
from ta_runtime.trace.states import States

Optimizer = torch.optim.Optimizer

_BACKWARD = "torch.Tensor.backward"
_STEP = KIND_OF[Action.STEP]


class LoopRecorder(Listener):
    """Records a training loop; `probes.counter.StepCounter` calls it at the steps of optimizers."""

    def __init__(self, recorder: CallRecorder, layers: LayerNames, states: States) -> None:
        self._recorder, self._layers, self._states = recorder, layers, states
        self._course, self._record, self._named = recorder.course, recorder.record, recorder.named

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
            told=self._recorder.wanted(_STEP, name),
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

    # -- calls ------------------------------------------------------------------------------------------------

    def backward(self, call: Call) -> End | None:
        return self._record(call, self._begin_backward, quiet=LAYERS_QUIET, given=self._named)

    def _begin_backward(self, call: Call) -> Said | None:
        if any(event.kind == KIND_OF[Action.BACKWARD] for event in self._course.open):
            return None
        return Action.BACKWARD, _BACKWARD, ""

    def clear(self, call: Call) -> End | None:
        return self._record(call, self._begin_clear, given=self._named, after=self._cleared)

    def _begin_clear(self, call: Call) -> Said:
        optimizer = call.args[0]
        name = f"{titles.of_class(type(optimizer))}.zero_grad"
        return Action.CLEAR, name, self._layers.of_optimizer(optimizer)

    def _cleared(self, event: Open, call: Call) -> None:
        self._states.cleared(event, construction.held(call.args[0]).values())

    def clear_module(self, call: Call) -> End | None:
        return self._record(call, self._begin_clear_module, given=self._named, after=self._cleared_module)

    def _begin_clear_module(self, call: Call) -> Said:
        return Action.CLEAR, "torch.nn.Module.zero_grad", self._layers.subject(call.args[0])

    def _cleared_module(self, event: Open, call: Call) -> None:
        self._states.cleared(event, call.args[0].parameters())

    def train(self, call: Call) -> End | None:
        return self._record(call, self._begin_train, given=self._named)

    def _begin_train(self, call: Call) -> Said:
        return self._mode("train", call.args[0], bool(call.given(1, "mode", True)))

    def eval(self, call: Call) -> End | None:
        return self._record(call, self._begin_eval)

    def _begin_eval(self, call: Call) -> Said:
        return self._mode("eval", call.args[0], False)

    def _mode(self, method: str, module: nn.Module, trains: bool) -> Said:
        if self._course.state != "setup" and self._layers.is_model(module):
            self._course.state = "train" if trains else "eval"
        action = Action.TRAIN if trains else Action.EVAL
        return action, f"torch.nn.Module.{method}", self._layers.subject(module)

    def schedule(self, call: Call) -> End | None:
        return self._record(call, self._begin_schedule, given=self._named)

    def _begin_schedule(self, call: Call) -> Said | None:
        scheduler = call.args[0]
        if getattr(scheduler, "_is_initial", False):  # the constructor calls it
            return None
        name = f"{titles.of_class(type(scheduler))}.step"
        return Action.SCHEDULE, name, self._layers.of_optimizer(_steered(scheduler))

    def scale(self, call: Call) -> End | None:
        return self._record(call, partial(self._scaler, Action.SCALE, "scale"), quiet=LAYERS_QUIET)

    def unscale(self, call: Call) -> End | None:
        return self._record(call, partial(self._scaler, Action.UNSCALE, "unscale_"), quiet=LAYERS_QUIET)

    def scaler_step(self, call: Call) -> End | None:
        return self._record(call, partial(self._scaler, Action.STEP, "step"), quiet=LAYERS_QUIET)

    def update(self, call: Call) -> End | None:
        return self._record(call, partial(self._scaler, Action.UPDATE, "update"), quiet=LAYERS_QUIET)

    def _scaler(self, action: Action, method: str, call: Call) -> Said | None:
        if not call.args[0].is_enabled():
            return None
        optimizer = call.args[1] if action in (Action.STEP, Action.UNSCALE) and len(call.args) > 1 else None
        subject = self._layers.of_optimizer(optimizer) if optimizer is not None else ""
        return action, f"torch.amp.GradScaler.{method}", subject

    def clip(self, call: Call) -> End | None:
        return self._record(call, _begin_clip, given=self._named)


def _begin_clip(call: Call) -> Said:
    return Action.CLIP, f"torch.nn.utils.{call.function.__name__}", ""


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
