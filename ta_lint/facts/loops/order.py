"""The order of things in a training step: what certainly runs before what, in one pass through a loop or function.

A pass is one way through the code, as the list of the events on it. Conditions written alike are decided alike in one
pass, functions of this file are entered two calls deep, and the body of an inner loop runs once. What holds for every
pass in question is certain.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.facts.loops.loops import BACKWARD, Loop, Loops, Region
from ta_lint.facts.values.calls import called_name
from ta_lint.facts.values.kinds import Kind, Kinds
from ta_lint.facts.values.names import Names
from ta_lint.syntax.layout import plain
from ta_lint.syntax.tree import LOOPS, Node, Tree, dotted

_CALLS_DEEP = 2
_MOST_PASSES = 500  # code with more ways through it is not judged

# The name of a learning rate scheduler, where nothing shows what built it and `step()` has no argument.
_SCHEDULER_NAME = regex(
    r"_?(lr|learning_?rate|warm_?up|optim(izer)?|opt|cosine|train)?_?sched(ule|uler)?s?"
    r"(_?(lr|gen|disc|dis|generator|discriminator|actor|critic|model|[a-z]|\d+))?",
    re.IGNORECASE,
)
_CLIPS = regex(
    r"_?(dispatch_)?clip_?(master_)?(grad|gradient)s?(_?(norm|value|total_norm))?s?(_with_norm_?)?_?"
)
# The number of passes of an inner loop, where that loop accumulates.
_ACCUMULATES = regex(r"accum", re.IGNORECASE)
_CLEARS = regex(r"zero_?(\w+_)?grads?(_buffer)?|(clear|reset)_(\w+_)?grads?(ients)?|_foreach_zero_?")
_TORCH_CLIPS = regex(
    r"torch\.nn\.utils\.(clip_grad\.)?(clip_grad_norm_?|clip_grad_value_|clip_grads_with_norm_)"
)

# These take an optimizer and leave its gradients and parameters alone.
_HARMLESS = regex(
    r"adjust_\w+|append|dict|enumerate|float|(get|set|update)_(last_)?(lr|learning_rate)\w*|getattr|hasattr|id|info|int|"
    r"isinstance|item|len|list|log\w*|print|repr|(torch_)?save\w*|add_\w+|scale_loss|state_dict|str|synchronize|type|"
    r"write\w*|zip|super|tuple|set|any|all|next|iter|debug|format|set_(description|postfix)\w*|_?\w*checkpoint\w*"
)
_STEPS_ELSEWHERE = regex(
    r"_?(\w+_)?(optimi[sz]er_step|optimi[sz]e|optimize_parameters|apply_gradients|first_step|second_step)"
)


class Action(StrEnum):
    """What a call does to gradients, weights or learning rates."""

    BACKWARD = "backward"
    CLEAR = "clear"
    UNSCALE = "unscale"
    CLIP = "clip"
    STEP = "step"
    UPDATE = "update"
    SCHEDULE = "schedule"
    UNKNOWN = "unknown"
    """A call that is given the optimizer and that this file does not show: it may do any of these."""


@dataclass(frozen=True, eq=False)
class Event:
    """One of these actions.

    `subject` is the loss, the optimizer, the scheduler, or what is cleared; `scaler` the gradient scaler that takes
    part in a backward pass, a step or an unscaling. `via` are the calls that lead to it from the region.
    """

    action: Action
    call: cst.Call
    subject: cst.BaseExpression
    scaler: cst.BaseExpression | None = None
    via: tuple[cst.Call, ...] = ()

    @property
    def place(self) -> cst.Call:
        """The call in the region itself: the event's own, or that of the function it happens in."""
        return self.via[0] if self.via else self.call


Pass = tuple[Event, ...]


@dataclass(frozen=True, eq=False)
class Accumulation:
    """A loop that sums the gradients of `count` passes up, and a step for all of them.

    `guard` is the `if` in the loop that says when to step, `counter` what it counts by; `flushes` says that other
    conditions step too, as in `or last`. Or `guard` is the loop itself, of `count` passes, and the step follows it.
    """

    loop: Loop
    guard: cst.If | cst.For
    counter: cst.BaseExpression | cst.BaseAssignTargetExpression
    count: cst.BaseExpression
    flushes: bool
    step: Event
    backwards: tuple[Event, ...]


@dataclass(frozen=True)
class _Way:
    """A way through some statements so far: what happened, the conditions that were decided, and whether it left."""

    events: Pass = ()
    decided: frozenset[tuple[str, bool]] = frozenset()
    left: str | None = None


class _TooMany(Exception):
    """There are more ways through a region than are worth following."""


class Order:
    """The events of a file, and their order in each pass through a region."""

    def __init__(self, tree: Tree, names: Names, kinds: Kinds, loops: Loops) -> None:
        self._tree = tree
        self._names = names
        self._kinds = kinds
        self._calls = kinds.calls
        self._loops = loops
        self._passes: dict[Node, list[Pass]] = {}
        self._has_events: dict[tuple[Node, int], bool] = {}

    # -- events -----------------------------------------------------------------------------------------------

    @cached_property
    def _events(self) -> dict[cst.Call, Event]:
        calls = self._tree.all(cst.Call)
        return {call: event for call in calls if (event := self._event(call)) is not None}

    def events(self, action: Action) -> list[Event]:
        """The events of one kind in this file, in source order."""
        return [event for event in self._events.values() if event.action is action]

    def _event(self, call: cst.Call) -> Event | None:
        name = called_name(call)
        if name is None:
            return None
        receiver = call.func.value if isinstance(call.func, cst.Attribute) else call.func
        if name in BACKWARD:
            return self._backward(call, receiver)
        if name == "step":
            return self._step(call, receiver)
        if name == "update":
            return Event(Action.UPDATE, call, receiver) if self._kinds.is_scaler(receiver) else None
        if "unscale" in name:
            return Event(Action.UNSCALE, call, call.args[0].value if call.args else receiver, receiver)
        if _CLIPS.fullmatch(name):
            return Event(Action.CLIP, call, call.args[0].value if call.args else receiver)
        if _CLEARS.fullmatch(name):
            return Event(Action.CLEAR, call, receiver)
        if self._may_step(call, name):
            return Event(Action.UNKNOWN, call, receiver)
        return None

    def _backward(self, call: cst.Call, receiver: cst.BaseExpression) -> Event | None:
        if not isinstance(call.func, cst.Attribute):
            return None
        given = [arg.value for arg in call.args if arg.keyword is None and not arg.star]
        is_loss = not given or self._is_gradient_argument(call)
        loss = receiver if is_loss else given[0]
        return Event(Action.BACKWARD, call, loss, self._scaled_by(loss))

    def _is_gradient_argument(self, call: cst.Call) -> bool:
        """`y.backward(torch.ones_like(y))` differentiates its receiver, `accelerator.backward(loss)` its argument."""
        name = (dotted(call.func) or "").lower()
        return not any(
            word in name for word in ("accelerator", "fabric", "autograd", "engine", "manual", "self")
        )

    def _scaled_by(self, loss: cst.BaseExpression) -> cst.BaseExpression | None:
        made = self._kinds.origin(loss)
        if (
            isinstance(made, cst.Call)
            and isinstance(made.func, cst.Attribute)
            and made.func.attr.value == "scale"
        ):
            return made.func.value if self._kinds.is_scaler(made.func.value) else None
        return None

    def _step(self, call: cst.Call, receiver: cst.BaseExpression) -> Event | None:
        step = self._loops.step(call)
        if step is not None:
            return Event(Action.STEP, call, step.optimizer, receiver if call.args else None)
        if self.is_scheduler(receiver) and (not call.args or self._kinds.kind(receiver) is Kind.SCHEDULER):
            return Event(Action.SCHEDULE, call, receiver)
        return Event(Action.UNKNOWN, call, receiver) if self._kinds.is_optimizer(receiver) else None

    def is_scheduler(self, node: cst.BaseExpression) -> bool:
        """A learning rate scheduler by its kind, or, where the kind is unknown, by its name."""
        kind = self._kinds.kind(node)
        if isinstance(node, cst.Subscript):
            node = node.value
        last = (dotted(node) or "").rpartition(".")[2]
        if kind is not None or _SCHEDULER_NAME.fullmatch(last) is None:
            return kind is Kind.SCHEDULER
        return dotted(node) not in self._foreign_schedulers

    @cached_property
    def _foreign_schedulers(self) -> set[str | None]:
        """Variables that hold what a class of one's own has built: it may want its step before the optimizer's.

        What a function has built is torch's more often than not.
        """
        return {
            dotted(target.target)
            for assign in self._tree.all(cst.Assign)
            if isinstance(assign.value, cst.Call)
            and (called_name(assign.value) or "")[:1].isupper()
            and self._kinds.kind(assign.value) is None
            for target in assign.targets
        }

    def _may_step(self, call: cst.Call, name: str) -> bool:
        """Whether a call may run any part of a training step, out of sight."""
        if _HARMLESS.fullmatch(name) or self._calls.callee(call) is not None:
            return False
        if _STEPS_ELSEWHERE.fullmatch(name):
            return True
        return any(
            self._kinds.is_optimizer(arg.value)
            for arg in call.args
            if dotted(arg.value) not in (None, "opt")  # that are options more often than not
        ) and not self._constructs(call)

    def _constructs(self, call: cst.Call) -> bool:
        return self._kinds.kind(call) is not None or (called_name(call) or "")[:1].isupper()

    def clips_as_torch(self, clip: Event) -> bool:
        """Whether a clipping is torch's own, which takes gradients as they are."""
        called = self._names.qualified(clip.call.func)
        if called is not None:
            return _TORCH_CLIPS.fullmatch(called) is not None
        return (dotted(clip.call.func) or "").rpartition(".")[0].endswith("nn.utils")

    def minds_scale(self, nodes: Iterable[Node]) -> bool:
        """Whether something in expressions is about the scale of a loss: `scaler.get_scale()`."""
        return any(
            "scale" in name.value.lower() for node in nodes for name in self._tree.within(node, cst.Name)
        )

    def unscales_by_hand(self, region: Node) -> bool:
        """Whether a statement divides gradients by the scale: `p.grad /= scaler.get_scale()`."""
        statements = self._tree.within(region, cst.Assign, cst.AugAssign, cst.Expr)
        return any(
            any(attribute.attr.value == "grad" for attribute in self._tree.within(statement, cst.Attribute))
            and self.minds_scale([statement])
            for statement in statements
        )

    # -- regions ----------------------------------------------------------------------------------------------

    def region(self, event: Event, *others: Action) -> Region | None:
        """The innermost loop or function around an event in which the others happen too."""
        for loop in self._tree.loops(event.call):
            if self._holds(loop, others):
                return loop
        function = self._tree.home(event.call)
        return function if isinstance(function, cst.FunctionDef) and self._holds(function, others) else None

    def _holds(self, region: Node, actions: Iterable[Action]) -> bool:
        happening = {event.action for way in self.passes(region) for event in way}
        return happening.issuperset(actions)

    def passes(self, region: Node) -> list[Pass]:
        """The ways through a loop's body or a function's, without those that end in an exception; empty if unknown."""
        if region not in self._passes:
            try:
                ways = self._block(region.body, _Way(), 0, ())  # type: ignore[attr-defined]
                self._passes[region] = list(dict.fromkeys(way.events for way in ways if way.left != "raise"))
            except _TooMany:
                self._passes[region] = []
        return self._passes[region]

    def actions(self, place: Node) -> set[Action]:
        """What may happen at or below a node, whichever way is taken."""
        found: set[Action] = set()
        reached = {place: 0}
        while reached:
            node, depth = reached.popitem()
            for call in self._tree.within(node, cst.Call):
                if call in self._events:
                    found.add(self._events[call].action)
                elif (function := self._entered(call, depth)) is not None:
                    reached[function] = depth + 1
        return found

    def passes_with(self, region: Node, event: Event) -> list[tuple[Pass, int]]:
        """The passes on which an event of the region's own body happens, each with the event's place in it."""
        return [
            (way, index)
            for way in self.passes(region)
            for index, found in enumerate(way)
            if found.call is event.call and not found.via
        ]

    # -- ways through code ------------------------------------------------------------------------------------

    def _block(self, block: Node, start: _Way, depth: int, via: tuple[cst.Call, ...]) -> list[_Way]:
        """The ways through a statement list, a statement or an expression, each going on from where `start` is."""
        if not self._matters(block, depth):
            return [start]
        if isinstance(block, (cst.IndentedBlock, cst.SimpleStatementSuite, cst.SimpleStatementLine)):
            return self._sequence(block.body, [start], depth, via)
        if isinstance(block, cst.If):
            return self._if(block, start, depth, via)
        if isinstance(block, LOOPS):
            return self._loop(block, start, depth, via)
        if isinstance(block, cst.With):
            return self._sequence([*block.items, block.body], [start], depth, via)
        if isinstance(block, (cst.Try, cst.TryStar)):
            return self._try(block, start, depth, via)
        if isinstance(block, cst.Match):
            ways = self._sequence([block.subject], [start], depth, via)
            return [
                end for way in ways for case in block.cases for end in self._block(case.body, way, depth, via)
            ] + ways
        if isinstance(block, (cst.FunctionDef, cst.ClassDef)):
            return [start]
        ways = self._expression(block, start, depth, via)
        if isinstance(block, (cst.Return, cst.Raise, cst.Break, cst.Continue)):
            ways = [replace(way, left=type(block).__name__.lower()) for way in ways]
        return ways

    def _sequence(
        self, parts: Iterable[Node], ways: list[_Way], depth: int, via: tuple[cst.Call, ...]
    ) -> list[_Way]:
        for part in parts:
            if self._matters(part, depth):
                going = [way for way in ways if way.left is None]
                gone = [way for way in ways if way.left is not None]
                ends = [end for way in going for end in self._block(part, way, depth, via)]
                ways = list(dict.fromkeys([*gone, *ends]))
            if len(ways) > _MOST_PASSES:
                raise _TooMany
        return ways

    def _if(self, branch: cst.If, start: _Way, depth: int, via: tuple[cst.Call, ...]) -> list[_Way]:
        key, positive = self._condition(branch.test)
        ends: list[_Way] = []
        for way in self._block(branch.test, start, depth, via):
            for holds in (True, False):
                if (key, holds is not positive) in way.decided:
                    continue
                decided = replace(way, decided=way.decided | {(key, holds is positive)})
                if holds:
                    ends += self._block(branch.body, decided, depth, via)
                elif isinstance(branch.orelse, cst.If):
                    ends += self._block(branch.orelse, decided, depth, via)
                elif branch.orelse is not None:
                    ends += self._block(branch.orelse.body, decided, depth, via)
                else:
                    ends.append(decided)
        return ends

    def _condition(self, test: cst.BaseExpression) -> tuple[str, bool]:
        """A condition without its negation, so that two of one kind are known; changed names make another one."""
        positive = True
        while isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
            test, positive = test.expression, not positive
        code = plain(test)
        if isinstance(test, cst.Comparison) and code.endswith(("is None", "is not None", "!= 0")):
            if "is not None" in code or "!=" in code:
                positive = not positive
            code = code.replace("is not None", "is None").replace("!= 0", "== 0")
        bound = [
            sum(self._tree.before(binding.node, test) for binding in self._names.bindings(name))
            for name in self._tree.within(test, cst.Name)
        ]
        return f"{code} {bound}", positive

    def _loop(self, loop: Loop, start: _Way, depth: int, via: tuple[cst.Call, ...]) -> list[_Way]:
        header = loop.iter if isinstance(loop, cst.For) else loop.test
        ways = self._sequence([header, loop.body], [start], depth, via)
        ways = [replace(way, left=None) if way.left in ("break", "continue") else way for way in ways]
        return self._sequence([loop.orelse.body] if loop.orelse is not None else [], ways, depth, via)

    def _try(
        self, block: cst.Try | cst.TryStar, start: _Way, depth: int, via: tuple[cst.Call, ...]
    ) -> list[_Way]:
        orelse = [block.orelse.body] if block.orelse is not None else []
        ways = self._sequence([block.body, *orelse], [start], depth, via)
        ways += [end for handler in block.handlers for end in self._block(handler.body, start, depth, via)]
        if block.finalbody is None:
            return ways
        return [
            replace(end, left=end.left or way.left)
            for way in ways
            for end in self._block(block.finalbody.body, replace(way, left=None), depth, via)
        ]

    def _expression(self, node: Node, start: _Way, depth: int, via: tuple[cst.Call, ...]) -> list[_Way]:
        ways = [start]
        for call in self._own_calls(node):
            event = self._events.get(call)
            if event is not None:
                happened = replace(event, via=via) if via else event
                ways = [replace(way, events=(*way.events, happened)) for way in ways]
            elif (function := self._entered(call, depth)) is not None:
                inside = self._block(function.body, _Way(), depth + 1, (*via, call))
                runs = dict.fromkeys(way.events for way in inside if way.left != "raise")
                ways = [replace(way, events=way.events + events) for way in ways for events in runs]
        return ways

    def _own_calls(self, node: Node) -> list[cst.Call]:
        return self._tree.own(node, cst.Call)

    def _entered(self, call: cst.Call, depth: int) -> cst.FunctionDef | None:
        """The function of this file that a call runs, if anything happens in it."""
        if depth >= _CALLS_DEEP:
            return None
        function = self._calls.callee(call)
        if function is None or self._tree.contains(function, call):
            return None
        return function if self._happens(function, depth + 1) else None

    def _matters(self, node: Node, depth: int) -> bool:
        """Whether anything happens at or below a node, or a way through it may end there."""
        return bool(self._tree.own(node, cst.Return, cst.Raise, cst.Break, cst.Continue)) or self._happens(
            node, depth
        )

    def _happens(self, node: Node, depth: int) -> bool:
        if (node, depth) not in self._has_events:
            self._has_events[node, depth] = False  # a function that calls itself ends here
            self._has_events[node, depth] = any(
                call in self._events or self._entered(call, depth) is not None
                for call in self._own_calls(node)
            )
        return self._has_events[node, depth]

    # -- accumulation -----------------------------------------------------------------------------------------

    @cached_property
    def accumulations(self) -> list[Accumulation]:
        """The loops of this file that accumulate gradients under a guard: `if (i + 1) % k == 0:`."""
        guarded = (self._accumulation(guard) for guard in self._tree.all(cst.If))
        inner = (self._inner_accumulation(loop) for loop in self._tree.all(cst.For))
        return [accumulation for accumulation in (*guarded, *inner) if accumulation is not None]

    def _inner_accumulation(self, loop: cst.For) -> Accumulation | None:
        """`for _ in range(accumulation_steps):` around the backward pass, with the step after it."""
        call = loop.iter
        if not isinstance(call, cst.Call) or called_name(call) != "range" or len(call.args) != 1:
            return None
        count = call.args[0].value
        if _ACCUMULATES.search(plain(count)) is None:
            return None
        events = list(dict.fromkeys(event for way in self.passes(loop) for event in way))
        backwards = tuple(event for event in events if event.action is Action.BACKWARD)
        if not backwards or {event.action for event in events} & {Action.STEP, Action.CLEAR, Action.UNKNOWN}:
            return None
        home = self._tree.home(loop)
        later = (event for event in self.events(Action.STEP) if self._tree.home(event.call) is home)
        step = next((event for event in later if self._tree.before(loop, event.call)), None)
        if step is None:
            return None
        return Accumulation(loop, loop, loop.target, count, True, step, backwards)

    def _accumulation(self, guard: cst.If) -> Accumulation | None:
        around = self._tree.loops(guard)
        modulus = self._modulus(guard.test)
        if not around or modulus is None:
            return None
        loop = around[0]
        events = list(dict.fromkeys(event for way in self.passes(loop) for event in way))
        guarded = [event for event in events if self._is_guarded(event.place, guard)]
        steps = [event for event in guarded if event.action is Action.STEP]
        backwards = tuple(event for event in events if event.action is Action.BACKWARD)
        outside = {event.action for event in events if event not in guarded}
        if not steps or not backwards or outside & {Action.STEP, Action.CLEAR, Action.UNKNOWN}:
            return None
        if not any(event.action is Action.CLEAR for event in guarded) or any(e in guarded for e in backwards):
            return None
        operation, flushes = modulus
        return Accumulation(loop, guard, operation.left, operation.right, flushes, steps[0], backwards)

    def _is_guarded(self, node: Node, guard: cst.If) -> bool:
        """Whether a node runs only where the guard lets it: in its body, or after `if ...: continue`."""
        last = guard.body.body[-1] if guard.body.body else None
        leaves = isinstance(last, cst.SimpleStatementLine) and isinstance(last.body[-1], cst.Continue)
        if leaves or isinstance(last, cst.Continue):
            return self._tree.contains(self._tree.block(guard), node) and not self._tree.before(node, guard)
        return self._tree.contains(guard.body, node)

    def _modulus(self, test: cst.BaseExpression) -> tuple[cst.BinaryOperation, bool] | None:
        """The `i % k` that a condition compares with a number, and whether it may hold for another reason too."""
        made = self._kinds.origin(test)
        if not isinstance(made, cst.BaseExpression):
            return None
        operations = self._tree.within(made, cst.BinaryOperation)
        moduli = [operation for operation in operations if isinstance(operation.operator, cst.Modulo)]
        if len(moduli) != 1:
            return None
        ors = [b for b in self._tree.within(made, cst.BooleanOperation) if isinstance(b.operator, cst.Or)]
        return moduli[0], bool(ors)
