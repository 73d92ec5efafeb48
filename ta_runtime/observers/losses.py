"""Sees the loss functions of `torch.nn.functional`, and tensors moved without blocking, on audited steps alone.

Functions have no hooks: for the step, those of the losses run other code. The criterion modules call them. Sessions
share that code, as they begin and end their audited steps in any order.
"""

import inspect
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from ta_runtime.facts import Copy, Loss, Machine, Padding, Scores, Value
from ta_runtime.observers import scores
from ta_runtime.observers.patching import Patch, Recoded, overridden
from ta_runtime.places import here
from ta_runtime.readings import local

if TYPE_CHECKING:
    from ta_runtime.session import Session

LOSSES = (
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "cross_entropy",
    "huber_loss",
    "kl_div",
    "l1_loss",
    "mse_loss",
    "nll_loss",
    "smooth_l1_loss",
)
_MOST = 64  # calls of one step that are looked at
_BY_CLASS = ("cross_entropy", "nll_loss")
_OF_PROBABILITIES = (*_BY_CLASS, "binary_cross_entropy", "binary_cross_entropy_with_logits", "kl_div")


_attached: "list[Losses]" = []
_evaluations: list[Callable[[], object]] = []
_patches: list[Patch | Recoded] = []


def watch_evaluations(measured: Callable[[], object], machine: Machine) -> Callable[[], None]:
    """Have `measured` called for each loss that is taken without gradients; returns what ends that."""
    _evaluations.append(measured)
    _follow(machine)

    def end() -> None:
        _evaluations.remove(measured)
        _follow(machine)

    return end


def _follow(machine: Machine) -> None:
    """Patch the functions while somebody watches them."""
    watched = bool(_attached or _evaluations)
    if watched and not _patches:
        _patch(machine)
    while _patches and not watched:
        _patches.pop().undo()


class Losses:
    """Watches functions for one audited window."""

    def __init__(self, session: "Session") -> None:
        self._session = session
        self.record = session.guarded(self._record)
        self.value = session.guarded(self._value)
        self.copied = session.guarded(self._copied)

    def attach(self) -> None:
        _attached.append(self)
        _follow(self._session.machine)

    def detach(self) -> None:
        _attached.remove(self)
        _follow(self._session.machine)

    # -- losses -----------------------------------------------------------------------------------------------

    def _record(
        self, original: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Loss | None:
        window = self._session.window
        if window.step is None or self._session.in_backward or len(window.step.losses) == _MOST:
            return None
        name = original.__name__
        bound = _signature(original).bind(*args, **kwargs)
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
        )
        window.step.losses.append(loss)
        with torch.no_grad():
            self._measure_target(loss, local(target))
            self._measure_scores(loss, given)
            self._count_padding(loss, local(target))
        return loss

    def _measure_scores(self, loss: Loss, given: Tensor) -> None:
        window = self._session.window
        if loss.function not in _OF_PROBABILITIES or not given.requires_grad or type(given) is not Tensor:
            return
        loss.scores = Scores(scores.maker(given))
        assert window.step is not None
        if window.step.thorough or loss.scores.made_by in ("softmax", "sigmoid"):
            axis = min(1, given.dim() - 1) if loss.function in _BY_CLASS else -1
            by_class = loss.function in (*_BY_CLASS, "kl_div") and given.dim() > 0
            scores.measure(loss.scores, given, axis if by_class else None, window)

    def _count_padding(self, loss: Loss, target: Tensor) -> None:
        """Count the token that pads, where the model chooses among the tokens of its own embedding."""
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
            return
        padding = loss.padding = Padding(token, target.numel())

        def deliver(values: list[float]) -> None:
            padding.padded = values[0]

        self._session.window.readings.scalars([torch.count_nonzero(target == token)], deliver)

    def _measure_target(self, loss: Loss, target: Tensor) -> None:
        from ta_runtime.observers.forwards import measure_value

        by_class = loss.function in _BY_CLASS and not target.is_floating_point()
        if by_class and target.numel() and not target.is_meta and target.dtype is not torch.uint8:
            ignored = loss.options["ignore_index"]
            target = torch.where(target == ignored, target.new_zeros(()), target)
        measure_value(self._session.window, loss.target, target, moments=False)

    def _value(self, loss: Loss, result: Any) -> None:
        if not isinstance(result, Tensor) or result.dim() or result.is_meta:
            return

        def deliver(values: list[float]) -> None:
            loss.value = values[0]

        with torch.no_grad():
            self._session.window.readings.scalars([local(result.data)], deliver)

    # -- copies -----------------------------------------------------------------------------------------------

    def _copied(self, source: Tensor, result: Tensor) -> None:
        step = self._session.window.step
        if (
            step is None
            or source.device == result.device
            or source.device.type != "cpu"
            or len(step.copies) == _MOST
        ):
            return
        pinned = torch.cuda.is_available() and source.is_pinned()
        loader = self._session.loaders.origin(source)
        step.copies.append(Copy(here(), source.device, result.device, True, pinned, loader))


def _patch(machine: Machine) -> None:
    functions = [getattr(nn.functional, name) for name in LOSSES]
    own = [
        function for function in functions if getattr(function, "__module__", "") == nn.functional.__name__
    ]
    _patches.extend(Recoded(function, _loss) for function in own if not getattr(function, "__closure__", ()))
    if machine.accelerator is not None:
        _patches.extend(Patch(Tensor, name, _to) for name in ("to", "cuda"))


def _loss(original: Callable[..., Any]) -> Callable[..., Any]:
    def observed(*args: Any, **kwargs: Any) -> Any:
        if torch.compiler.is_compiling() or overridden(args, kwargs):
            return original(*args, **kwargs)
        if not torch.is_grad_enabled():
            for measured in tuple(_evaluations):
                measured()
            return original(*args, **kwargs)
        # before it: it may raise
        noted = [(losses, losses.record(original, args, kwargs)) for losses in tuple(_attached)]
        result = original(*args, **kwargs)
        for losses, loss in noted:
            if loss is not None:
                losses.value(loss, result)
        return result

    return observed


def _to(original: Callable[..., Any]) -> Callable[..., Any]:
    def observed(tensor: Tensor, *args: Any, **kwargs: Any) -> Any:
        result = original(tensor, *args, **kwargs)
        if not torch.compiler.is_compiling() and kwargs.get("non_blocking"):
            for losses in tuple(_attached):
                losses.copied(tensor, result)
        return result

    return observed


@cache
def _signature(original: Callable[..., Any]) -> inspect.Signature:
    return inspect.signature(original)
