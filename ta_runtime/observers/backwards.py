"""Sees `loss.backward()`, `GradScaler.scale` and the clipping of gradients: the few numbers of a step that no hook gives.

Of each a reference or two are noted, and the other observers are told.
"""

import weakref
from typing import TYPE_CHECKING

from torch import Tensor
from torch.distributed.tensor import DTensor

from ta_runtime.measure.kinds import local
from ta_runtime.probes.backward import in_backward
from ta_runtime.probes.listener import Listener
from ta_runtime.probes.patching import Call, End
from ta_runtime.probes.places import NOWHERE, here, scopes

if TYPE_CHECKING:
    from ta_runtime.observers.context import Context


_MOST = 64  # losses of one step: of more micro-batches, the first


class Backwards(Listener):
    """Watches the backward passes of a session."""

    def __init__(self, session: "Context") -> None:
        self._session = session
        self._scaled: tuple[weakref.ref[Tensor], Tensor] | None = None
        self.place = NOWHERE
        """Where `backward` was called last."""

    def detach(self) -> None:
        self._scaled = None

    def backward(self, call: Call) -> End | None:
        loss = call.given(0, "tensors")
        if in_backward() or not isinstance(loss, Tensor):
            return None
        self.place = here()
        step = self._session.window.step
        if step is not None:
            step.scopes.update(scopes())
        self._note_loss(loss)
        self._session.tell("before_backward", loss)
        return self._ended

    def _ended(self, call: Call) -> None:
        if not call.raised:
            self._session.tell("after_backward", call.given(0, "tensors"))

    def _note_loss(self, loss: Tensor) -> None:
        scaled, self._scaled = self._scaled, None
        window = self._session.window
        window.backwards += 1
        if not self._session.looks_at(window):
            return
        unscaled = scaled[1] if scaled is not None and scaled[0]() is loss else loss
        if len(window.losses) < _MOST and readable(unscaled):
            # The last one is held with its graph until the step, as the training code itself does: taking it off
            # would be one operation more. Of accumulated micro-batches the others are held without.
            window.losses = [loss.detach() for loss in window.losses]
            window.losses.append(local(unscaled))
        if window.step is not None or window.loss_place is None:
            window.loss_place = self.place

    def clip(self, call: Call) -> End:
        return self._clipped

    def _clipped(self, call: Call) -> None:
        if call.raised:
            return
        window, norm = self._session.window, call.result
        if norm is None:  # of `clip_grads_with_norm_`, which is given it
            norm = call.given(2, "total_norm")
        if self._session.looks_at(window) and type(norm) is Tensor and norm.dim() == 0:
            window.clipped = norm

    def scale(self, call: Call) -> End:
        return self._note_scaled

    def _note_scaled(self, call: Call) -> None:
        outputs, result = call.given(1, "outputs"), call.result
        if not call.raised and isinstance(outputs, Tensor) and isinstance(result, Tensor):
            self._scaled = (weakref.ref(result), outputs)


def readable(loss: Tensor) -> bool:
    """Whether it is one number; a subclass may do anything when asked."""
    if type(loss) not in (Tensor, DTensor):
        return False
    return loss.numel() == 1 and loss.is_floating_point() and not loss.is_meta
