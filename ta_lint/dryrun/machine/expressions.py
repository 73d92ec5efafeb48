"""Expressions, but for lambdas."""

import ast
import operator
from collections.abc import Callable
from typing import Any

from ta_lint.dryrun.flow import Flow
from ta_lint.dryrun.machine import library
from ta_lint.dryrun.machine.asked import asked_of_variable
from ta_lint.dryrun.machine.assigning import assign
from ta_lint.dryrun.machine.batches import cuts_out
from ta_lint.dryrun.machine.call import Call
from ta_lint.dryrun.machine.calling import ANY, Stopped, call, native
from ta_lint.dryrun.machine.comprehensions import INSIDE, MOST_ENTRIES
from ta_lint.dryrun.machine.conditions import assume, decide, is_none
from ta_lint.dryrun.machine.counts import Cycle
from ta_lint.dryrun.machine.frame import Frame
from ta_lint.dryrun.machine.iteration import collected, each, elements
from ta_lint.dryrun.machine.last_batches import compared
from ta_lint.dryrun.machine.machine import Machine
from ta_lint.dryrun.machine.objects import attribute, boolean, item, key_of, part_of, truth
from ta_lint.dryrun.machine.operators import LARGEST, binary
from ta_lint.dryrun.machine.tables import evaluate, evaluates
from ta_lint.dryrun.sources import read_of, text
from ta_lint.dryrun.state import ABSENT
from ta_lint.dryrun.values import (
    NONE,
    REST,
    TRUE,
    Choice,
    Class,
    External,
    Known,
    Native,
    Object,
    OnDemand,
    Sequence,
    Table,
    Unknown,
    Value,
    join,
    joined,
)


@evaluates(ast.Constant)
def _constant(machine: Machine, node: ast.Constant, frame: Frame) -> Value:
    return Known(node.value)


@evaluates(ast.Name)
def _name(machine: Machine, node: ast.Name, frame: Frame) -> Value:
    name, memo = node.id, machine.memo
    if name in frame.names and name not in frame.outside:
        holder: Frame | None = frame
    else:
        holder = frame.holder(name)
    if holder is not None and name in holder.names:
        value = holder.names[name]
        if value.__class__ is OnDemand:
            value = machine.program.demanded(machine, holder.names, name)
        if memo.recordings and holder.born < memo.recordings[-1].born:
            memo.read(holder.names, name, value, holder.born)
        return value
    if memo.recordings:
        memo.read(frame.module.names, name, ABSENT, frame.module.born)
    return machine.program.unbound(machine, name, frame.module)  # type: ignore[no-any-return]


@evaluates(ast.JoinedStr)
def _formatted(machine: Machine, node: ast.JoinedStr, frame: Frame) -> Value:
    pieces: list[Value] = []
    for part in node.values:
        value = evaluate(machine, part.value if isinstance(part, ast.FormattedValue) else part, frame)
        if isinstance(value, Object) and isinstance(shown := value.cls.find("__shown__"), Native):
            native(shown, Call(machine, node, [value]))
        is_formatted = isinstance(part, ast.FormattedValue) and (part.format_spec or part.conversion != -1)
        long = isinstance(value, Known) and isinstance(value.value, str) and len(value.value) >= LARGEST
        plain = not (isinstance(value, Known) and (is_formatted or long))
        pieces.append(value if plain else Unknown("a formatted string", "str"))
    return text(*pieces)


@evaluates(ast.FormattedValue)
def _part(machine: Machine, node: ast.FormattedValue, frame: Frame) -> Value:
    evaluate(machine, node.value, frame)
    return Unknown("a formatted string", "str")


@evaluates(ast.Tuple, ast.List, ast.Set)
def _sequence(machine: Machine, node: ast.Tuple | ast.List | ast.Set, frame: Frame) -> Value:
    cls = (
        library.TUPLE
        if isinstance(node, ast.Tuple)
        else library.LIST
        if isinstance(node, ast.List)
        else library.SET
    )
    if len(node.elts) > MOST_ENTRIES:
        return Sequence(cls, (), evaluate(machine, node.elts[0], frame), machine.place(node))
    items: list[Value] = []
    rest: Value | None = None
    for part in node.elts:
        if isinstance(part, ast.Starred):
            more, further = collected(machine, evaluate(machine, part.value, frame), part)
            items.extend(more)
            rest = further if rest is None else rest if further is None else join(rest, further)
        else:
            items.append(evaluate(machine, part, frame))
    return Sequence(cls, tuple(items), rest, machine.place(node))


@evaluates(ast.Dict)
def _dict(machine: Machine, node: ast.Dict, frame: Frame) -> Value:
    table = Table(library.DICT, machine.place(node))
    if len(node.keys) > MOST_ENTRIES:
        table.fields[REST] = evaluate(machine, node.values[0], frame)
        return table
    for key_node, value_node in zip(node.keys, node.values, strict=True):
        value = evaluate(machine, value_node, frame)
        if key_node is None:
            if isinstance(value, Table):
                table.fields.update(value.fields)
            else:
                table.fields[REST] = Unknown("a key that is not known")
            continue
        key = evaluate(machine, key_node, frame)
        at = key.value if isinstance(key, Known) else REST
        table.fields[at] = (
            value if at is not REST or REST not in table.fields else join(table.fields[REST], value)
        )
    return table


@evaluates(ast.Attribute)
def _attribute(machine: Machine, node: ast.Attribute, frame: Frame) -> Value:
    value = evaluate(machine, node.value, frame)
    found = attribute(machine, value, node.attr, node)
    if isinstance(found, Unknown) and found.of is value and isinstance(value, Object) and frame.site is None:
        asked = asked_of_variable(machine, frame, node)
        # it gets it from out of sight
        guessed = machine.program.guess(machine, node.attr, "", asked, of=value)
        if guessed is None and isinstance(node.ctx, ast.Store):
            value.fields[node.attr] = found  # what is added to is there
        if guessed is not None:
            value.fields[node.attr] = guessed
            machine.program.is_part(guessed, value)
            return guessed  # type: ignore[no-any-return]
    return found


@evaluates(ast.Subscript)
def _subscript(machine: Machine, node: ast.Subscript, frame: Frame) -> Value:
    return item(machine, evaluate(machine, node.value, frame), evaluate(machine, node.slice, frame), node)


@evaluates(ast.Slice)
def _slice(machine: Machine, node: ast.Slice, frame: Frame) -> Value:
    parts = [
        NONE if part is None else evaluate(machine, part, frame)
        for part in (node.lower, node.upper, node.step)
    ]
    cuts_out(machine, parts[0])
    if all(isinstance(part, Known) for part in parts):
        return Slice(slice(*(part.value for part in parts)))  # type: ignore[attr-defined]
    return Unknown("a slice", "slice")


class Slice(Known):
    """A slice of constants, which Python cannot hash before 3.12."""

    __slots__ = ()

    def __hash__(self) -> int:
        return hash((self.value.start, self.value.stop, self.value.step))


@evaluates(ast.IfExp)
def _either(machine: Machine, node: ast.IfExp, frame: Frame) -> Value:
    holds = decide(machine, node.test, frame)
    if holds is not None:
        return evaluate(machine, node.body if holds else node.orelse, frame)

    def arm(holds: bool, part: ast.expr) -> Callable[[], Value]:
        def taken() -> Value:
            assume(machine, node.test, frame, holds=holds)
            return evaluate(machine, part, frame)

        return taken

    return machine.choose([arm(True, node.body), arm(False, node.orelse)])


@evaluates(ast.BoolOp)
def _and_or(machine: Machine, node: ast.BoolOp, frame: Frame) -> Value:
    stops = isinstance(node.op, ast.Or)
    return _from(machine, node.values, 0, stops, frame)


def _from(machine: Machine, parts: list[ast.expr], index: int, stops: bool, frame: Frame) -> Value:
    value = evaluate(machine, parts[index], frame)
    if index == len(parts) - 1:
        return value
    if stops and isinstance(value, Cycle):  # it holds in other passes too
        value = Unknown(value.why, value.type)
    verdict = truth(machine, value, parts[index])
    if verdict is stops:
        return value
    if verdict is not None:
        return _from(machine, parts, index + 1, stops, frame)
    other = machine.choose([lambda: _from(machine, parts, index + 1, stops, frame)])
    if isinstance(other, Known) and isinstance(other.value, bool) and other.value is not stops:
        return Unknown("nobody knows", "bool")
    return (
        _stopped(value, stops)
        if isinstance(value, Unknown) and isinstance(other, Unknown)
        else join(_stopped(value, stops), other)
    )


def _stopped(value: Value, stops: bool) -> Value:
    """What `value` is where `or` stops at it: none of its options that are false."""
    if stops and isinstance(value, Choice):
        left = [one for one in value.options if not (isinstance(one, Known) and not one.value)]
        return joined(left) if left else value
    return value


_SIGNS: dict[type[ast.AST], Callable[[Any], Any]] = {
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Invert: operator.invert,
}


@evaluates(ast.UnaryOp)
def _unary(machine: Machine, node: ast.UnaryOp, frame: Frame) -> Value:
    value = evaluate(machine, node.operand, frame)
    if isinstance(node.op, ast.Not):
        verdict = truth(machine, value, node)
        return boolean(None if verdict is None else not verdict)
    if isinstance(value, Known):
        compute = _SIGNS[type(node.op)]
        try:
            return Known(compute(value.value))
        except TypeError:
            return Unknown("it cannot be computed")
    method = library.find_method(
        value, {ast.USub: "__neg__", ast.UAdd: "__pos__", ast.Invert: "__invert__"}[type(node.op)]
    )
    return value if method is None else call(machine, method, [value], {}, node)


@evaluates(ast.BinOp)
def _binary(machine: Machine, node: ast.BinOp, frame: Frame) -> Value:
    return binary(
        machine, node.op, evaluate(machine, node.left, frame), evaluate(machine, node.right, frame), node
    )


@evaluates(ast.Compare)
def _compare(machine: Machine, node: ast.Compare, frame: Frame) -> Value:
    left = evaluate(machine, node.left, frame)
    result: Value = TRUE
    for kind, part in zip(node.ops, node.comparators, strict=True):
        right = evaluate(machine, part, frame)
        result = _compared(machine, kind, left, right, node)
        if isinstance(result, Known) and not result.value:
            return result
        left = right
    return result


def _compared(machine: Machine, kind: ast.cmpop, left: Value, right: Value, node: ast.AST) -> Value:
    if isinstance(kind, (ast.Is, ast.IsNot)):
        same = _is_same(left, right)
        return boolean(None if same is None else same is isinstance(kind, ast.Is))
    if isinstance(kind, (ast.In, ast.NotIn)):
        inside = _is_in(machine, left, right, node)
        return boolean(None if inside is None else inside is isinstance(kind, ast.In))
    if isinstance(kind, (ast.Eq, ast.NotEq)) and (left == NONE or right == NONE):
        same = _is_same(left, right)
        return boolean(None if same is None else same is isinstance(kind, ast.Eq))
    if isinstance(kind, (ast.Eq, ast.NotEq)) and isinstance(left, Class) and isinstance(right, Class):
        return boolean((left is right) is isinstance(kind, ast.Eq))
    if isinstance(kind, (ast.Lt, ast.LtE, ast.Gt, ast.GtE)):
        compared(machine, left, right, node)
    return binary(machine, kind, left, right, node)


def _is_same(left: Value, right: Value) -> bool | None:
    for one, other in ((left, right), (right, left)):
        if one == NONE:
            return is_none(other)
    if isinstance(left, Known) and isinstance(right, Known):
        return left == right
    if isinstance(left, Object) and isinstance(right, Object):
        return left is right
    return None


def _is_in(machine: Machine, left: Value, right: Value, node: ast.AST) -> bool | None:
    if getattr(left, "why", "") == library.WITHIN and isinstance(right, Sequence) and right.rest is None:
        too_short = [isinstance(one, Known) and str(one.value).count(".") < 2 for one in right.items]
        return False if all(too_short) else None
    if isinstance(right, Known) and isinstance(left, Known):
        try:
            return left.value in right.value
        except TypeError:
            return None
    if isinstance(right, Table):
        if isinstance(left, Known) and left.value in right.fields:
            return True
        return False if isinstance(left, Known) and right.rest is None else None
    if isinstance(right, Sequence):
        if left in right.items:
            return True
        constants = isinstance(left, Known) and all(isinstance(one, Known) for one in right.items)
        return False if constants and right.rest is None else None
    if (read := read_of(right)) is not None:
        read.file.looked_for.update(key_of(left) or ())
    contains = library.find_method(right, "__contains__")
    if contains is not None:
        return truth(machine, call(machine, contains, [right, left], {}, node), node)
    return None


@evaluates(ast.NamedExpr)
def _walrus(machine: Machine, node: ast.NamedExpr, frame: Frame) -> Value:
    value = evaluate(machine, node.value, frame)
    target = frame
    while target.consumer is INSIDE and target.outer is not None:
        target = target.outer
    assign(machine, node.target, value, target)
    return value


@evaluates(ast.Starred, ast.Await)
def _inner(machine: Machine, node: ast.Starred | ast.Await, frame: Frame) -> Value:
    return evaluate(machine, node.value, frame)


@evaluates(ast.Yield)
def _yield(machine: Machine, node: ast.Yield, frame: Frame) -> Value:
    value = NONE if node.value is None else evaluate(machine, node.value, frame)
    _hand(frame, value)
    return Unknown("what is sent")


@evaluates(ast.YieldFrom)
def _yield_from(machine: Machine, node: ast.YieldFrom, frame: Frame) -> Value:
    def hand(value: Value) -> Flow:
        _hand(frame, value)
        return Flow.ON

    each(elements(machine, evaluate(machine, node.value, frame), node), hand)
    return NONE


def _hand(frame: Frame, value: Value) -> None:
    """Give a yielded value to who goes over the generator."""
    owner: Frame | None = frame
    while owner is not None and (owner.consumer is None or owner.consumer is INSIDE):
        owner = owner.outer
    if owner is not None and owner.consumer is not None:
        flow = owner.consumer(value)
        if flow is not Flow.ON:
            raise Stopped(flow)


@evaluates(ast.Call)
def _call(machine: Machine, node: ast.Call, frame: Frame) -> Value:
    function = evaluate(machine, node.func, frame)
    if isinstance(node.func, ast.Name) and node.func.id == "super" and not node.args:
        return _super(frame)
    args: list[Value] = []
    kwargs: dict[str, Value] = {}
    loose = False
    for part in node.args:
        if isinstance(part, ast.Starred):
            items, rest = collected(machine, evaluate(machine, part.value, frame), part)
            args.extend(items)
            if rest is not None:
                args.append(rest)
                loose = True
        else:
            args.append(evaluate(machine, part, frame))
    for keyword in node.keywords:
        value = evaluate(machine, keyword.value, frame)
        if keyword.arg is not None:
            kwargs[keyword.arg] = value
        else:
            known, rest = _keywords(machine, value, keyword)
            kwargs.update(known)
            if rest is not None:
                loose = True
                kwargs.update({ANY: rest} if not isinstance(rest, Unknown) else {})
    if function is library.SUPER and len(args) == 2:
        return _super_of(frame, *args)
    if isinstance(function, (Unknown, External)):
        asked = [name for name, value in kwargs.items() if value == TRUE]
        called = getattr(node.func, "attr", getattr(node.func, "id", ""))
        machine.program.acts(machine, [called, *asked], node)
    return call(machine, function, args, kwargs, node, loose=loose)


def _keywords(machine: Machine, value: Value, node: ast.AST) -> tuple[dict[str, Value], Value | None]:
    """The arguments that `**value` gives, and what any further one is."""
    if isinstance(value, Table):
        return {key: one for key, one in value.entries() if isinstance(key, str)}, value.rest
    mapping = isinstance(value, Object) and value.cls.find("__getitem__") is not None
    return {}, item(machine, value, Unknown("a key", "str"), node) if mapping else part_of(
        value, "further arguments"
    )


def _super(frame: Frame) -> Value:
    """`super()`, by the class whose method this is and its first argument."""
    inner: Frame | None = frame
    while inner is not None and inner.receiver is None:
        inner = inner.outer
    if inner is None or inner.owner is None or inner.receiver is None:
        return Unknown("super() outside of a method")
    return Object(library.SUPER, None, {"class": inner.owner, "object": inner.receiver})


def _super_of(frame: Frame, cls: Value, receiver: Value) -> Value:
    """`super(Own, self)`; a name of the class that nobody knows is that of the method's."""
    if not isinstance(cls, Class):
        return _super(frame)
    own = receiver if isinstance(receiver, Class) else library.class_of(receiver)
    if own is None or not own.is_a(cls):
        return Unknown("super() of another class")
    return Object(library.SUPER, None, {"class": cls, "object": receiver})
