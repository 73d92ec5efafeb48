"""Sees what softmax and log_softmax are asked to normalise, on audited steps alone. It reads shapes and no values."""

from typing import TYPE_CHECKING

from torch import Tensor

from ta_runtime.facts import Softmax
from ta_runtime.observers import scores
from ta_runtime.observers.observer import Observer
from ta_runtime.probes.backward import in_backward
from ta_runtime.probes.patching import Call
from ta_runtime.probes.places import here

if TYPE_CHECKING:
    from ta_runtime.observers.context import Context
    from ta_runtime.observers.window import Window

_RULE = "TA520"
_MOST = 64  # calls of one step


class Softmaxes(Observer):
    """Watches such calls for one window at a time; the functions and layers of that name end in them."""

    def __init__(self, session: "Context") -> None:
        super().__init__(session)
        self._wanted = _RULE in session.settings.rules

    def begin(self, window: "Window") -> None:
        self.undo()
        if self._wanted and window.step is not None and not self.session.runs_compiled:
            self._listen("normalise", self._begun)

    def compiles(self) -> None:
        self.undo()

    def _begun(self, call: Call) -> None:
        step, operand, dim = self.session.window.step, call.given(0, "input"), call.given(1, "dim")
        if (
            step is None
            or type(operand) is not Tensor
            or type(dim) is not int
            or not -operand.dim() <= dim < operand.dim()
            or len(step.softmaxes) == _MOST
            or in_backward()
        ):
            return
        made_by = scores.made(operand).made_by
        if made_by in ("linear", "convolution", "relu", "tanh"):
            dimension = dim % operand.dim()
            outputs = 1 if made_by == "convolution" and operand.dim() > 2 else operand.dim() - 1
            name = call.function.__name__
            step.softmaxes.append(
                Softmax(here(), name, made_by, operand.shape[dimension], dimension == outputs)
            )
