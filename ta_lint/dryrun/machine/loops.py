"""Loops. Each runs at least twice: a first pass, and a settled one that stands for all later ones."""

import ast
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from ta_lint.dryrun.flow import Flow
from ta_lint.dryrun.machine.amounts import gone_over, left, of_steps
from ta_lint.dryrun.machine.assigning import assign
from ta_lint.dryrun.machine.conditions import decide
from ta_lint.dryrun.machine.counts import BOUND, CHANGES, COUNT, Length
from ta_lint.dryrun.machine.frame import Frame, Pass
from ta_lint.dryrun.machine.iteration import each, elements, exact, in_two
from ta_lint.dryrun.machine.machine import Machine
from ta_lint.dryrun.machine.tables import evaluate, executes, run
from ta_lint.dryrun.streams import Consumer, Stream
from ta_lint.dryrun.values import Choice, Known, Mergeable, Object, Place, Unknown, Value

PASSES = 2
DEEP = 3
"""Inside so many loops, a loop runs for its first element and once for all others, and only once in their first passes: otherwise each loop of a
nest would double the work."""


@executes(ast.For, ast.AsyncFor)
def _for(machine: Machine, node: ast.For, frame: Frame) -> Flow:
    over = evaluate(machine, node.iter, frame)
    gone_over(machine, over, node.iter)
    given = found = elements(machine, over, node.iter)
    few = found.few if isinstance(found, Stream) and not _has_loop(node) else None
    if few is not None:
        found = few, None
    source = over if isinstance(found, tuple) else found.of or found
    if len(machine.passes) >= DEEP and isinstance(found, tuple):
        found = in_two(found)
    loop = Repetition(machine, node, frame, source, exact=exact(found))
    counted = given if isinstance(given, Stream) else over
    if isinstance(counted, Object) and BOUND in counted.fields:
        loop.runs_up_to(counted.fields[BOUND], node.iter)
    elif isinstance(given, Stream) and given.of is not None:
        loop.goes_over(given.of, node.iter)
    elif isinstance(over, Unknown) and over.type is None:
        loop.goes_over(over, node.iter)

    def consume(element: Value) -> Flow:
        return loop.run(lambda: assign(machine, node.target, element, frame), node.body)

    flow = each(found, consume) if few is None or not loop.now.exact else loop.unroll(few, consume)
    return loop.end(flow, node.orelse)


@executes(ast.While)
def _while(machine: Machine, node: ast.While, frame: Frame) -> Flow:
    loop = Repetition(machine, node, frame, None)
    counter = _counter(node.test)
    if counter is not None:
        loop.now.bound = evaluate(machine, counter.comparators[0], frame)
    flow = Flow.ON
    endless = False
    for number in range(PASSES):
        holds = decide(machine, node.test, frame)
        if holds is False:
            break
        endless = holds is True
        before = None if counter is None or number else evaluate(machine, counter.left, frame)
        flow = loop.run(lambda: None, node.body)
        if counter is not None and before is not None:
            loop.counts(before, evaluate(machine, counter.left, frame), node.test)
        if flow is not Flow.ON:
            break
    if endless and flow is Flow.ON and decide(machine, node.test, frame) is True:
        flow = Flow.GONE  # it ends by `break` alone
    return loop.end(flow, node.orelse)


def _counter(test: ast.expr) -> ast.Compare | None:
    """The condition of a loop that goes on while one thing is less than another."""
    plain = (ast.Name, ast.Attribute)
    if isinstance(test, ast.Compare) and isinstance(test.ops[0], (ast.Lt, ast.LtE)):
        return test if isinstance(test.left, plain) and isinstance(test.comparators[0], plain) else None
    return None


@lru_cache(4096)
def _has_loop(node: ast.For) -> bool:
    """Whether a loop has a loop inside."""
    return any(
        isinstance(part, (ast.For, ast.AsyncFor, ast.While))
        for statement in node.body
        for part in ast.walk(statement)
    )


class Repetition:
    """A loop while it runs."""

    def __init__(
        self, machine: Machine, node: ast.AST, frame: Frame, over: Value | None, *, exact: bool = False
    ) -> None:
        self.machine = machine
        self.frame = frame
        self.doubt = machine.doubt
        self.once = not exact and sum(one.number == 0 for one in machine.passes) >= DEEP
        """Whether a single pass will do, since the loops around it come here again."""
        self.bound: set[tuple[int, Any]] = set()
        """What the loop itself assigns in a pass."""
        self.now = Pass(
            Place(frame.file, node), -1, over, exact, machine.state.mark, doubt=machine.doubt, site=frame.site,
            began=len(machine.events), frame=frame,
        )  # fmt: skip

    def unroll(self, numbers: tuple[Value, ...], consume: Consumer) -> Flow:
        """Take each number by itself, unless what the first pass calls has a loop: then one stands for all others."""
        before = self.machine.passes_run
        flow = consume(numbers[0])
        if self.machine.passes_run > before + 1:
            self.now.exact, numbers = False, (numbers[0], Unknown(COUNT, "int"))
        for number in numbers[1:]:
            if flow is not Flow.ON:
                break
            flow = consume(number)
        return flow

    def runs_up_to(self, bound: Value, node: ast.expr) -> None:
        """It takes this number of passes."""
        self.now.bound = bound
        self.machine.emit("bound", node, loop=self.now.loop, bound=bound)

    def counts(self, before: Value, after: Value, node: ast.expr) -> None:
        """What a loop compares with its bound was the one before a pass, and is the other after it: one by one it takes so many passes. A
        loop inside it may count too, then it takes fewer.
        """
        if _is_next(before, after) and self.now.bound is not None:
            self.runs_up_to(self.now.bound, node)

    def goes_over(self, over: Value, node: ast.expr) -> None:
        """It takes a pass for each element of this."""
        self.machine.emit("bound", node, over, loop=self.now.loop, bound=Length(over))

    def run(self, bind: Callable[[], None], body: list[ast.stmt]) -> Flow:
        """One more pass, and yet another where the settled one ends otherwise than it begins. `bind` assigns what the loop goes over."""
        if self.once and self.now.number == 0:
            return Flow.ON
        flow = self._pass(bind, body)
        if flow is Flow.ON and self.now.settled and self._still_changes():
            flow = self._pass(bind, body)
        return flow

    def _pass(self, bind: Callable[[], None], body: list[ast.stmt]) -> Flow:
        machine, now = self.machine, self.now
        now.number += 1
        machine.passes_run += 1
        if now.settled:
            self._settle()
        now.mark = machine.state.mark
        now.continues, now.inside, now.waits, now.events = [], set(), None, len(machine.events)
        machine.passes.append(now)
        machine.frames.append(self.frame)  # a generator that gives the elements is above it otherwise
        try:
            bind()
            self.bound = set(machine.state.changes(now.mark))
            flow = run(machine, body, self.frame)
            if flow in (Flow.ON, Flow.CONTINUE, Flow.GONE):
                machine.state.meet(now.mark, flow, now.continues)
                if flow is not Flow.GONE or now.continues:
                    flow = Flow.ON
                    machine.program.passed(machine, now)
            elif now.number == 0 and not now.continues:
                machine.ends(now)
        finally:
            machine.frames.pop()
            machine.passes.pop()
            machine.doubt = self.doubt
        return flow

    def _settle(self) -> None:
        """Numbers that the last pass has changed differ from pass to pass."""
        state = self.machine.state
        for store, key, old, new in state.changes(self.now.mark).values():
            if (
                isinstance(old, Known)
                and isinstance(new, Known)
                and old != new
                and _counts(old)
                and _counts(new)
            ):
                state.write(store, key, self._changing(old, new))

    def _changing(self, old: Known, new: Known) -> Unknown:
        """A number that a pass has changed, which is another one in each."""
        counts = _counts(old) and _counts(new)
        counted = of_steps(self.machine, self.now, new.value - old.value) if counts else None
        return Unknown(CHANGES, type(new.value).__name__, amount=counted)

    def _still_changes(self) -> bool:
        """Whether the pass has changed a constant that it began with; what becomes another constant differs from pass to pass."""
        state, found = self.machine.state, False
        for at, (store, key, old, new) in state.changes(self.now.mark).items():
            if isinstance(new, Mergeable):
                may_end_it = isinstance(self.now.loop.node, ast.While)
                changed = not (may_end_it or new.is_settled(old if isinstance(old, Mergeable) else None))
            else:
                constant = isinstance(old, Known) and isinstance(new, (Known, Unknown, Choice))
                changed = constant and old != new
            if changed and at not in self.bound and at[0] not in self.now.inside:
                found = True
                if isinstance(new, Known):
                    state.write(store, key, self._changing(old, new))
        return found

    def end(self, flow: Flow, orelse: list[ast.stmt]) -> Flow:
        """What comes after the loop, which ended so."""
        machine, now = self.machine, self.now
        left(machine, now)
        breaks = now.breaks
        if flow is Flow.RETURN and breaks:
            machine.leave(Flow.RETURN)
            flow = Flow.GONE
        if flow is Flow.RETURN:
            return flow
        broke = flow is Flow.BREAK
        if flow is Flow.ON and orelse:
            machine.doubt += bool(breaks)
            flow = run(machine, orelse, self.frame)
            machine.doubt = self.doubt
            if flow not in (Flow.ON, Flow.GONE) and breaks:
                machine.leave(flow)
                flow = Flow.GONE
        if breaks:
            machine.state.meet(now.start, flow, breaks)
            return Flow.ON
        return Flow.ON if broke else flow


def _counts(known: Known) -> bool:
    return isinstance(known.value, (int, float)) and not isinstance(known.value, bool)


def _is_next(before: Value, after: Value) -> bool:
    """Whether one number is the other and one more."""
    if not (isinstance(before, Known) and isinstance(after, Known) and _counts(before) and _counts(after)):
        return False
    return bool(after.value - before.value == 1)
