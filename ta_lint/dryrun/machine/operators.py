"""What Python's operators give."""

import ast
import operator
import re
from collections.abc import Callable
from typing import Any

from ta_lint.dryrun.machine import amounts, library
from ta_lint.dryrun.machine.calling import call
from ta_lint.dryrun.machine.counts import COMPUTED, of_a_count
from ta_lint.dryrun.machine.factors import Multiple, Quotient, combined, number
from ta_lint.dryrun.machine.machine import Machine
from ta_lint.dryrun.sources import Pieces, filled, of_rank, read_of, text
from ta_lint.dryrun.values import (
    DATA,
    Choice,
    Known,
    Sequence,
    Setting,
    Unknown,
    Value,
    cuts_of,
    is_data,
    joined,
    options,
)

LARGEST = 1 << 16
"""Of a string, list or number that is computed. A larger one is a table, and nobody asks for its parts."""

_WIDTH = re.compile(r"%[-+ #0(\w)]*?[\d*]")
"""A format that says how long the text gets."""

_OPERATORS: dict[type[ast.AST], tuple[str, Callable[[Any, Any], Any]]] = {
    ast.Add: ("add", operator.add),
    ast.Sub: ("sub", operator.sub),
    ast.Mult: ("mul", operator.mul),
    ast.Div: ("truediv", operator.truediv),
    ast.FloorDiv: ("floordiv", operator.floordiv),
    ast.Mod: ("mod", operator.mod),
    ast.Pow: ("pow", operator.pow),
    ast.MatMult: ("matmul", operator.matmul),
    ast.BitAnd: ("and", operator.and_),
    ast.BitOr: ("or", operator.or_),
    ast.BitXor: ("xor", operator.xor),
    ast.LShift: ("lshift", operator.lshift),
    ast.RShift: ("rshift", operator.rshift),
    ast.Eq: ("eq", operator.eq),
    ast.NotEq: ("ne", operator.ne),
    ast.Lt: ("lt", operator.lt),
    ast.LtE: ("le", operator.le),
    ast.Gt: ("gt", operator.gt),
    ast.GtE: ("ge", operator.ge),
}
_COMPARISONS = (ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE)


def binary(
    machine: Machine, kind: ast.AST, left: Value, right: Value, node: ast.AST, *, in_place: bool = False
) -> Value:
    """`left + right`, or `left += right`."""
    result = _binary(machine, kind, left, right, node, in_place=in_place)
    if isinstance(result, Unknown) and isinstance(kind, ast.operator) and result.amount is None:
        result.amount = amounts.computed(machine, kind, left, right, node)
    return result


def _binary(
    machine: Machine, kind: ast.AST, left: Value, right: Value, node: ast.AST, *, in_place: bool
) -> Value:
    name, compute = _OPERATORS[type(kind)]
    comparison = isinstance(kind, _COMPARISONS)
    if comparison and any(isinstance(one, Setting) and one.is_open for one in (left, right)):
        return Unknown("a setting is compared", "bool")
    if isinstance(left, Known) and isinstance(right, Known):
        result = _computed(compute, left.value, right.value)
        return (
            Quotient(result.value, right)
            if compute is operator.truediv and isinstance(result, Known)
            else result
        )
    if isinstance(left, Choice) or isinstance(right, Choice):
        pairs = [(one, other) for one in options(left) for other in options(right)]
        return joined([binary(machine, kind, one, other, node) for one, other in pairs])
    if in_place:
        method = library.find_method(left, f"__i{name}__")
        if method is not None:
            return call(machine, method, [left, right], {}, node)
    for one, other, special in (
        (left, right, f"__{name}__"),
        (right, left, f"__{name}__" if comparison else f"__r{name}__"),
    ):
        method = library.find_method(one, special)
        if method is not None:
            return call(machine, method, [one, other], {}, node)
    if (counted := of_a_count(machine, kind, left, right)) is not None:
        return counted
    if comparison:
        is_array = DATA in (library.type_name(left), library.type_name(right))
        cuts = cuts_of(left, right) if is_array else ()
        return Unknown("it is compared", DATA if cuts else "bool", cuts=cuts)
    if in_place and (read := read_of(left)) is not None:
        machine.emit("count on", node, None, read=read)
    return _made_of(kind, left, right)


def _made_of(kind: ast.AST, left: Value, right: Value) -> Value:
    """A text, a number, or something else that nobody knows, made of two such things."""
    if (made := _text(kind, left, right)) is not None:
        return made
    if isinstance(kind, ast.Mult) and (_is_zero(left) or _is_zero(right)):
        return Known(0)  # of whatever it is, it adds nothing
    if isinstance(kind, ast.Div) and _is_zero(left):
        return left
    numbers = any(is_data(one) or isinstance(one, Multiple) for one in (left, right))
    factors = combined(kind, left, right) if numbers else None
    differs = (of_rank(left) or of_rank(right)) if isinstance(kind, (ast.Add, ast.Sub, ast.Mult)) else None
    if not (is_data(left) and is_data(right)):
        return number(COMPUTED, None, factors, got=(left, right), source=differs)
    kinds = {library.type_name(left), library.type_name(right)}
    type_ = DATA if DATA in kinds or kinds != {"int"} else "int"
    if DATA not in kinds and ("float" in kinds or isinstance(kind, ast.Div)):
        type_ = "float"
    source = read_of(left) or read_of(right) or differs
    return number(COMPUTED, type_, factors, cuts=cuts_of(left, right), source=source)


def _is_zero(value: Value) -> bool:
    return isinstance(value, Known) and value.value == 0


def _text(kind: ast.AST, left: Value, right: Value) -> Value | None:
    """`"last-" + name`, `"last-%s" % name`, `folder / name`; None if it is no text."""
    if isinstance(kind, ast.Div) and isinstance(getattr(left, "source", None), Pieces):
        return text(left, Known("/"), right, type=DATA)
    if isinstance(kind, ast.Add) and "str" in (library.type_name(left), library.type_name(right)):
        return text(left, right)
    if isinstance(kind, ast.Mod) and isinstance(left, Known) and isinstance(left.value, str):
        several = isinstance(right, Sequence) and right.rest is None
        return filled(left.value, "%", list(right.items) if several else [right])  # type: ignore[attr-defined]
    return None


def _computed(compute: Callable[[Any, Any], Any], left: Any, right: Any) -> Value:
    if compute is operator.pow and not (isinstance(right, (int, float)) and abs(right) < 64):
        return Unknown("a large power", "float")
    if compute is operator.mul and any(isinstance(one, (str, bytes, tuple)) for one in (left, right)):
        return Unknown("it is repeated")
    if compute is operator.lshift and not (isinstance(right, int) and right < 256):
        return Unknown("a large number", "int")
    if compute is operator.mod and isinstance(left, (str, bytes)) and _WIDTH.search(str(left)):
        return Unknown("a formatted string", "str")
    try:
        result = compute(left, right)
    except Exception:  # noqa: BLE001 - whatever the program's own expression raises
        return Unknown("it cannot be computed")
    if isinstance(result, int) and abs(result).bit_length() > 256:
        return Unknown("a large number", "int")
    return (
        Known(result)
        if not isinstance(result, (str, bytes)) or len(result) < LARGEST
        else Unknown("a long string", "str")
    )
