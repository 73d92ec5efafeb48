"""Sees every call of every module, on audited steps alone.

By torch's global module hooks, attached for the step and removed after it: a model needs no preparation, may be copied,
pickled and rebuilt at any time, and costs nothing between audits. Numbers are taken in bulk, a part of the forward
pass at a time, so that activations are not kept alive for long.
"""

import weakref
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from ta_runtime.facts import Forward, LayerCall, Value
from ta_runtime.measure.kinds import SMALL, alike, local, measurable
from ta_runtime.measure.norms import row_norms
from ta_runtime.measure.tree import tensors
from ta_runtime.observers.losses import Losses
from ta_runtime.observers.values import measure_value
from ta_runtime.probes.backward import in_backward
from ta_runtime.probes.modules import follow
from ta_runtime.probes.places import here
from ta_runtime.probes.undo import Undo

if TYPE_CHECKING:
    from ta_runtime.observers.context import Context

MOST_FORWARDS = 8
"""Forward passes of one audited step that are looked into: of more micro-batches, the first."""

MOST_PASSES = 1024
"""Forward passes of a program without an optimizer after which nothing of it is followed any more."""

_OUTPUTS = 8  # of one pass, of a program without an optimizer
_HELD_TENSORS = 256
_HELD_BYTES = 64 << 20

# What outputs exact zeros for a unit that is off. The others of torch-audit's list never do.
RECTIFIERS = (nn.ReLU, nn.ReLU6, nn.Threshold, nn.Hardswish, nn.Hardsigmoid)
SATURATING = (nn.Sigmoid, nn.Tanh)
_EMBEDDINGS = (nn.Embedding, nn.EmbeddingBag)


class Forwards:
    """Watches the forward passes of one window at a time."""

    def __init__(self, session: "Context") -> None:
        self._session = session
        self._losses = Losses(session)
        self._undo = Undo()
        self._following: Callable[[], None] | None = None
        self._root: nn.Module | None = None
        self._depth = 0  # of calls of the root inside itself
        self._forward: Forward | None = None  # None while what runs is not looked into
        self._thorough = True
        self._seen = 0
        self.passes = self.looked_at = 0
        """Forward passes of a program without an optimizer, and how many of them were looked into."""
        self._held: list[tuple[Tensor, int, Value]] = []  # outputs, with their versions
        self._held_bytes = 0
        self._units: list[tuple[Tensor, LayerCall]] = []  # the largest output of each unit
        self._rectified: list[tuple[Tensor, int, LayerCall]] = []  # small outputs, with their versions
        self._last: tuple[Tensor, Value, int] | None = None
        self._given: dict[int, tuple[weakref.ref[Tensor], Value, int]] = {}  # what is no activation

    @property
    def attached(self) -> bool:
        return bool(self._undo)

    @property
    def running(self) -> bool:
        """Whether a model runs now, in an audited step."""
        return self._root is not None

    def attach(self) -> None:
        self._follow()
        self._undo.append(self._unfollow)
        self._undo.append(self._losses.detach)
        self._losses.attach()

    def _follow(self) -> None:
        after = self._leaving(self._session.guarded(self._after))
        before = self._hook(self._session.guarded(self._before))
        self._following = follow(before, after)

    def _unfollow(self) -> None:
        if self._following is not None:
            self._following()
            self._following = None

    def detach(self) -> None:
        self._undo()
        self.begin()

    def begin(self) -> None:
        """Forget the step before."""
        self._held, self._held_bytes, self._units, self._rectified, self._last = [], 0, [], [], None
        self._root = self._forward = None
        self._given = {}
        self._depth = self._seen = 0
        self._losses.begin()
        if self.attached and self._following is None:
            self._follow()

    # -- the hooks --------------------------------------------------------------------------------------------

    def _hook(self, before: Callable[..., Any]) -> Callable[..., Any]:
        """Passes over what needs nothing before its call, nearly every module, at a tenth of the cost."""
        is_compiling = torch.compiler.is_compiling

        def hook(module: nn.Module, args: tuple[Any, ...]) -> None:
            root = self._root
            if (root is None or module is root or isinstance(module, _EMBEDDINGS)) and not is_compiling():
                before(module, args)

        return hook

    def _leaving(self, after: Callable[..., Any]) -> Callable[..., Any]:
        """Passes over the parts of a model whose pass is not looked into."""

        def hook(module: nn.Module, args: tuple[Any, ...], *rest: Any) -> None:
            if self._forward is not None or module is self._root:
                after(module, args, *rest)

        return hook

    def _before(self, module: nn.Module, args: tuple[Any, ...]) -> None:
        if self._root is None:
            self._begin(module, args)
        elif module is self._root:
            self._depth += 1
        if (
            self._forward is not None
            and isinstance(module, _EMBEDDINGS)
            and args
            and isinstance(args[0], Tensor)
        ):
            self._measure_ids(self._forward, module, args[0])

    def _after(self, module: nn.Module, args: tuple[Any, ...], *rest: Any) -> None:
        forward = self._forward
        over = module is self._root and self._depth == 0
        if forward is not None:
            raised = len(rest) == 1  # torch then hands over no keyword arguments
            kwargs, result = ({}, None) if raised else rest
            self._record(forward, module, args, kwargs, result)
            forward.calls[-1].raised = raised
            if over:
                with torch.no_grad():
                    self._end(forward, kwargs, result, complete=not raised)
        if over:
            self._root = self._forward = None
            self._given = {}
            self._session.tell("passed", module, args, None if len(rest) == 1 else rest[1])
        elif module is self._root:
            self._depth -= 1

    def _begin(self, module: nn.Module, args: tuple[Any, ...]) -> None:
        """The outermost module of a forward pass is called."""
        session = self._session
        window = session.window
        self._root = module
        if window.step is None or in_backward() or not _has_parameters(module):
            return  # a recomputation of checkpointed layers, a criterion, a transform
        self._seen += 1
        infers = session.infers
        if infers and self._seen > MOST_PASSES:
            self._unfollow()
            self._root = None
            return
        self.passes += infers
        if self._seen > MOST_FORWARDS and not (infers and self._seen & (self._seen - 1) == 0):
            return
        self.looked_at += infers
        place = here()
        forward = Forward(
            model=session.model(module, place),
            place=place,
            training=module.training,
            grad_enabled=torch.is_grad_enabled(),
            autocast=_autocast(module),
        )
        window.step.forwards.append(forward)
        self._thorough = window.step.thorough
        if forward.grad_enabled:
            self._forward = forward
        elif infers:  # an optimizer may still come: then there is nothing of this
            self._forward = replace(forward, inputs=[], outputs=[], calls=[], lookups=[])
            window.step.inferences.append(self._forward)
        if self._forward is not None:
            with torch.no_grad():
                self._measure_inputs(self._forward, tensors(args))

    def _end(self, forward: Forward, kwargs: dict[str, Any], result: Any, *, complete: bool) -> None:
        forward.complete = complete
        self._measure_inputs(forward, tensors(kwargs))
        outputs = list(tensors(result))
        forward.outputs = [Value.of(name, tensor) for name, tensor in outputs]
        if self._session.infers:
            self._measure_finite(forward, [tensor for _, tensor in outputs])
        self._flush()
        self._last = None

    # -- calls ------------------------------------------------------------------------------------------------

    def _record(
        self, forward: Forward, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any
    ) -> None:
        inputs = [self._value(value, module) for value in args if isinstance(value, Tensor)]
        if kwargs:
            inputs += [self._value(value) for value in kwargs.values() if isinstance(value, Tensor)]
        outputs: list[Value] = []
        call = LayerCall(module, self._session.names, forward.model.module, module.training, inputs, outputs)
        forward.calls.append(call)
        leaf = not module._modules
        for output in result if isinstance(result, (tuple, list)) else (result,):
            if not isinstance(output, Tensor):
                continue
            last = self._last
            if output.requires_grad and (last is None or last[0] is not output):
                value = Value.of("", output)
            else:
                value = self._value(output)
            outputs.append(value)
            if leaf:
                version = _version(output)
                self._last = output, value, version
                self._measure_output(module, output, version, value, call)

    def _value(self, tensor: Tensor, reader: nn.Module | None = None) -> Value:
        """The value that the last module put out, unless it was written to before this one reads it."""
        last = self._last
        if last is None or last[0] is not tensor:
            return self._given_value(tensor)
        if reader is not None and last[2] != _version(tensor) and not getattr(reader, "inplace", False):
            return Value.of("", tensor)
        return last[1]

    def _given_value(self, tensor: Tensor) -> Value:
        """The value of a tensor that is no activation, the same as when it was met before unless it was written to."""
        known = self._given.get(id(tensor))
        if known is not None and known[0]() is tensor and known[2] == _version(tensor):
            return known[1]
        value = Value.of("", tensor)
        if not tensor.requires_grad:
            base = tensor._base
            if base is not None and base.numel() == tensor.numel():
                seen = self._given.get(id(base))
                value.viewed = seen[1] if seen is not None and seen[0]() is base else None
            self._given[id(tensor)] = weakref.ref(tensor), value, _version(tensor)
        return value

    def _measure_output(
        self, module: nn.Module, output: Tensor, version: int, value: Value, call: LayerCall
    ) -> None:
        if type(output) is not Tensor:
            with torch.no_grad():
                output = local(output)
            version = _version(output)
            value.part = output.numel()
        if not measurable(output):
            return
        last = self._held[-1] if self._held else None
        passed = last is not None and last[0] is output and last[2] is value and version - last[1] <= 1
        if passed:  # as it was, or the module works in place: what was not finite before is not so now either
            self._held[-1] = output, version, value
        if isinstance(module, RECTIFIERS):  # what is finite stays so: its norm says nothing new
            if self._thorough:
                self._rectify(output, version, call)
            return
        if not passed:
            self._held.append((output, version, value))
            self._hold(output)
        if self._thorough and isinstance(module, SATURATING):
            with torch.no_grad():
                self._measure_saturation(module, output, call)

    def _hold(self, output: Tensor) -> None:
        self._held_bytes += output.nbytes
        if len(self._held) + len(self._rectified) >= _HELD_TENSORS or self._held_bytes >= _HELD_BYTES:
            with torch.no_grad():
                self._flush()

    def _flush(self) -> None:
        """Measure what is held, and let it go; but not what was written to since: masks write infinities."""
        held, units, rectified = self._held, self._units, self._rectified
        self._held, self._held_bytes, self._units, self._rectified = [], 0, [], []
        readings = self._session.window.readings

        def deliver_norms(norms: list[float]) -> None:
            for value, norm in zip(held_values, norms, strict=True):
                value.norm = norm

        held = [entry for entry in held if _version(entry[0]) == entry[1]]
        held_values = [value for _, _, value in held]
        readings.bulk([tensor for tensor, _, _ in held], deliver_norms)
        if units:
            self._read_units(units)
        if rectified:
            self._read_rectified(rectified)

    def _read_units(self, units: list[tuple[Tensor, LayerCall]]) -> None:
        def deliver(counts: list[float]) -> None:
            for (_, call), alive in zip(units, counts, strict=True):
                assert call.units is not None
                call.dead = 1 - alive / call.units

        self._session.window.readings.norms([largest for largest, _ in units], deliver, order=0.0)

    def _read_rectified(self, rectified: list[tuple[Tensor, int, LayerCall]]) -> None:
        """Small outputs, those of one shape as one."""
        entries = [entry for entry in rectified if _version(entry[0]) == entry[1]]
        calls: list[LayerCall] = []
        counts: list[Tensor] = []
        for indices in alike([output for output, _, _ in entries]):
            outputs = [entries[index][0] for index in indices]
            calls += [entries[index][2] for index in indices]
            kept = _unit_axis(outputs[0]) + 1
            stacked = torch.stack(outputs)
            largest = stacked.amax([axis for axis in range(1, stacked.dim()) if axis != kept])
            counts.append(row_norms(largest, order=0.0))

        def deliver(values: list[float]) -> None:
            for call, alive in zip(calls, values, strict=True):
                assert call.units is not None
                call.dead = 1 - alive / call.units

        if counts:
            self._session.window.readings.vectors(counts, deliver)

    def _rectify(self, output: Tensor, version: int, call: LayerCall) -> None:
        """The largest output of each unit: it is zero for a unit that is off in every row."""
        if output.dim() < 2 or output.numel() == 0:
            return
        unit = _unit_axis(output)
        call.units = output.shape[unit]
        call.rows = output.numel() // call.units
        if output.numel() <= SMALL:
            self._rectified.append((output, version, call))
            self._hold(output)
            return
        with torch.no_grad():
            largest = output.amax([axis for axis in range(output.dim()) if axis != unit])
        self._units.append((largest, call))

    def _measure_saturation(self, module: nn.Module, output: Tensor, call: LayerCall) -> None:
        centred = output.abs() if isinstance(module, nn.Tanh) else (output - 0.5).abs().mul_(2)
        count = output.numel()

        def deliver(values: list[float]) -> None:
            call.saturated = values[0] / count

        limit = 0.99 if isinstance(module, nn.Tanh) else 0.98
        self._session.window.readings.scalars([torch.count_nonzero(centred > limit)], deliver)

    # -- inputs -----------------------------------------------------------------------------------------------

    def _measure_inputs(self, forward: Forward, found: Any) -> None:
        for name, tensor in found:
            value = self._given_value(tensor)
            value.name = name
            forward.inputs.append(value)
            measure_value(self._session.window, value, tensor, moments=True)

    def _measure_finite(self, forward: Forward, outputs: list[Tensor]) -> None:
        found = [
            each for each in map(local, outputs[:_OUTPUTS]) if each.is_floating_point() and measurable(each)
        ]

        def deliver(counts: list[float]) -> None:
            forward.spoiled = not any(counts)

        if found:
            self._session.window.readings.scalars(
                [each.isfinite().count_nonzero() for each in found], deliver
            )

    def _measure_ids(self, forward: Forward, module: nn.Module, ids: Tensor) -> None:
        """Before the call: an id out of range raises, or breaks the device."""
        value = Value.of("ids", ids)
        forward.lookups.append(
            LayerCall(module, self._session.names, forward.model.module, module.training, [value])
        )
        pad = getattr(module, "padding_idx", None)
        if pad is not None and forward.grad_enabled and not ids.is_meta:
            self._losses.padded.append((ids, pad))
        with torch.no_grad():
            measure_value(self._session.window, value, ids, moments=False)


def _unit_axis(output: Tensor) -> int:
    return 1 if output.dim() >= 4 else output.dim() - 1


def _version(tensor: Tensor) -> int:
    try:
        return tensor._version
    except RuntimeError:  # a tensor of inference mode has none
        return 0


def _has_parameters(module: nn.Module) -> bool:
    return next(module.parameters(), None) is not None


def _autocast(module: nn.Module) -> torch.dtype | None:
    parameter = next(module.parameters())
    kind = parameter.device.type
    if kind == "meta" or not torch.is_autocast_enabled(kind):
        return None
    return torch.get_autocast_dtype(kind)
