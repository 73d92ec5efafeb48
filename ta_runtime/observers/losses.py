"""Sees the loss functions of `torch.nn.functional`, and tensors moved without blocking, on audited steps alone.

Functions have no hooks: for the step, those of the losses run other code. The criterion modules call them. Sessions
share that code, as they begin and end their audited steps in any order.
"""

import inspect
from collections.abc import Callable
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from ta_runtime.facts import Copy, Loss, Padding, Value
from ta_runtime.measure.kinds import local
from ta_runtime.observers import scores
from ta_runtime.observers.values import measure_value
from ta_runtime.probes import hub
from ta_runtime.probes.backward import in_backward
from ta_runtime.probes.patching import Call, End, overridden
from ta_runtime.probes.places import here, scopes
from ta_runtime.probes.undo import Undo

if TYPE_CHECKING:
    from ta_runtime.observers.context import Context

_MOST = 64  # calls of one step that are looked at
_BY_CLASS = ("cross_entropy", "nll_loss")
_OF_PROBABILITIES = (*_BY_CLASS, "binary_cross_entropy", "binary_cross_entropy_with_logits", "kl_div")


class Losses:
    """Watches functions for one audited window."""

    def __init__(self, session: "Context") -> None:
        self._session = session
        self.padded: list[tuple[Tensor, int]] = []
        """The ids that embeddings of this step were asked for, each with the one that pads."""
        self._undo = Undo()

    def attach(self) -> None:
        if self._undo:
            return
        run = self._session.barrier.run
        self._undo.append(hub.watch("loss", self._begin, run))
        if self._session.machine.accelerator is not None:
            self._undo.append(hub.watch("copy", self._follow, run))

    def begin(self) -> None:
        """Forget the step before."""
        self.padded = []

    def detach(self) -> None:
        self._undo()

    # -- losses -----------------------------------------------------------------------------------------------

    def _begin(self, call: Call) -> End | None:
        if overridden(call.args, call.kwargs) or not torch.is_grad_enabled():
            return None
        loss = self._record(call)  # before it: it may raise
        return None if loss is None else partial(self._value, loss)

    def _record(self, call: Call) -> Loss | None:
        window = self._session.window
        if window.step is None or in_backward() or len(window.step.losses) == _MOST:
            return None
        name = call.function.__name__
        try:
            bound = _signature(call.function).bind(*call.args, **call.kwargs)
        except TypeError:  # so will the call
            return None
        bound.apply_defaults()
        options = dict(bound.arguments)
        given, target = options.pop("input"), options.pop("target")
        if not isinstance(given, Tensor) or not isinstance(target, Tensor):
            return None
        loss = Loss(
            name,
            here(),
            Value.of("input", given),
            Value.of("target", target),
            options,
            training=given.requires_grad,
            batch=window.backwards,
        )
        window.step.losses.append(loss)
        window.step.scopes.update(scopes())
        with torch.no_grad():
            self._measure_target(loss, local(target))
            self._measure_scores(loss, given)
            self._count_padding(loss, local(target))
            self._count_labels(loss, local(target))
        return loss

    def _measure_scores(self, loss: Loss, given: Tensor) -> None:
        window = self._session.window
        if loss.function not in _OF_PROBABILITIES or not given.requires_grad or type(given) is not Tensor:
            return
        loss.scores = scores.made(given)
        assert window.step is not None
        if window.step.thorough or loss.scores.made_by in ("softmax", "sigmoid"):
            axis = min(1, given.dim() - 1) if loss.function in _BY_CLASS else -1
            by_class = loss.function in (*_BY_CLASS, "kl_div") and given.dim() > 0
            scores.measure(loss.scores, given, axis if by_class else None, window.readings)

    def _count_padding(self, loss: Loss, target: Tensor) -> None:
        """Count the token that pads: that of the embedding whose tokens the model chooses among, or a class that the
        targets have where the ids are padding, and nowhere else."""
        step = self._session.window.step
        if (
            loss.function not in _BY_CLASS
            or target.is_floating_point()
            or target.is_meta
            or not target.numel()
            or not loss.input.shape
        ):
            return
        assert step is not None
        classes = loss.input.shape[min(1, len(loss.input.shape) - 1)]
        tables: dict[int, Any] = {
            id(call.module): call.module for forward in step.forwards for call in forward.lookups
        }
        tokens = {table.padding_idx for table in tables.values() if table.num_embeddings == classes}
        token = tokens.pop() if len(tokens) == 1 else None
        if token is None:
            self._count_beside_ids(loss, target)
            return
        padding = loss.padding = Padding(token, target.numel())

        def deliver(values: list[float]) -> None:
            padding.padded = values[0]

        self._session.window.readings.scalars([torch.count_nonzero(target == token)], deliver)

    def _count_labels(self, loss: Loss, target: Tensor) -> None:
        by_index = loss.function in _BY_CLASS and not target.is_floating_point()
        if not by_index or not loss.training or target.is_meta or not target.numel():
            return

        def deliver(values: list[float]) -> None:
            (loss.labels,) = values

        counted = (target != loss.options["ignore_index"]).sum()
        self._session.window.readings.scalars([counted], deliver)

    def _count_beside_ids(self, loss: Loss, target: Tensor) -> None:
        alike = [
            (ids, pad)
            for ids, pad in self.padded
            if ids.numel() == target.numel() and ids.device == target.device
        ]
        if len(alike) != 1 or target.dtype is not torch.int64:
            return
        ((ids, pad),) = alike
        targets = target.reshape(-1)
        is_padding = ids.reshape(-1) == pad
        lowest = torch.iinfo(target.dtype).min
        label = torch.where(is_padding, targets, lowest).amax()
        agree = (targets == label) == is_padding

        def deliver(values: list[float]) -> None:
            padded, agreeing, token = values
            if agreeing == target.numel():
                loss.padding = Padding(int(token) if padded else pad, target.numel(), padded)

        counts = [torch.count_nonzero(is_padding), torch.count_nonzero(agree), label]
        self._session.window.readings.scalars(counts, deliver)

    def _measure_target(self, loss: Loss, target: Tensor) -> None:
        by_class = loss.function in _BY_CLASS and not target.is_floating_point()
        if by_class and target.numel() and not target.is_meta and target.dtype is not torch.uint8:
            ignored = loss.options["ignore_index"]
            target = torch.where(target == ignored, target.new_zeros(()), target)
        measure_value(self._session.window, loss.target, target, moments=False)

    def _value(self, loss: Loss, call: Call) -> None:
        result = call.result
        if not isinstance(result, Tensor) or result.dim() or result.is_meta:
            return

        def deliver(values: list[float]) -> None:
            loss.value = values[0]

        with torch.no_grad():
            self._session.window.readings.scalars([local(result.data)], deliver)

    # -- copies -----------------------------------------------------------------------------------------------

    def _follow(self, call: Call) -> End | None:
        return self._was_copied if call.kwargs.get("non_blocking") else None

    def _was_copied(self, call: Call) -> None:
        step, source, result = self._session.window.step, call.args[0], call.result
        if (
            step is None
            or call.raised
            or source.device == result.device
            or source.device.type != "cpu"
            or len(step.copies) == _MOST
        ):
            return
        pinned = torch.cuda.is_available() and source.is_pinned()
        origin = self._session.loaders.origin(source)
        loader = None if origin is None else origin.loader()
        built = None if origin is None or loader is None or loader.pin_memory else origin.place
        step.copies.append(
            Copy(here(), result.device.type, non_blocking=True, is_pinned=pinned, loader=built)
        )


class UntrackedLosses:
    """Watches for losses that are taken without gradients, and calls `measured` for each, with the name of the function.

    `run` calls it, as `FaultBarrier.run` does.
    """

    def __init__(
        self, measured: Callable[[str, tuple[Any, ...], dict[str, Any]], object], run: hub.Run
    ) -> None:
        self._measured, self._run = measured, run
        self._undo = Undo()

    def attach(self) -> None:
        if not self._undo:
            self._undo.append(hub.watch("loss", self._begin, self._run))

    def detach(self) -> None:
        self._undo()

    def _begin(self, call: Call) -> None:
        if not torch.is_grad_enabled() and not overridden(call.args, call.kwargs):
            self._measured(call.function.__name__, call.args, call.kwargs)


@cache
def _signature(original: Callable[..., Any]) -> inspect.Signature:
    return inspect.signature(original)
