"""Sees what `backward` is called on, without the factor of a `GradScaler`."""

import weakref
from collections.abc import Callable

from torch import Tensor

from ta_runtime.probes.backward import in_backward
from ta_runtime.probes.listener import Listener
from ta_runtime.probes.patching import Call, End


class LossWatch(Listener):
    """Calls `note` with each loss that a backward pass begins with."""

    def __init__(self, note: Callable[[Tensor], None]) -> None:
        self._note = note
        self._scaled: tuple[weakref.ref[Tensor], Tensor] | None = None

    def forget(self) -> None:
        """Forget what was scaled."""
        self._scaled = None

    def backward(self, call: Call) -> None:
        if in_backward():
            return
        tensors = call.given(0, "tensors")
        scaled, self._scaled = self._scaled, None
        for loss in [tensors] if isinstance(tensors, Tensor) else list(tensors):
            self._note(scaled[1] if scaled is not None and scaled[0]() is loss else loss)

    def scale(self, call: Call) -> End:
        return self._note_scaled

    def _note_scaled(self, call: Call) -> None:
        outputs, result = call.given(1, "outputs"), call.result
        if isinstance(outputs, Tensor) and isinstance(result, Tensor):
            self._scaled = weakref.ref(result), outputs
