"""Sees what `backward` is called on, without the factor of a `GradScaler`."""

import weakref
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ta_runtime.guarding import Guard
from ta_runtime.observers.patching import Undo

# not public: without it, what a backward pass runs once more is taken for a forward pass
_backward_runs = getattr(torch._C, "_current_graph_task_id", lambda: -1)


def in_backward() -> bool:
    return bool(_backward_runs() != -1)


class Losses:
    """Calls `note` with each loss that a backward pass begins with."""

    def __init__(self, note: Callable[[Tensor], None], guard: Guard) -> None:
        self._note, self._guard = note, guard
        self._scaled: tuple[weakref.ref[Tensor], Tensor] | None = None
        self._undo = Undo()

    def attach(self) -> None:
        self._undo.patch(torch.autograd, "backward", self._backward)
        self._undo.patch(torch.amp.GradScaler, "scale", self._scale)

    def detach(self) -> None:
        self._undo()
        self._scaled = None

    def _backward(self, original: Callable[..., Any]) -> Callable[..., Any]:
        begins = self._guard(self._begins)

        def backward(tensors: Any, *args: Any, **kwargs: Any) -> Any:
            if self._undo and not torch.compiler.is_compiling():
                begins(tensors)
            return original(tensors, *args, **kwargs)

        return backward

    def _begins(self, tensors: Any) -> None:
        if in_backward():
            return
        scaled, self._scaled = self._scaled, None
        for loss in [tensors] if isinstance(tensors, Tensor) else list(tensors):
            self._note(scaled[1] if scaled is not None and scaled[0]() is loss else loss)

    def _scale(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def scale(scaler: Any, outputs: Any) -> Any:
            result = original(scaler, outputs)
            if self._undo and isinstance(outputs, Tensor) and isinstance(result, Tensor):
                self._scaled = weakref.ref(result), outputs
            return result

        return scale
