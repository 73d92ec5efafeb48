"""For how many of its steps a learning rate scheduler is made, and by what it multiplies the rate."""

import ast
from collections.abc import Sequence as Several
from typing import NamedTuple

from ta_lint.dryrun.machine.call import Call
from ta_lint.dryrun.machine.factors import factors_of
from ta_lint.dryrun.machine.frame import Frame
from ta_lint.dryrun.machine.operators import binary
from ta_lint.dryrun.machine.tables import evaluate
from ta_lint.dryrun.values import NONE, Function, Hidden, Known, Object, Sequence, Value

LENGTH = Hidden("for how many steps a scheduler is made")

_ARGUMENTS = {
    "CosineAnnealingLR": (2, "T_max"), "LambdaLR": (9, "num_training_steps"), "LinearLR": (4, "total_iters"),
    "OneCycleLR": (3, "total_steps"), "PolynomialLR": (2, "total_iters"), "StepLR": (2, "step_size"), "MultiStepLR": (2, "milestones"),
}  # fmt: skip
"""The argument that says it, of transformers for its own kind of `LambdaLR`."""
_GAMMA = {"ExponentialLR": 2, "MultiStepLR": 3, "StepLR": 3}


class Plan(NamedTuple):
    """What a scheduler is made for."""

    length: Value | None
    """Its steps; of one that falls by steps, those up to the first or the last of these."""
    gamma: float | None
    """What it multiplies the rate by then, or in each step if it has no length."""


def plan_of(made: Call, kind: str, parts: Several[Object]) -> Plan:
    """What the call that makes a scheduler says."""
    gamma = made.constant(_GAMMA[kind], "gamma", 0.1) if kind in _GAMMA else None
    return Plan(_length(made, kind, parts), float(gamma) if isinstance(gamma, int | float) else None)


def _length(made: Call, kind: str, parts: Several[Object]) -> Value | None:
    if kind == "SequentialLR":
        ends, last = made.argument(3, "milestones"), parts[-1].fields.get(LENGTH) if parts else None
        if last is None or not isinstance(ends, Sequence) or not ends.items or ends.rest is not None:
            return None
        return binary(made.machine, ast.Add(), last, ends.items[-1], made.node)
    given = made.given(*_ARGUMENTS[kind]) if kind in _ARGUMENTS else None
    if kind == "LambdaLR" and given is None:
        return _of_function(made, made.given(2, "lr_lambda"))
    if kind == "MultiStepLR" and isinstance(given, Sequence):
        return given.items[-1] if given.items and given.rest is None else None
    if kind == "OneCycleLR" and given in (None, NONE):
        epochs, each = made.given(4, "epochs"), made.given(5, "steps_per_epoch")
        if epochs is None or each is None:
            return None
        return binary(made.machine, ast.Mult(), epochs, each, made.node)
    return None if isinstance(given, Known) and given == NONE else given


def _of_function(made: Call, function: Value | None) -> Value | None:
    """What a function of the number of the step divides that number by at last, after a warm-up; no number that is written down there."""
    if not isinstance(function, Function) or len(function.node.args.args) != 1:
        return None
    number, frame = function.node.args.args[0].arg, Frame(function.frame.file, function.frame, function)
    divisors = [
        part.right
        for part in ast.walk(function.node)
        if isinstance(part, ast.BinOp) and isinstance(part.op, ast.Div) and number in _names(part.left)
    ]
    if not divisors:
        return None
    last = max(divisors, key=lambda one: (one.lineno, one.col_offset))
    names = _names(last)
    if not names or number in names or any(frame.holder(name) is None for name in names):
        return None
    value = evaluate(made.machine, last, frame)
    factors = factors_of(value)
    return value if isinstance(value, Known) or (factors is not None and factors.counted) else None


def _names(node: ast.AST) -> set[str]:
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
