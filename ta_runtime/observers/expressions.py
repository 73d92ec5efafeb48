"""Sees logarithms, exponentials, roots and angles in the user's code, on thorough steps (`facts.Step.thorough`) alone."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from ta_runtime.facts import Expression
from ta_runtime.measure.kinds import local, measurable
from ta_runtime.observers import scores
from ta_runtime.observers.observer import ThoroughObserver
from ta_runtime.probes.backward import in_backward
from ta_runtime.probes.patching import Call, End, Watch
from ta_runtime.probes.places import caller, here, is_library

if TYPE_CHECKING:
    from torch.autograd.graph import Node


_NAMES = {name: name for name in ("log", "exp", "sqrt", "acos", "asin", "pow")}
_NAMES |= {"arccos": "acos", "arcsin": "asin", "__pow__": "pow"}
_MOST = 64  # calls of one step


class Expressions(ThoroughObserver):
    """Watches such calls for one window at a time."""

    rules = frozenset({"TA110", "TA112"})

    def _watches(self) -> Mapping[str, Watch]:
        return {"elementary": self._begun}

    def _begun(self, call: Call) -> End:
        return self._noted

    def _noted(self, call: Call) -> None:
        args, result = call.args, call.result
        name = _NAMES.get(call.function.__name__)  # None: of what somebody else has put in the place
        if (
            name is not None
            and args
            and type(args[0]) is Tensor
            and type(result) is Tensor
            and (name != "pow" or (len(args) > 1 and isinstance(args[1], float) and args[1] == 0.5))
            and not is_library(caller().f_code.co_filename)
        ):
            self._note("sqrt" if name == "pow" else name, args[0], result)

    def _note(self, function: str, operand: Tensor, result: Tensor) -> None:
        step = self.session.window.step
        if step is None or in_backward() or len(step.expressions) == _MOST:
            return
        with torch.no_grad():
            values = local((operand if function == "exp" else result).detach())
            if not measurable(values) or values.is_complex() or values.numel() == 0:
                return
            expression = Expression(here(), function, _kind(operand), result.requires_grad)
            step.expressions.append(expression)
            values = values.float()
            numbers = [*torch.aminmax(values), values.abs().amin()]

        def deliver(read: list[float]) -> None:
            expression.minimum, expression.maximum, expression.smallest = read

        self.session.window.readings.scalars(numbers, deliver)


def _kind(operand: Tensor) -> str:
    made_by = scores.made(operand).made_by
    if made_by in ("softmax", "sigmoid"):
        return made_by
    node = operand.grad_fn
    if node is None:
        return ""
    name, inner = node.name(), _inner(node)
    if name.startswith("Rsub") and inner == {"SigmoidBackward0"}:
        return "1 - sigmoid"
    if name == "AddBackward0":
        return "1 + exp" if inner == {"ExpBackward0"} else "sum"
    if name.startswith("SumBackward") and inner == {"ExpBackward0"}:
        return "sum of exp"
    return ""


def _inner(node: "Node") -> set[str]:
    return {above.name() for above, _ in node.next_functions if above is not None}
