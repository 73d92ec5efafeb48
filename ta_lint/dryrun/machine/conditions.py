"""Conditions: what is known of them, and what is known where they hold."""

import ast
from functools import lru_cache
from typing import Any

from ta_lint.dryrun.machine import library
from ta_lint.dryrun.machine.counts import CHANGES, CYCLE, EVERY_FEW, ONCE, Cycle
from ta_lint.dryrun.machine.frame import Frame
from ta_lint.dryrun.machine.machine import Machine
from ta_lint.dryrun.machine.objects import truth
from ta_lint.dryrun.machine.tables import evaluate
from ta_lint.dryrun.values import NONE, Bound, Choice, Function, Known, Unknown, Value, options

_PLAIN = (ast.Name, ast.Attribute, ast.Subscript, ast.Constant, ast.Compare, ast.BoolOp, ast.UnaryOp, ast.BinOp, ast.operator, ast.cmpop, ast.boolop, ast.unaryop, ast.expr_context)  # fmt: skip

_NAMES = (ast.Name, ast.Attribute, ast.Subscript)

MOST_PARTS = 200
"""Of a condition that is remembered. A longer one is generated."""


def decide(machine: Machine, test: ast.expr, frame: Frame) -> bool | None:
    """Whether a condition holds, by its value, or because the same was asked before on this path."""
    return verdict(machine, evaluate(machine, test, frame), test, frame)


def verdict(machine: Machine, value: Value, test: ast.expr, frame: Frame) -> bool | None:
    """The same of a condition that has this value."""
    holds = truth(machine, value, test)
    if holds is None and (machine.assumed or machine.memo.recordings):
        inner, negated = _without_not(test)
        plain = _plain(inner)
        if plain is not None:
            if machine.memo.recordings:
                machine.memo.asked(plain[0])
            key = _key(machine, inner, frame) if machine.assumed else None
            if key in machine.assumed:
                machine.memo.consulted(key)
                return machine.assumed[key] is not negated
    return holds


def assume(machine: Machine, test: ast.expr, frame: Frame, *, holds: bool) -> None:
    """From here on, on this path, the condition holds, or not: the names in it are known better."""
    inner, negated = _without_not(test)
    holds = holds is not negated
    key = _key(machine, inner, frame)
    plain = _plain(inner)
    if key is not None and plain is not None:
        machine.assumed[key] = holds
        machine.assumed[plain[0], frame] = (
            holds  # the same code, whether its values are known to be the same or not
        )
    if isinstance(inner, ast.BoolOp) and isinstance(inner.op, ast.And) is holds:
        for part in inner.values:
            assume(machine, part, frame, holds=holds)
    elif isinstance(inner, ast.Name):
        _narrow(machine, inner, frame, lambda value: truth(machine, value, inner) is not (not holds))
    elif isinstance(inner, ast.Compare) and len(inner.ops) == 1 and isinstance(inner.left, ast.Name):
        right = evaluate(machine, inner.comparators[0], frame)
        if isinstance(right, Known) and isinstance(inner.ops[0], (ast.Is, ast.IsNot, ast.Eq, ast.NotEq)):
            same = isinstance(inner.ops[0], (ast.Is, ast.Eq)) is holds

            def fits(value: Value) -> bool:
                is_known = isinstance(value, Known) or (right == NONE and not isinstance(value, Unknown))
                return not is_known or (value == right) is same

            _narrow(machine, inner.left, frame, fits)
            if same and isinstance(evaluate(machine, inner.left, frame), Unknown):
                _bind(machine, inner.left.id, right, frame)
    elif (
        isinstance(inner, ast.Call)
        and isinstance(inner.func, ast.Name)
        and inner.func.id == "isinstance"
        and len(inner.args) == 2
        and isinstance(inner.args[0], ast.Name)
    ):
        kinds = evaluate(machine, inner.args[1], frame)
        _narrow(
            machine, inner.args[0], frame, lambda value: library.is_instance(value, kinds) is not (not holds)
        )


def holds_once(condition: Value) -> bool:
    """Whether a condition holds in one pass of a loop at most, as it asks for a number of the pass."""
    return isinstance(condition, Unknown) and condition.why == ONCE


def comes_round(machine: Machine, test: ast.expr, frame: Frame) -> Any:
    """What makes a condition hold, or fail, every few passes of a loop, as it asks for a remainder or a count: equal for conditions that
    hold in the same passes. None if nothing does.
    """
    inner, _ = _without_not(test)
    if isinstance(inner, ast.BoolOp):
        found = (comes_round(machine, part, frame) for part in inner.values)
        return next((one for one in found if one is not None), None)
    if _plain(inner) is None or _why(machine, inner, frame) not in (CYCLE, EVERY_FEW):
        return None
    is_named = isinstance(inner, _NAMES)
    return evaluate(machine, inner, frame) if is_named else _key(machine, inner, frame)


def cycle_of(machine: Machine, test: ast.expr, frame: Frame) -> Cycle | None:
    """The cycle that a condition holds in, or fails in, and in no other pass."""
    inner, negated = _without_not(test)
    if not isinstance(inner, ast.BoolOp):
        found = evaluate(machine, inner, frame)
        return found if isinstance(found, Cycle) else None
    if isinstance(inner.op, ast.And) is negated:
        return None
    every = (cycle_of(machine, part, frame) for part in inner.values)
    return next((one for one in every if one is not None), None)


def some_cycle(machine: Machine, test: ast.expr, frame: Frame) -> Cycle | None:
    """A cycle that makes a condition hold, or fail, in some passes, as in others something else may."""
    inner, _ = _without_not(test)
    if not isinstance(inner, ast.BoolOp):
        return cycle_of(machine, inner, frame)
    every = (some_cycle(machine, part, frame) for part in inner.values)
    return next((one for one in every if one is not None), None)


def counts_anew(machine: Machine, node: ast.If, frame: Frame) -> tuple[Any, Cycle] | None:
    """What makes `if seen == k:` hold every few passes of a loop that counts `seen`, as the body sets it back to a constant, itself or in
    a method, and its cycle.
    """
    either = isinstance(node.test, ast.BoolOp) and isinstance(node.test.op, ast.Or)
    for part in node.test.values if either and isinstance(node.test, ast.BoolOp) else [node.test]:
        if not isinstance(part, ast.Compare) or not isinstance(part.ops[0], (ast.Eq, ast.GtE)):
            continue
        if isinstance(part.left, _NAMES) and _why(machine, part.left, frame) == CHANGES:
            key = _key(machine, part, frame)
            if key is not None and _sets_back(machine, node, part.left, frame):
                count = evaluate(machine, part.comparators[0], frame)
                return key, Cycle(EVERY_FEW, "bool", count, restarts=False)
    return None


def _sets_back(machine: Machine, node: ast.If, counted: ast.expr, frame: Frame) -> bool:
    """Whether a body sets a count back to a constant, or a method that it calls on the object whose attribute the count is."""
    if ast.unparse(counted) in _constants(node):
        return True
    if not isinstance(counted, ast.Attribute):
        return False
    owner = ast.unparse(counted.value)
    for called in ast.walk(node):
        func = called.func if isinstance(called, ast.Call) else None
        if isinstance(func, ast.Attribute) and ast.unparse(func.value) == owner:
            method = evaluate(machine, func, frame)
            if isinstance(method, Bound) and isinstance(method.function, Function):
                inside = method.function.node
                if any(f"{one.arg}.{counted.attr}" in _constants(inside) for one in inside.args.args[:1]):
                    return True
    return False


def _constants(node: ast.AST) -> list[str]:
    """What code sets to a constant, as it is written."""
    found = (one for one in ast.walk(node) if isinstance(one, ast.Assign))
    return [ast.unparse(one.targets[0]) for one in found if isinstance(one.value, ast.Constant)]


def asks_for(machine: Machine, test: ast.expr, frame: Frame) -> tuple[Value, ...]:
    """The values that a condition is about, if they are all plain names, attributes and items."""
    return (_key(machine, test, frame) or ("",))[1:]


def _why(machine: Machine, part: ast.expr, frame: Frame) -> str:
    value = evaluate(machine, part, frame)
    return value.why if isinstance(value, Unknown) else ""


def _without_not(test: ast.expr) -> tuple[ast.expr, bool]:
    negated = False
    while isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        test, negated = test.operand, not negated
    return test, negated


def _key(machine: Machine, test: ast.expr, frame: Frame) -> Any:
    """What makes two conditions one: the same code about the same values. None where a call, or an item under any other key, is part of it."""
    plain = _plain(test)
    return None if plain is None else (plain[0], *(evaluate(machine, name, frame) for name in plain[1]))


@lru_cache(4_000)
def _plain(test: ast.expr) -> tuple[str, tuple[ast.expr, ...]] | None:
    """The text of a condition, and the names, the attributes and the items under constant keys in it."""
    parts = list(ast.walk(test))
    if len(parts) > MOST_PARTS or not all(isinstance(part, _PLAIN) for part in parts):
        return None
    if any(isinstance(part, ast.Subscript) and not isinstance(part.slice, ast.Constant) for part in parts):
        return None
    inner = {id(part.value) for part in parts if isinstance(part, (ast.Attribute, ast.Subscript))}
    names = [part for part in parts if isinstance(part, _NAMES) and id(part) not in inner]
    return ast.dump(test), tuple(names)


def _narrow(machine: Machine, name: ast.Name, frame: Frame, fits: Any) -> None:
    value = evaluate(machine, name, frame)
    if isinstance(value, Choice):
        left = tuple(one for one in options(value) if fits(one))
        if left and len(left) < len(value.options):
            _bind(machine, name.id, left[0] if len(left) == 1 else Choice(left), frame)


def _bind(machine: Machine, name: str, value: Value, frame: Frame) -> None:
    holder = frame.holder(name)
    if holder is not None:
        machine.state.write(holder.names, name, value)


def is_none(value: Value) -> bool | None:
    """Whether a value is None."""
    verdicts = {one == NONE if not isinstance(one, Unknown) else None for one in options(value)}
    return verdicts.pop() if len(verdicts) == 1 else None
