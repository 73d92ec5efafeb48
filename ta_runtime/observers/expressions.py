"""Sees logarithms, exponentials, roots and angles in the user's code, on thorough steps (`facts.Step.thorough`) alone."""

from collections.abc import Callable
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from ta_runtime.facts import Expression
from ta_runtime.observers import scores
from ta_runtime.observers.observer import Observer
from ta_runtime.observers.patching import Shared, Undo, from_its_line, standing_in
from ta_runtime.places import caller, here, is_library
from ta_runtime.readings import local, measurable

if TYPE_CHECKING:
    from torch.autograd.graph import Node

    from ta_runtime.session import Session
    from ta_runtime.window import Window

_FUNCTIONS = ("log", "exp", "sqrt", "acos", "arccos", "asin", "arcsin", "pow")
_NAMES = {"arccos": "acos", "arcsin": "asin", "__pow__": "pow"}
_RULES = frozenset({"TA110", "TA112"})
_MOST = 64  # calls of one step


class Expressions(Observer):
    """Watches such calls for one window at a time."""

    def __init__(self, session: "Session") -> None:
        super().__init__(session)
        self.note = session.guarded(self._note)
        self._wanted = bool(_RULES & session.settings.rules)

    def begin(self, window: "Window") -> None:
        _attached.leave(self)
        thorough = window.step is not None and window.step.thorough
        if self._wanted and thorough and not self.session.runs_compiled:
            _attached.join(self)

    def compiles(self) -> None:
        _attached.leave(self)

    def detach(self) -> None:
        _attached.leave(self)

    def _note(self, function: str, operand: Tensor, result: Tensor) -> None:
        step = self.session.window.step
        if step is None or self.session.in_backward or len(step.expressions) == _MOST:
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


def _put_on(undo: Undo) -> None:
    for name in _FUNCTIONS:
        undo.patch(torch, name, partial(_function, name))
    for name in (*_FUNCTIONS, "__pow__"):
        undo.patch(Tensor, name, partial(_observed, _NAMES.get(name, name)))


_attached: Shared[Expressions] = Shared(_put_on)


@cache
def _function(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
    return standing_in(original, partial(_observed, _NAMES.get(name, name)))


def _observed(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
    call = from_its_line(original)

    def observed(*args: Any, **kwargs: Any) -> Any:
        result = call(*args, **kwargs)
        if (
            _attached
            and not torch.compiler.is_compiling()
            and args
            and type(args[0]) is Tensor
            and type(result) is Tensor
            and (name != "pow" or (len(args) > 1 and args[1] == 0.5))
            and not is_library(caller().f_code.co_filename)
        ):
            for expressions in _attached:
                expressions.note("sqrt" if name == "pow" else name, args[0], result)
        return result

    return observed


def _kind(operand: Tensor) -> str:
    made_by = scores.maker(operand)
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
