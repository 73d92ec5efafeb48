"""The terms that a loss is the sum of, through whatever leaves it one."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.facts.values.discounting import summands
from ta_lint.facts.values.flow import ValueFlow
from ta_lint.facts.values.names import Names
from ta_lint.facts.values.value import Frame, Path
from ta_lint.syntax.tree import Node

_DEPTH = 8
_MOST = 40  # terms of one loss

# Methods and functions whose result is a sum of the same terms.
_LINEAR = frozenset(
    "contiguous cpu cuda double flatten float half mean nanmean reshape squeeze sum to unsqueeze view".split()
)
_STACKS = frozenset("torch.stack torch.cat torch.concat torch.hstack builtins.sum".split())

_Part = tuple[Node, Path]


def terms_of(flow: ValueFlow, names: Names, loss: Node) -> list[Node]:
    """The terms of a loss, as the uses of variables or the expressions that stand in its sums.

    Of a value that is one of several, each that is a sum is looked into. Empty if they are too many.
    """
    found = list(dict.fromkeys(_terms(flow, names, (loss, ()), None, _DEPTH)))
    return found if len(found) <= _MOST else []


def _terms(flow: ValueFlow, names: Names, part: _Part, frame: Frame | None, depth: int) -> Iterator[Node]:
    node, path = part
    origins = flow.of(node, path, frame).tensors if depth else ()
    sums = [(origin, _parts(names, origin.node)) for origin in origins if not origin.path]
    if not any(parts for _, parts in sums):
        yield from ([node] if not path else [origin.node for origin in origins])
        return
    for origin, parts in sums:
        for inner in parts:
            yield from _terms(flow, names, inner, origin.frame, depth - 1)


def _parts(names: Names, made: Node) -> list[_Part]:
    """What a value is the sum of; empty for what is none."""
    match made:
        case cst.BinaryOperation(operator=cst.Add() | cst.Subtract()):
            return [(part, ()) for _, part in summands(made)]
        case cst.BinaryOperation(operator=cst.Divide()):
            return [(made.left, ())]
        case cst.BinaryOperation(operator=cst.Multiply()):
            sides = (made.left, made.right)
            scaled = [side for side in sides if not isinstance(side, (cst.Integer, cst.Float))]
            return [(scaled[0], ())] if len(scaled) == 1 else []
        case cst.UnaryOperation(operator=cst.Minus()):
            return [(made.expression, ())]
        case cst.AugAssign(operator=cst.AddAssign() | cst.SubtractAssign()):
            return [(made.target, ()), (made.value, ())]
        case cst.Call():
            return _called(names, made)
    return []


def _called(names: Names, call: cst.Call) -> list[_Part]:
    called = names.qualified(call.func)
    if called in _STACKS and call.args:
        return [(call.args[0].value, (None,))]
    if (
        called is not None
        and called.rpartition(".")[2] in _LINEAR
        and called.startswith("torch.")
        and call.args
    ):
        return [(call.args[0].value, ())]
    is_method = called is None and isinstance(call.func, cst.Attribute)
    if is_method and isinstance(call.func, cst.Attribute) and call.func.attr.value in _LINEAR:
        return [(call.func.value, ())]
    return []
