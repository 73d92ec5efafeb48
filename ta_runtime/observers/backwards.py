"""Sees `loss.backward()`, `GradScaler.scale` and the clipping of gradients: the few numbers of a step that no hook gives.

They are wrapped; each wrapper notes a reference or two, tells the other observers and passes the call on.
"""

import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.distributed.tensor import DTensor
from torch.nn.utils import clip_grad

from ta_runtime.observers.patching import Undo
from ta_runtime.places import NOWHERE, here
from ta_runtime.readings import local

if TYPE_CHECKING:
    from ta_runtime.session import Session


_MOST = 64  # losses of one step: of more micro-batches, the first


class Backwards:
    """Watches the backward passes of a session."""

    def __init__(self, session: "Session") -> None:
        self._session = session
        self._undo = Undo()
        self._scaled: tuple[weakref.ref[Tensor], Tensor] | None = None
        self.place = NOWHERE
        """Where `backward` was called last."""
        self.running = False
        """Whether a backward pass runs now, in which a forward is a recomputation."""

    def attach(self) -> None:
        # what `clip_grad_norm_` calls, however the run came by that function
        norm = (clip_grad, "_clip_grads_with_norm_")
        patch = self._undo.patch
        patch(Tensor, "backward", self._backward)
        patch(torch.amp.GradScaler, "scale", self._scale)
        patch(nn.utils, "clip_grad_value_", self._clip)
        patch(*(norm if hasattr(*norm) else (nn.utils, "clip_grad_norm_")), self._clip)

    def detach(self) -> None:
        self._undo()
        self._scaled = None

    def _backward(self, original: Callable[..., Any]) -> Callable[..., Any]:
        before = self._session.guarded(self._before)
        after = self._session.guarded(self._after)

        def backward(loss: Tensor, *args: Any, **kwargs: Any) -> Any:
            if torch.compiler.is_compiling() or not self._undo or self.running:
                return original(loss, *args, **kwargs)
            before(loss)
            outer, self.running = self.running, True
            try:
                result = original(loss, *args, **kwargs)
            finally:
                self.running = outer
            after(loss)
            return result

        return backward

    def _before(self, loss: Tensor) -> None:
        self.place = here()
        self._note_loss(loss)
        self._session.tell("before_backward", loss)

    def _after(self, loss: Tensor) -> None:
        self._session.tell("after_backward", loss)

    def _note_loss(self, loss: Tensor) -> None:
        scaled, self._scaled = self._scaled, None
        window = self._session.window
        window.backwards += 1
        if not self._session.looks_at(window):
            return
        unscaled = scaled[1] if scaled is not None and scaled[0]() is loss else loss
        if len(window.losses) < _MOST and _readable(unscaled):
            # The last one is held with its graph until the step, as the training code itself does: taking it off
            # would be one operation more. Of accumulated micro-batches the others are held without.
            window.losses = [loss.detach() for loss in window.losses]
            window.losses.append(local(unscaled))
        if window.step is not None or window.loss_place is None:
            window.loss_place = self.place

    def _clip(self, original: Callable[..., Any]) -> Callable[..., Any]:
        before, after = self._session.guarded(self._clips), self._session.guarded(self._clipped)

        def clip(parameters: Any, *args: Any, **kwargs: Any) -> Any:
            if torch.compiler.is_compiling() or not self._undo:
                return original(parameters, *args, **kwargs)
            if isinstance(parameters, Iterator):
                parameters = list(parameters)
            before(parameters)
            result = original(parameters, *args, **kwargs)
            # the norm is the result of `clip_grad_norm_`, and an argument of what that calls
            limit, norm = (*args, *kwargs.values(), None, None)[:2]
            after(parameters, limit, norm if result is None else result)
            return result

        return clip

    def _clips(self, parameters: Any) -> None:
        self._session.tell("before_clipping", _listed(parameters))

    def _clipped(self, parameters: Any, limit: object, norm: object) -> None:
        window = self._session.window
        if self._session.looks_at(window) and type(norm) is Tensor and norm.dim() == 0:
            window.clipped = norm
        self._session.tell("after_clipping", _listed(parameters), limit)

    def _scale(self, original: Callable[..., Any]) -> Callable[..., Any]:
        scaled = self._session.guarded(self._note_scaled)

        def scale(scaler: Any, outputs: Any) -> Any:
            result = original(scaler, outputs)
            if not torch.compiler.is_compiling():
                scaled(scaler, outputs, result)
            return result

        return scale

    def _note_scaled(self, scaler: Any, outputs: Any, result: Any) -> None:
        if isinstance(outputs, Tensor) and isinstance(result, Tensor):
            self._scaled = (weakref.ref(result), outputs)
        self._session.tell("scaled", scaler, outputs, result)


def _listed(parameters: Any) -> list[Tensor]:
    if isinstance(parameters, Tensor):
        return [parameters]
    return list(parameters) if isinstance(parameters, Iterable) else []


def _readable(loss: Tensor) -> bool:
    """Whether it is one number; a subclass may do anything when asked."""
    if type(loss) not in (Tensor, DTensor):
        return False
    return loss.numel() == 1 and loss.is_floating_point() and not loss.is_meta
