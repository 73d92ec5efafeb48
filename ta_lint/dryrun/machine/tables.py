"""Which function runs which syntax."""

import ast
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from ta_lint.dryrun.flow import Flow
from ta_lint.dryrun.machine.frame import Frame
from ta_lint.dryrun.machine.machine import Machine
from ta_lint.dryrun.values import Value

F = TypeVar("F", bound=Callable[..., Any])

_STATEMENTS: dict[type[ast.AST], Callable[[Machine, Any, Frame], Flow]] = {}
_EXPRESSIONS: dict[type[ast.AST], Callable[[Machine, Any, Frame], Value]] = {}


def executes(*kinds: type[ast.stmt]) -> Callable[[F], F]:
    """The function below runs statements of these kinds: it gets the machine, the node and the frame, and says how the statement ends."""

    def register(function: F) -> F:
        _STATEMENTS.update(dict.fromkeys(kinds, function))
        return function

    return register


def evaluates(*kinds: type[ast.expr]) -> Callable[[F], F]:
    """The same for expressions, whose function returns the value."""

    def register(function: F) -> F:
        _EXPRESSIONS.update(dict.fromkeys(kinds, function))
        return function

    return register


def run(machine: Machine, body: Sequence[ast.stmt], frame: Frame) -> Flow:
    """Run a block."""
    for statement in body:
        machine.step()
        flow = _STATEMENTS[type(statement)](machine, statement, frame)
        if flow is not Flow.ON:
            return flow
    return Flow.ON


def evaluate(machine: Machine, node: ast.expr, frame: Frame) -> Value:
    """The value of an expression."""
    return _EXPRESSIONS[type(node)](machine, node, frame)
