"""Statements, but for loops and definitions."""

import ast
from collections.abc import Callable, Sequence
from functools import partial

from ta_lint.dryrun.flow import Flow
from ta_lint.dryrun.machine import conditions, counts
from ta_lint.dryrun.machine.assigning import assign, delete
from ta_lint.dryrun.machine.calling import call, enter, hand_over, leave
from ta_lint.dryrun.machine.frame import Frame
from ta_lint.dryrun.machine.last_batches import SHOWN, used
from ta_lint.dryrun.machine.machine import Machine
from ta_lint.dryrun.machine.operators import binary
from ta_lint.dryrun.machine.raising import Handler, attempt, finish
from ta_lint.dryrun.machine.reach import goes_back
from ta_lint.dryrun.machine.tables import evaluate, executes, run
from ta_lint.dryrun.streams import Stream
from ta_lint.dryrun.values import NONE, Bound, External, Known, Object, Unknown, Value, is_data, options

CHECKING = External("typing.TYPE_CHECKING")


@executes(ast.Expr)
def _expression(machine: Machine, node: ast.Expr, frame: Frame) -> Flow:
    if not isinstance(node.value, ast.Constant):
        is_alone = not machine.program.shows(frame, node)
        if is_alone:
            machine.alone.add(node.value)
        value = evaluate(machine, node.value, frame)
        if is_alone:
            machine.program.dropped(machine, node.value, value)
        if isinstance(value, Bound):  # `optimizer.step` alone: it is not called, and should be
            hand_over(machine, [value.receiver], "a method that is not called", node)
    return Flow.ON


@executes(ast.Pass)
def _pass(machine: Machine, node: ast.Pass, frame: Frame) -> Flow:
    return Flow.ON


@executes(ast.Return)
def _return(machine: Machine, node: ast.Return, frame: Frame) -> Flow:
    value = NONE if node.value is None else evaluate(machine, node.value, frame)
    if node.value is not None:
        used(machine, (value,), node.value, SHOWN)
    frame.returned.append(value)
    return Flow.RETURN


@executes(ast.Break)
def _break(machine: Machine, node: ast.Break, frame: Frame) -> Flow:
    return Flow.BREAK


@executes(ast.Continue)
def _continue(machine: Machine, node: ast.Continue, frame: Frame) -> Flow:
    return Flow.CONTINUE


@executes(ast.Raise)
def _raise(machine: Machine, node: ast.Raise, frame: Frame) -> Flow:
    machine.throw(Unknown("an exception") if node.exc is None else evaluate(machine, node.exc, frame))


@executes(ast.Assert)
def _assert(machine: Machine, node: ast.Assert, frame: Frame) -> Flow:
    evaluate(machine, node.test, frame)
    conditions.assume(machine, node.test, frame, holds=True)
    return Flow.ON


@executes(ast.Global, ast.Nonlocal)
def _outside(machine: Machine, node: ast.Global | ast.Nonlocal, frame: Frame) -> Flow:
    machine.memo.spoil()
    for name in node.names:
        if isinstance(node, ast.Global):
            frame.outside[name] = frame.module
        elif frame.outer is not None:
            frame.outside[name] = frame.outer.holder(name) or frame.outer
    return Flow.ON


@executes(ast.Assign)
def _assign(machine: Machine, node: ast.Assign, frame: Frame) -> Flow:
    value = evaluate(machine, node.value, frame)
    called = node.value.func if isinstance(node.value, ast.Call) else None
    for target in node.targets:
        assign(machine, target, value, frame, called=called)
    return Flow.ON


@executes(ast.AnnAssign)
def _annotated(machine: Machine, node: ast.AnnAssign, frame: Frame) -> Flow:
    if node.value is not None:
        assign(machine, node.target, evaluate(machine, node.value, frame), frame)
    return Flow.ON


@executes(ast.AugAssign)
def _augmented(machine: Machine, node: ast.AugAssign, frame: Frame) -> Flow:
    old = evaluate(machine, node.target, frame)
    assign(
        machine,
        node.target,
        binary(machine, node.op, old, evaluate(machine, node.value, frame), node, in_place=True),
        frame,
    )
    return Flow.ON


@executes(ast.Delete)
def _delete(machine: Machine, node: ast.Delete, frame: Frame) -> Flow:
    for target in node.targets:
        delete(machine, target, frame)
    return Flow.ON


@executes(ast.If)
def _if(machine: Machine, node: ast.If, frame: Frame) -> Flow:
    if isinstance(node.test, (ast.Name, ast.Attribute)) and evaluate(machine, node.test, frame) == CHECKING:
        machine.checking = True
        try:
            return run(machine, node.body, frame)
        finally:
            machine.checking = False
    condition = evaluate(machine, node.test, frame)
    holds = conditions.verdict(machine, condition, node.test, frame)
    if holds is not None:
        return _one_arm(machine, node, holds, frame)

    def arm(holds: bool, body: list[ast.stmt]) -> Callable[[], Flow]:
        def taken() -> Flow:
            conditions.assume(machine, node.test, frame, holds=holds)
            before = len(machine.events)
            flow = run(machine, body, frame)
            if holds and conditions.holds_once(condition):
                machine.once(before, some_pass=True)
            return flow

        return taken

    if isinstance(node.body[-1], ast.Break) and not node.orelse and machine.passes:
        _limit(machine, node.test, frame)
        machine.emit("way out", node.test, of=conditions.asks_for(machine, node.test, frame))
    arms = [arm(True, node.body), arm(False, node.orelse)]
    waits = conditions.comes_round(machine, node.test, frame) if machine.passes else None
    cycle, is_only = None, False
    if waits is not None:
        is_only = conditions.cycle_of(machine, node.test, frame) is not None
        cycle = conditions.some_cycle(machine, node.test, frame)
    elif machine.passes and (anew := conditions.counts_anew(machine, node, frame)) is not None:
        waits, cycle = anew
        is_only = conditions.cycle_of(machine, node.test, frame) is not None
    elif machine.passes and isinstance(condition, counts.Cycle) and isinstance(node.test, ast.Call):
        waits, cycle, is_only = condition, condition, True  # a function of the program has asked
    if waits is not None:
        if cycle is not None:
            machine.emit("cycle", node.test, cycle=cycle, waits=waits, is_only=is_only)
        arms = [partial(machine.every_few, waits, one) for one in arms]
    return machine.branch(arms)


def _one_arm(machine: Machine, node: ast.If, holds: bool, frame: Frame) -> Flow:
    """What runs where the condition is known; a backward pass of the other arm alone is one that the program has switched off."""
    taken, left = (node.body, node.orelse) if holds else (node.orelse, node.body)
    if left and goes_back(machine, frame.file, left) and not goes_back(machine, frame.file, taken):
        machine.emit("switched off", node)
    return run(machine, taken, frame)


def _limit(machine: Machine, test: ast.expr, frame: Frame) -> None:
    """`if index > 10: break`, in each pass of a loop that `index` counts."""
    now = machine.passes[-1]
    if not isinstance(test, ast.Compare) or not isinstance(test.left, ast.Name) or machine.doubt > now.doubt:
        return
    counted = evaluate(machine, test.left, frame)
    if isinstance(test.ops[0], (ast.Gt, ast.GtE, ast.Eq)) and getattr(counted, "why", "") == counts.COUNT:
        counts.limit_passes(machine, test, test.comparators[0], now.over)


@executes(ast.Match)
def _match(machine: Machine, node: ast.Match, frame: Frame) -> Flow:
    subject = evaluate(machine, node.subject, frame)
    arms: list[Callable[[], Flow]] = []
    for case in node.cases:
        verdict = _matches(machine, case.pattern, subject, frame)
        if verdict is False:
            continue

        def arm(case: ast.match_case = case) -> Flow:
            for name in _captures(case.pattern):
                machine.state.write(
                    frame.names,
                    name,
                    Unknown("a part of what is matched") if name != _whole(case.pattern) else subject,
                )
            if case.guard is not None:
                evaluate(machine, case.guard, frame)
            return run(machine, case.body, frame)

        if verdict is True and case.guard is None:
            if not arms:
                return arm()
            arms.append(arm)
            break
        arms.append(arm)
    else:
        arms.append(lambda: Flow.ON)
    return machine.branch(arms)


def _matches(machine: Machine, pattern: ast.pattern, subject: Value, frame: Frame) -> bool | None:
    if isinstance(pattern, ast.MatchValue):
        wanted = evaluate(machine, pattern.value, frame)
        if isinstance(wanted, Known) and isinstance(subject, Known):
            return bool(wanted.value == subject.value)
        return True if wanted is subject else None
    if isinstance(pattern, ast.MatchSingleton):
        return pattern.value is subject.value if isinstance(subject, Known) else None
    if isinstance(pattern, ast.MatchOr):
        verdicts = [_matches(machine, one, subject, frame) for one in pattern.patterns]
        return True if True in verdicts else None if None in verdicts else False
    if isinstance(pattern, ast.MatchAs) and pattern.pattern is None:
        return True
    return None


def _captures(pattern: ast.pattern) -> list[str]:
    return [
        name
        for part in ast.walk(pattern)
        if (name := getattr(part, "name", None) or getattr(part, "rest", None))
    ]


def _whole(pattern: ast.pattern) -> str | None:
    return pattern.name if isinstance(pattern, ast.MatchAs) else None


@executes(ast.Try, ast.TryStar)
def _try(machine: Machine, node: ast.Try, frame: Frame) -> Flow:
    """The body succeeds, and a handler runs perhaps; if the body certainly raises, the handler that fits runs."""

    def handler(one: ast.ExceptHandler) -> Handler:
        def handled(value: Value) -> Flow:
            if one.name is not None:
                machine.state.write(frame.names, one.name, value)
            return run(machine, one.body, frame)

        return Handler(None if one.type is None else evaluate(machine, one.type, frame), handled)

    def body() -> Flow:
        flow = run(machine, node.body, frame)
        return run(machine, node.orelse, frame) if flow is Flow.ON else flow

    def guarded() -> Flow:
        if not node.handlers:
            return body()
        doubt = machine.doubt
        flow = attempt(machine, body, [handler(one) for one in node.handlers], anywhere=True)
        if flow is Flow.ON and machine.doubt > doubt and _all_leave(node.handlers):
            machine.doubt -= 1
        return flow

    if not node.finalbody:
        return guarded()
    return finish(machine, guarded, lambda: run(machine, node.finalbody, frame))


def _all_leave(handlers: Sequence[ast.ExceptHandler]) -> bool:
    """Whether what follows a `try` is no less certain for its handlers, since those that run do not come back."""
    return any(
        isinstance(last, (ast.Return, ast.Break, ast.Continue))
        for handler in handlers
        for last in handler.body[-1:]
    )


@executes(ast.With, ast.AsyncWith)
def _with(machine: Machine, node: ast.With, frame: Frame) -> Flow:
    return _within(machine, node, 0, frame)


def _within(machine: Machine, node: ast.With, index: int, frame: Frame) -> Flow:
    """The body, inside of the context managers from this one on."""
    if index == len(node.items):
        return run(machine, node.body, frame)
    item = node.items[index]
    manager = evaluate(machine, item.context_expr, frame)
    managers = [one for one in options(manager) if isinstance(one, Object)]
    if len(managers) > 1:
        return _within_one_of(machine, node, index, frame, managers)
    if isinstance(manager, Stream):  # made by `contextlib.contextmanager`
        return _around(machine, node, index, frame, manager)
    entered = enter(machine, manager, item.context_expr) if isinstance(manager, Object) else manager
    if item.optional_vars is not None:
        assign(machine, item.optional_vars, entered, frame)
    if not isinstance(manager, Object):
        in_sight = is_data(manager) and machine.modes["in sight"]
        with machine.switched("in sight", in_sight):
            return _within(machine, node, index + 1, frame)

    def left() -> Flow:
        leave(machine, manager, item.context_expr)
        return Flow.ON

    def inside() -> Flow:
        return finish(machine, lambda: _within(machine, node, index + 1, frame), left)

    caught = manager.cls.find("__suppressed__")
    if caught is None:
        return inside()
    kinds = call(machine, caught, [manager], {}, item.context_expr)
    return attempt(machine, inside, [Handler(kinds, lambda _: Flow.ON)], anywhere=False)


def _within_one_of(
    machine: Machine, node: ast.With, index: int, frame: Frame, managers: list[Object]
) -> Flow:
    """The body, inside of one of several context managers."""
    item, before = node.items[index], dict(machine.modes)
    entered = machine.choose([partial(enter, machine, one, item.context_expr) for one in managers])
    if item.optional_vars is not None:
        assign(machine, item.optional_vars, entered, frame)

    def left() -> Flow:
        def leaving(manager: Object) -> Flow:
            leave(machine, manager, item.context_expr)
            return Flow.ON

        flow = machine.branch([partial(leaving, one) for one in managers])
        for name in before.keys() & machine.modes.keys():
            machine.state.write(machine.modes, name, before[name])
        return flow

    return finish(machine, lambda: _within(machine, node, index + 1, frame), left)


def _around(machine: Machine, node: ast.With, index: int, frame: Frame, manager: Stream) -> Flow:
    """The body, run where the generator of the context manager yields."""
    ended: list[Flow] = []

    def body(value: Value) -> Flow:
        if ended:
            return Flow.ON
        target = node.items[index].optional_vars
        machine.frames.append(frame)
        try:
            if target is not None:
                assign(machine, target, value, frame)
            ended.append(_within(machine, node, index + 1, frame))
        finally:
            machine.frames.pop()
        return Flow.ON

    manager.each(body)
    return ended[0] if ended else Flow.ON


@executes(ast.Import)
def _import(machine: Machine, node: ast.Import, frame: Frame) -> Flow:
    for alias in node.names:
        module = machine.program.imported(machine, frame.file, alias.name)
        first = alias.name.partition(".")[0]
        if alias.asname is None and "." in alias.name:
            module = machine.program.imported(machine, frame.file, first)
        machine.state.write(frame.names, alias.asname or first, module)
    return Flow.ON


@executes(ast.ImportFrom)
def _import_from(machine: Machine, node: ast.ImportFrom, frame: Frame) -> Flow:
    name = "." * node.level + (node.module or "")
    for alias in node.names:
        if alias.name == "*":
            for key, value in machine.program.exported(machine, frame.file, name):
                machine.state.write(frame.names, key, value)
            continue
        value = machine.program.member(machine, frame.file, name, alias.name)
        machine.state.write(frame.names, alias.asname or alias.name, value)
    return Flow.ON
