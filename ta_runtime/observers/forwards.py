"""Sees every call of every module, on audited steps alone.

By torch's global module hooks, attached for the step and removed after it: a model needs no preparation, may be copied,
pickled and rebuilt at any time, and costs nothing between audits. Numbers are taken in bulk, a part of the forward
pass at a time, so that activations are not kept alive for long.
"""

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook

from ta_runtime.facts import Call, Forward, Value
from ta_runtime.observers.losses import Losses
from ta_runtime.places import here
from ta_runtime.readings import local, measurable
from ta_runtime.tree import tensors

if TYPE_CHECKING:
    from ta_runtime.session import Session
    from ta_runtime.window import Window

MOST_FORWARDS = 8
"""Forward passes of one audited step that are looked into: of more micro-batches, the first."""

_HELD_TENSORS = 256
_HELD_BYTES = 64 << 20

# What outputs exact zeros for a unit that is off. The others of torch-audit's list never do.
RECTIFIERS = (nn.ReLU, nn.ReLU6, nn.Threshold, nn.Hardswish, nn.Hardsigmoid)
SATURATING = (nn.Sigmoid, nn.Tanh)
_EMBEDDINGS = (nn.Embedding, nn.EmbeddingBag)


class Forwards:
    """Watches the forward passes of one window at a time."""

    def __init__(self, session: "Session") -> None:
        self._session = session
        self._undo: list[Callable[[], None]] = []
        self._thread = threading.get_ident()
        self._stack: list[nn.Module] = []
        self._forward: Forward | None = None
        self._muted: nn.Module | None = None
        self._losses: Losses | None = None
        self._seen = 0
        self._held: list[Tensor] = []
        self._held_values: list[Value] = []
        self._held_bytes = 0

    @property
    def attached(self) -> bool:
        return bool(self._undo)

    def attach(self) -> None:
        self._stack.clear()
        self._forward = self._muted = None
        self._seen = 0
        self._thread = threading.get_ident()
        before = self._session.guarded(self._before)
        after = self._session.guarded(self._after)
        losses = Losses(self._session, self._inside)
        self._undo = [
            register_module_forward_pre_hook(before).remove,
            register_module_forward_hook(after, with_kwargs=True, always_call=True).remove,
            losses.detach,
        ]
        losses.attach()

    def detach(self) -> None:
        while self._undo:
            self._undo.pop()()
        self._held.clear()
        self._held_values.clear()
        self._held_bytes = 0
        self._stack.clear()
        self._forward = self._muted = None

    def _inside(self) -> nn.Module | None:
        """The module that is running now."""
        return self._stack[-1] if self._stack else None

    # -- the hooks --------------------------------------------------------------------------------------------

    def _before(self, module: nn.Module, args: tuple[Any, ...]) -> None:
        if self._muted is not None or torch.compiler.is_compiling() or threading.get_ident() != self._thread:
            return
        if not self._stack:
            self._begin(module, args)
            if self._muted is not None:
                return
        self._stack.append(module)
        if isinstance(module, _EMBEDDINGS) and args and isinstance(args[0], Tensor):
            self._measure_ids(module, args[0])

    def _after(self, module: nn.Module, args: tuple[Any, ...], *rest: Any) -> None:
        if torch.compiler.is_compiling() or threading.get_ident() != self._thread:
            return
        if self._muted is not None:
            if self._muted is module:
                self._muted = None
            return
        if module not in self._stack:
            return
        while self._stack.pop() is not module:
            pass
        forward = self._forward
        window = self._session.window
        if forward is None or window.step is None:
            return
        raised = len(rest) == 1  # torch then hands over no keyword arguments
        kwargs, result = ({}, None) if raised else rest
        with torch.no_grad():
            self._record(forward, module, args, kwargs, result)
            if not self._stack:
                self._end(forward, kwargs, result, complete=not raised)

    def _begin(self, module: nn.Module, args: tuple[Any, ...]) -> None:
        """The outermost module of a forward pass is called."""
        session = self._session
        window = session.window
        self._forward = None
        if window.step is None or session.in_backward or not _has_parameters(module):
            self._muted = module  # a recomputation of checkpointed layers, a criterion, a transform
            return
        self._seen += 1
        if self._seen > MOST_FORWARDS:
            self._muted = module
            return
        place = here()
        forward = Forward(
            model=session.model(module, place),
            place=place,
            training=module.training,
            grad_enabled=torch.is_grad_enabled(),
            autocast=_autocast(module),
        )
        window.step.forwards.append(forward)
        if not forward.grad_enabled or session.compiled_away(module):
            self._muted = module
            return
        self._forward = forward
        with torch.no_grad():
            self._measure_inputs(forward, tensors(args))

    def _end(self, forward: Forward, kwargs: dict[str, Any], result: Any, *, complete: bool) -> None:
        forward.complete = complete
        self._measure_inputs(forward, tensors(kwargs))
        forward.outputs = [Value.of(name, tensor) for name, tensor in tensors(result)]
        self._flush()
        self._forward = None

    # -- calls ------------------------------------------------------------------------------------------------

    def _record(
        self, forward: Forward, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any
    ) -> None:
        inputs = [Value.of("", value) for value in (*args, *kwargs.values()) if isinstance(value, Tensor)]
        call = Call(module, self._session.names, forward.model.module, module.training, inputs)
        forward.calls.append(call)
        outputs = result if isinstance(result, (tuple, list)) else (result,)
        leaf = not module._modules
        for output in outputs:
            if not isinstance(output, Tensor):
                continue
            value = Value.of("", output)
            call.outputs.append(value)
            if leaf:
                output = local(output)
                if measurable(output):
                    self._hold(output, value)
                    if isinstance(module, RECTIFIERS):
                        self.measure_units(output, call)
                    elif isinstance(module, SATURATING):
                        self._measure_saturation(module, output, call)

    def _hold(self, output: Tensor, value: Value) -> None:
        self._held.append(output)
        self._held_values.append(value)
        self._held_bytes += output.nbytes
        if len(self._held) >= _HELD_TENSORS or self._held_bytes >= _HELD_BYTES:
            self._flush()

    def _flush(self) -> None:
        held, values = self._held, self._held_values
        self._held, self._held_values, self._held_bytes = [], [], 0

        def deliver(norms: list[float]) -> None:
            for value, norm in zip(values, norms, strict=True):
                value.norm = norm

        self._session.window.readings.norms(held, deliver)

    def measure_units(self, output: Tensor, call: Call) -> None:
        """The share of units that are zero for every row."""
        if output.dim() < 2:
            return
        unit = 1 if output.dim() >= 4 else output.dim() - 1
        rows = [dimension for dimension in range(output.dim()) if dimension != unit]
        units = output.shape[unit]
        call.units = units
        call.rows = output.numel() // units

        def deliver(alive: list[float]) -> None:
            call.dead = 1 - alive[0] / units

        self._session.window.readings.scalars([torch.count_nonzero(output.amax(rows))], deliver)

    def _measure_saturation(self, module: nn.Module, output: Tensor, call: Call) -> None:
        centred = output.abs() if isinstance(module, nn.Tanh) else (output - 0.5).abs().mul_(2)
        count = output.numel()

        def deliver(values: list[float]) -> None:
            call.saturated = values[0] / count

        limit = 0.99 if isinstance(module, nn.Tanh) else 0.98
        self._session.window.readings.scalars([torch.count_nonzero(centred > limit)], deliver)

    # -- inputs -----------------------------------------------------------------------------------------------

    def _measure_inputs(self, forward: Forward, found: Any) -> None:
        for name, tensor in found:
            value = Value.of(name, tensor)
            forward.inputs.append(value)
            measure_value(self._session.window, value, tensor, moments=True)

    def _measure_ids(self, module: nn.Module, ids: Tensor) -> None:
        """Before the call: an id out of range raises, or breaks the device."""
        forward = self._forward
        if forward is None or ids.numel() == 0 or ids.is_meta:
            return
        value = Value.of("ids", ids)
        call = Call(module, self._session.names, forward.model.module, module.training, [value])
        self._ids(call)
        with torch.no_grad():
            measure_value(self._session.window, value, ids, moments=False)

    def _ids(self, call: Call) -> None:
        assert self._forward is not None
        self._forward.lookups.append(call)


def measure_value(window: "Window", value: Value, tensor: Tensor, *, moments: bool) -> None:
    """Range, and with `moments` mean and standard deviation, of a tensor of real numbers."""
    tensor = local(tensor)
    real = tensor.is_floating_point() or tensor.dtype in (torch.int64, torch.int32, torch.int16, torch.uint8)
    if not real or tensor.numel() == 0 or tensor.is_meta or tensor.layout is not torch.strided:
        return
    if tensor.is_floating_point() and not measurable(tensor):
        return
    lowest, highest = torch.aminmax(tensor)

    def deliver_range(values: list[float]) -> None:
        value.minimum, value.maximum = values

    window.readings.scalars([lowest, highest], deliver_range)
    if moments and tensor.is_floating_point() and tensor.numel() > 1:
        deviation, mean = torch.std_mean(tensor)

        def deliver_moments(values: list[float]) -> None:
            value.std, value.mean = values

        window.readings.scalars([deviation, mean], deliver_moments)


def _has_parameters(module: nn.Module) -> bool:
    return next(module.parameters(), None) is not None


def _autocast(module: nn.Module) -> torch.dtype | None:
    parameter = next(module.parameters())
    kind = parameter.device.type
    if kind == "meta" or not torch.is_autocast_enabled(kind):
        return None
    return torch.get_autocast_dtype(kind)
