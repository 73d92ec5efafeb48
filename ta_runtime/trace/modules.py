"""Records the calls of modules by torch's global hooks, so that a model needs no preparation and holds nothing of ours."""

import sys
from collections.abc import Callable, Collection
from functools import partial
from sys import _getframe
from typing import Any

import torch
from torch import nn

from ta_lint.core.protocol import Action
from ta_runtime.faults import keep
from ta_runtime.probes import hub
from ta_runtime.probes.compile import traced, uncompiled
from ta_runtime.probes.modules import follow
from ta_runtime.probes.patching import Call, End
from ta_runtime.probes.undo import Undo
from ta_runtime.probes.work import OWN_WORK
from ta_runtime.trace.course import COMPILED, LOUD, RAISED, REQUIRES_GRAD, TRAINING, Course, Open, records
from ta_runtime.trace.event import KIND_OF
from ta_runtime.trace.layers import LayerNames
from ta_runtime.trace.numbers import combined, numbers
from ta_runtime.trace.signatures import parts

_FORWARD = KIND_OF[Action.FORWARD]

Failed = Callable[[str, Exception], None]


class Modules:
    """Watches forward passes between `attach` and `detach`; `names` are the classes to record, None for all."""

    def __init__(
        self,
        course: Course,
        layers: LayerNames,
        failed: Failed,
        *,
        names: Collection[str] | None,
        digests: bool,
    ) -> None:
        self._course, self._layers, self._failed = course, layers, failed
        self._names, self._digests = names, digests
        self._known = layers.known
        self._flags = 0
        self._undo = Undo()

    def attach(self) -> None:
        if not self._undo:
            self._flags = 0
            self._undo.append(follow(self._enter, self._leave))

    def attach_compiled(self) -> None:
        """Watch only the calls of compiled models: hooks further inside would be compiled into them."""
        if not self._undo:
            self._flags = COMPILED
            # not as our own work, of which nothing is told; what may fail inside is guarded there
            self._undo.append(hub.watch("call_compiled", self._calling, hub.directly))

    def detach(self) -> None:
        self._undo()

    def _enter(self, module: nn.Module, args: tuple[Any, ...]) -> None:
        course = self._course
        if course.quiet or OWN_WORK.depth or not course.is_on:
            return
        try:
            layer = self._known.get(id(module))
            if layer is None or layer[0]() is not module:
                layer = self._layers.of(module)
            _, name, subject = layer
            told = self._names is None or name in self._names
            training = TRAINING if module.training else 0
            phase = ""
            stack = course.open
            if not stack or stack[-1].kind != _FORWARD:  # the outermost
                if traced():
                    return
                phase = self._phase(module)
            elif not told:
                return
            course.begin(
                _FORWARD,
                name,
                subject,
                LOUD,
                _getframe(1),
                told=told,
                of=module,
                error=sys.exception(),
                training=training,
                phase=phase,
            )
        except Exception as error:  # noqa: BLE001 - the run goes on
            keep(error)
            self._failed("a call of a module", error)

    def _calling(self, call: Call) -> End | None:
        module = uncompiled(call.args[0])
        self._enter(module, call.args[1:])
        return partial(self._called, module)

    def _called(self, module: nn.Module, call: Call) -> None:
        if call.raised:
            self._leave(module, call.args[1:], None)
        else:
            self._leave(module, call.args[1:], call.kwargs, call.result)

    def _phase(self, module: nn.Module) -> str:
        """The phase of an outermost module's call. If the module learns, its mode sets the phase of what follows too."""
        course, grows = self._course, records()
        mode = "train" if module.training else "eval"
        if course.state == "setup":
            course.state = mode
        elif course.state != mode and grows:
            with torch._C.DisableTorchFunction():
                if any(parameter.requires_grad for parameter in module.parameters()):
                    course.state = mode
        return mode if grows else "eval"

    def _leave(self, module: nn.Module, args: tuple[Any, ...], *rest: Any) -> None:
        course = self._course
        stack = course.open
        if not stack or not course.is_on:
            return
        try:
            event = stack[-1] if stack[-1].of is module else _of(stack, module)
            if event is None:
                return
            if not event.told:
                course.end(event)
                return
            kwargs, result = rest if len(rest) == 2 else (None, None)  # torch 2.13 gives none if it raised
            flags = self._flags
            if result is None and sys.exception() is not event.error:
                flags |= RAISED
            with torch._C.DisableTorchFunction():
                signatures = course.signatures
                names = signatures.names(type(module).forward, method=True)
                inputs, arguments = signatures.given(names, args, kwargs)
                found = parts(result)
                digest = None
                if found:
                    if found[0].requires_grad:
                        flags |= REQUIRES_GRAD
                    if self._digests:
                        digest = combined(numbers(found, wait=False))
                course.end(event, inputs, arguments, signatures.results(found), digest, None, flags)
        except Exception as error:  # noqa: BLE001 - the run goes on
            keep(error)
            self._failed("a call of a module", error)


def _of(stack: list[Open], module: nn.Module) -> Open | None:
    """The innermost open call of a module."""
    return next((event for event in reversed(stack) if event.of is module), None)
