"""Loops. Each runs at least twice: a first pass, and a settled one that stands for all later ones."""

import ast
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from ta_lint.dryrun.flow import Flow
from ta_lint.dryrun.machine.assigning import assign
from ta_lint.dryrun.machine.conditions import decide
from ta_lint.dryrun.machine.counts import CHANGES
from ta_lint.dryrun.machine.frame import Frame, Pass
from ta_lint.dryrun.machine.iteration import each, elements, exact
from ta_lint.dryrun.machine.machine import Machine
from ta_lint.dryrun.machine.tables import evaluate, executes, run
from ta_lint.dryrun.values import Choice, Known, Mergeable, Place, Stream, Unknown, Value

PASSES = 2


@executes(ast.For, ast.AsyncFor)
def _for(machine: Machine, node: ast.For, frame: Frame) -> Flow:
    over = evaluate(machine, node.iter, frame)
    found = elements(machine, over, node.iter)
    if isinstance(found, Stream) and found.few is not None and not _has_loop(node):
        found = found.few, None
    loop = Repetition(
        machine,
        node,
        frame,
        over if isinstance(found, tuple) or found.of is None else found.of,
        exact=exact(found),
    )

    def consume(element: Value) -> Flow:
        return loop.run(lambda: assign(machine, node.target, element, frame), node.body)

    flow = each(found, consume)
    return loop.end(flow, node.orelse)


@executes(ast.While)
def _while(machine: Machine, node: ast.While, frame: Frame) -> Flow:
    loop = Repetition(machine, node, frame, None)
    flow = Flow.ON
    endless = False
    for _ in range(PASSES):
        holds = decide(machine, node.test, frame)
        if holds is False:
            break
        endless = holds is True
        flow = loop.run(lambda: None, node.body)
        if flow is not Flow.ON:
            break
    if endless and flow is Flow.ON and decide(machine, node.test, frame) is True:
        flow = Flow.GONE  # it ends by `break` alone
    return loop.end(flow, node.orelse)


@lru_cache(4096)
def _has_loop(node: ast.For) -> bool:
    """Whether a loop has a loop inside."""
    return any(
        isinstance(part, ast.For | ast.AsyncFor | ast.While)
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
        self.bound: set[tuple[int, Any]] = set()
        """What the loop itself assigns in a pass."""
        self.now = Pass(Place(frame.file, node), -1, over, exact, machine.state.mark, site=frame.site)

    def run(self, bind: Callable[[], None], body: list[ast.stmt]) -> Flow:
        """One more pass, and yet another where the settled one ends otherwise than it begins. `bind` assigns what the loop goes over."""
        flow = self._pass(bind, body)
        if flow is Flow.ON and self.now.settled and self._still_changes():
            flow = self._pass(bind, body)
        return flow

    def _pass(self, bind: Callable[[], None], body: list[ast.stmt]) -> Flow:
        machine, now = self.machine, self.now
        now.number += 1
        if now.settled:
            self._settle()
        now.mark = machine.state.mark
        now.continues, now.inside, now.waits = [], set(), None
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
                state.write(store, key, Unknown(CHANGES, type(new.value).__name__))

    def _still_changes(self) -> bool:
        """Whether the pass has changed a constant that it began with; what becomes another constant differs from pass to pass."""
        state, found = self.machine.state, False
        for at, (store, key, old, new) in state.changes(self.now.mark).items():
            constant = isinstance(old, Known) and isinstance(new, Known | Unknown | Choice)
            carried = isinstance(new, Mergeable) and new.carries
            changed = (constant or carried) and old != new
            if changed and at not in self.bound and at[0] not in self.now.inside:
                found = True
                if isinstance(new, Known):
                    state.write(store, key, Unknown(CHANGES, type(new.value).__name__))
        return found

    def end(self, flow: Flow, orelse: list[ast.stmt]) -> Flow:
        """What comes after the loop, which ended so."""
        machine, now = self.machine, self.now
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
    return isinstance(known.value, int | float) and not isinstance(known.value, bool)
