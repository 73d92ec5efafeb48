"""The order of events in a training step: what certainly runs before what in one iteration of a loop, or one call of a function.

An execution path is one way through the code, as the list of its events. On one path, equal conditions have equal outcomes,
functions of the project are entered, and the body of an inner loop runs once. What holds on every path is certain.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.core.protocol import Action
from ta_lint.facts.loops.loops import BACKWARD, Loop, Loops, Region
from ta_lint.facts.values.calls import called_name
from ta_lint.facts.values.kinds import Kind, Kinds
from ta_lint.facts.values.names import Names
from ta_lint.syntax.layout import plain
from ta_lint.syntax.tree import LOOPS, Node, Tree, dotted

_CALLS_DEEP = 4
_MOST_PATHS = 500  # a region with more of them is followed less deep, and not judged if that does not help

# The name of a learning rate scheduler, for one of unknown kind whose `step()` has no argument.
_SCHEDULER_NAME = regex(
    r"_?(lr|learning_?rate|warm_?up|optim(izer)?|opt|cosine|train)?_?sched(ule|uler)?s?"
    r"(_?(lr|gen|disc|dis|generator|discriminator|actor|critic|model|[a-z]|\d+))?",
    re.IGNORECASE,
)
_CLIPS = regex(
    r"_?(dispatch_)?clip_?(master_)?(grad|gradient)s?(_?(norm|value|total_norm))?s?(_with_norm_?)?_?"
)
_CLEARS = regex(r"zero_?(\w+_)?grads?(_buffer)?|(clear|reset)_(\w+_)?grads?(ients)?|_foreach_zero_?")

# These take an optimizer and change neither its gradients nor its parameters.
_HARMLESS = regex(
    r"adjust_\w+|append|dict|enumerate|float|(get|set|update)_(last_)?(lr|learning_rate)\w*|getattr|hasattr|id|info|int|"
    r"isinstance|item|len|list|log\w*|print|repr|(torch_)?save\w*|add_\w+|scale_loss|state_dict|str|synchronize|type|"
    r"write\w*|zip|super|tuple|set|any|all|next|iter|debug|format|master_params|set_(description|postfix)\w*|_?\w*checkpoint\w*"
)
_STEPS_ELSEWHERE = regex(
    r"_?(\w+_)?(optimi[sz]er_step|optimi[sz]e|optimize_parameters|apply_gradients|first_step|second_step)"
)


@dataclass(frozen=True, eq=False)
class LoopEvent:
    """A call that takes one of the actions of a training loop.

    `subject` is the loss, the optimizer, the scheduler, or what is cleared; `scaler` is the gradient scaler of a backward
    pass, a step or an unscaling; `via` are the calls that lead from the region to this one.
    """

    action: Action
    call: cst.Call
    subject: cst.BaseExpression
    scaler: cst.BaseExpression | None = None
    via: tuple[cst.Call, ...] = ()

    @property
    def place(self) -> cst.Call:
        """The call in the region's own code that leads to the event, or is it."""
        return self.via[0] if self.via else self.call


ExecutionPath = tuple[LoopEvent, ...]


@dataclass(frozen=True)
class _PartialPath:
    """The beginning of an execution path: its events, the outcomes of its conditions, and the statement that ended it."""

    events: ExecutionPath = ()
    decided: frozenset[tuple[str, bool]] = frozenset()
    left: str | None = None


class _TooManyPaths(Exception):
    """A region has more execution paths than are worth following."""


class StepOrder:
    """The events of a file, and their order on each execution path of a region."""

    def __init__(self, tree: Tree, names: Names, kinds: Kinds, loops: Loops) -> None:
        self._tree = tree
        self._names = names
        self._kinds = kinds
        self._calls = kinds.calls
        self._loops = loops
        self._paths: dict[Node, list[ExecutionPath]] = {}
        self._runs_of: dict[tuple[cst.FunctionDef, int], list[ExecutionPath]] = {}
        self._conditions: dict[cst.If, tuple[str, bool]] = {}
        self._leaves: dict[Node, bool] = {}
        self._has_events: dict[tuple[Node, int], bool] = {}
        self._found: dict[cst.Call, LoopEvent | None] = {}
        self._actions: dict[Node, set[Action]] = {}
        self._events: dict[tuple[cst.Module, Action], list[LoopEvent]] = {}
        self._unknown_schedulers: dict[cst.Module, set[str | None]] = {}

    # -- events -----------------------------------------------------------------------------------------------

    def events(self, action: Action) -> list[LoopEvent]:
        """The events with one action in this file, in source order."""
        return self.events_in(self._tree.root, action)

    def events_in(self, root: cst.Module, action: Action) -> list[LoopEvent]:
        """The events with one action in a file, in source order."""
        key = root, action
        if key not in self._events:
            calls = self._tree.within(root, cst.Call)
            is_clip = action is Action.CLIP
            named = (
                call
                for call in calls
                if _may_be(called_name(call) or "", action) or (is_clip and self._is_renamed_clip(call))
            )
            events = [event for call in named if (event := self._at(call)) is not None]
            self._events[key] = [event for event in events if event.action is action]
        return self._events[key]

    def _at(self, call: cst.Call) -> LoopEvent | None:
        """The event that a call of this file, or of another one, is."""
        if call not in self._found:
            self._found[call] = None  # a function that calls itself ends here
            self._found[call] = self._event(call)
        return self._found[call]

    def _event(self, call: cst.Call) -> LoopEvent | None:
        name = called_name(call)
        if name is None:
            return None
        receiver = call.func.value if isinstance(call.func, cst.Attribute) else call.func
        if name in BACKWARD:
            return self._backward(call, receiver)
        if name == "step":
            return self._step(call, receiver)
        if name == "update":
            return LoopEvent(Action.UPDATE, call, receiver) if self._kinds.is_scaler(receiver) else None
        if "unscale" in name:
            return LoopEvent(Action.UNSCALE, call, call.args[0].value if call.args else receiver, receiver)
        if _CLIPS.fullmatch(name) or self._is_renamed_clip(call):
            return LoopEvent(Action.CLIP, call, call.args[0].value if call.args else receiver)
        if _CLEARS.fullmatch(name):
            return LoopEvent(Action.CLEAR, call, receiver)
        if self._may_step(call, name):
            return LoopEvent(Action.UNKNOWN, call, receiver)
        return None

    def _is_renamed_clip(self, call: cst.Call) -> bool:
        """Whether a call is of torch's function under the name that an import gives it."""
        called = self._names.qualified(call.func) if isinstance(call.func, cst.Name) else None
        return called is not None and called.startswith("torch.nn.utils.clip_grad")

    def _is_helper(self, call: cst.Call) -> bool:
        """Whether a method named `backward` is one of this project that runs the backward pass, in steps that it shows."""
        function = self._calls.callee(call)
        is_other = function is not None and not self._tree.contains(function, call)
        return is_other and function is not None and Action.BACKWARD in self.actions(function.body)

    def _backward(self, call: cst.Call, receiver: cst.BaseExpression) -> LoopEvent | None:
        if not isinstance(call.func, cst.Attribute) or self._is_helper(call):
            return None
        given = [arg.value for arg in call.args if arg.keyword is None and not arg.star]
        is_loss = not given or self._is_gradient_argument(call)
        loss = receiver if is_loss else given[0]
        return LoopEvent(Action.BACKWARD, call, loss, self._scaled_by(loss))

    def _is_gradient_argument(self, call: cst.Call) -> bool:
        """Whether the argument is a gradient, as in `y.backward(torch.ones_like(y))`, and not the loss, as in
        `accelerator.backward(loss)`."""
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

    def _step(self, call: cst.Call, receiver: cst.BaseExpression) -> LoopEvent | None:
        step = self._loops.step(call)
        if step is not None:
            return LoopEvent(Action.STEP, call, step.optimizer, receiver if call.args else None)
        if self.is_scheduler(receiver) and (not call.args or self._kinds.kind(receiver) is Kind.SCHEDULER):
            return LoopEvent(Action.SCHEDULE, call, receiver)
        return LoopEvent(Action.UNKNOWN, call, receiver) if self._kinds.is_optimizer(receiver) else None

    def is_scheduler(self, node: cst.BaseExpression) -> bool:
        """Whether this is a learning rate scheduler: by its kind, or, if that is unknown, by its name."""
        kind = self._kinds.kind(node)
        if isinstance(node, cst.Subscript):
            node = node.value
        last = (dotted(node) or "").rpartition(".")[2]
        if kind is not None or _SCHEDULER_NAME.fullmatch(last) is None:
            return kind is Kind.SCHEDULER
        if dotted(node) in self._foreign_schedulers(self._tree.root_of(node)):
            return False
        origin = self._kinds.origin(node)
        given = self._calls.given(origin) if isinstance(origin, cst.Param) else None
        return not any(map(self._is_of_unknown_class, given or []))

    def _is_of_unknown_class(self, node: Node) -> bool:
        made = self._kinds.construction(node)
        if made is None or self._kinds.kind(made) is not None:
            return False
        return (called_name(made) or "")[:1].isupper()

    def _foreign_schedulers(self, root: cst.Module) -> set[str | None]:
        """Variables of a file that hold an instance of a class of unknown kind: it may need its step before the optimizer's.

        What a function builds is a scheduler of torch more often than not.
        """
        if root not in self._unknown_schedulers:
            self._unknown_schedulers[root] = {
                dotted(target.target)
                for assign in self._tree.within(root, cst.Assign)
                if isinstance(assign.value, cst.Call)
                and (called_name(assign.value) or "")[:1].isupper()
                and self._kinds.kind(assign.value) is None
                for target in assign.targets
            }
        return self._unknown_schedulers[root]

    def _may_step(self, call: cst.Call, name: str) -> bool:
        """Whether a call may take any action of a training step in code that this file does not show."""
        if _HARMLESS.fullmatch(name):
            return False
        hands_over = any(
            self._kinds.is_optimizer(arg.value)
            for arg in call.args
            if dotted(arg.value) not in (None, "opt")  # `opt` holds options more often than not
        )
        if _STEPS_ELSEWHERE.fullmatch(name) or (hands_over and not self._constructs(call)):
            return self._calls.callee(call) is None
        return False

    def _constructs(self, call: cst.Call) -> bool:
        return self._kinds.kind(call) is not None or (called_name(call) or "")[:1].isupper()

    # -- regions ----------------------------------------------------------------------------------------------

    def region_by_calls(self, event: LoopEvent, *others: Action) -> Region | None:
        """The region of an event; if there is none, that of the only call of the function that the event is in."""
        place = event.call
        for _ in range(_CALLS_DEEP):
            if (region := self._around(place, others)) is not None:
                return region
            function = self._tree.home(place)
            sites = self._calls.sites(function) if isinstance(function, cst.FunctionDef) else []
            if len(sites) != 1:
                return None
            place = sites[0]
        return None

    def _around(self, place: cst.Call, others: tuple[Action, ...]) -> Region | None:
        for loop in self._tree.loops(place):
            if self._holds(loop, others):
                return loop
        function = self._tree.home(place)
        return function if isinstance(function, cst.FunctionDef) and self._holds(function, others) else None

    def _holds(self, region: Node, actions: Iterable[Action]) -> bool:
        if not self.actions(region).issuperset(actions):  # quicker than all paths
            return False
        happening = {event.action for path in self.paths(region) for event in path}
        return happening.issuperset(actions)

    def paths(self, region: Node) -> list[ExecutionPath]:
        """The execution paths of a loop's body or a function, without those that raise; empty if there are too many."""
        if region not in self._paths:
            self._paths[region] = (
                self._paths_from(region, 0) or self._paths_from(region, _CALLS_DEEP // 2) or []
            )
        return self._paths[region]

    def _paths_from(self, region: Node, depth: int) -> list[ExecutionPath] | None:
        """The paths of a region that is so many calls deep itself; None if there are too many."""
        try:
            paths = self._block(region.body, _PartialPath(), depth)  # type: ignore[attr-defined]
        except _TooManyPaths:
            return None
        return list(dict.fromkeys(path.events for path in paths if path.left != "raise"))

    def actions(self, place: Node) -> set[Action]:
        """The actions that may happen at or below a node, on any path."""
        if place not in self._actions:
            self._actions[place] = self._found_actions(place)
        return self._actions[place]

    def _found_actions(self, place: Node) -> set[Action]:
        found: set[Action] = set()
        reached = {place: 0}
        while reached:
            node, depth = reached.popitem()
            for call in self._tree.within(node, cst.Call):
                if (event := self._at(call)) is not None:
                    found.add(event.action)
                elif (function := self._entered(call, depth)) is not None:
                    reached[function] = depth + 1
        return found

    def paths_with(self, region: Node, event: LoopEvent) -> list[tuple[ExecutionPath, int]]:
        """The paths with an event of the region's own code, or of a function that it calls, each with the event's index."""
        below = not self._tree.contains(region, event.call)
        return [
            (path, index)
            for path in self.paths(region)
            for index, found in enumerate(path)
            if found.call is event.call and (below or not found.via)
        ]

    # -- following paths --------------------------------------------------------------------------------------

    def _block(self, block: Node, start: _PartialPath, depth: int) -> list[_PartialPath]:
        """The paths through a list of statements, a statement or an expression, each a continuation of `start`."""
        if not self._matters(block, depth):
            return [start]
        if isinstance(block, (cst.IndentedBlock, cst.SimpleStatementSuite, cst.SimpleStatementLine)):
            return self._sequence(block.body, [start], depth)
        if isinstance(block, cst.If):
            return self._if(block, start, depth)
        if isinstance(block, LOOPS):
            return self._loop(block, start, depth)
        if isinstance(block, cst.With):
            return self._sequence([*block.items, block.body], [start], depth)
        if isinstance(block, (cst.Try, cst.TryStar)):
            return self._try(block, start, depth)
        if isinstance(block, cst.Match):
            paths = self._sequence([block.subject], [start], depth)
            return [
                end for path in paths for case in block.cases for end in self._block(case.body, path, depth)
            ] + paths
        if isinstance(block, (cst.FunctionDef, cst.ClassDef)):
            return [start]
        paths = self._expression(block, start, depth)
        if isinstance(block, (cst.Return, cst.Raise, cst.Break, cst.Continue)):
            paths = [replace(path, left=type(block).__name__.lower()) for path in paths]
        return paths

    def _sequence(self, parts: Iterable[Node], paths: list[_PartialPath], depth: int) -> list[_PartialPath]:
        for part in parts:
            if self._matters(part, depth):
                going = [path for path in paths if path.left is None]
                gone = [path for path in paths if path.left is not None]
                ends = [end for path in going for end in self._block(part, path, depth)]
                paths = list(dict.fromkeys([*gone, *ends]))
            if len(paths) > _MOST_PATHS:
                raise _TooManyPaths
        return paths

    def _if(self, branch: cst.If, start: _PartialPath, depth: int) -> list[_PartialPath]:
        if branch not in self._conditions:
            self._conditions[branch] = self._condition(branch.test)
        key, positive = self._conditions[branch]
        ends: list[_PartialPath] = []
        for path in self._block(branch.test, start, depth):
            for holds in (True, False):
                if (key, holds is not positive) in path.decided:
                    continue
                decided = replace(path, decided=path.decided | {(key, holds is positive)})
                if holds:
                    ends += self._block(branch.body, decided, depth)
                elif isinstance(branch.orelse, cst.If):
                    ends += self._block(branch.orelse, decided, depth)
                elif branch.orelse is not None:
                    ends += self._block(branch.orelse.body, decided, depth)
                else:
                    ends.append(decided)
        return ends

    def _condition(self, test: cst.BaseExpression) -> tuple[str, bool]:
        """A key for a condition without its negations, and whether it is positive.

        Equal conditions have equal keys, unless a name in them is bound again in between.
        """
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

    def _loop(self, loop: Loop, start: _PartialPath, depth: int) -> list[_PartialPath]:
        header = loop.iter if isinstance(loop, cst.For) else loop.test
        paths = self._sequence([header, loop.body], [start], depth)
        paths = [replace(path, left=None) if path.left in ("break", "continue") else path for path in paths]
        return self._sequence([loop.orelse.body] if loop.orelse is not None else [], paths, depth)

    def _try(self, block: cst.Try | cst.TryStar, start: _PartialPath, depth: int) -> list[_PartialPath]:
        orelse = [block.orelse.body] if block.orelse is not None else []
        paths = self._sequence([block.body, *orelse], [start], depth)
        paths += [end for handler in block.handlers for end in self._block(handler.body, start, depth)]
        if block.finalbody is None:
            return paths
        return [
            replace(end, left=end.left or path.left)
            for path in paths
            for end in self._block(block.finalbody.body, replace(path, left=None), depth)
        ]

    def _expression(self, node: Node, start: _PartialPath, depth: int) -> list[_PartialPath]:
        paths = [start]
        for call in self._own_calls(node):
            event = self._at(call)
            if event is not None:
                paths = [replace(path, events=(*path.events, event)) for path in paths]
            elif (function := self._entered(call, depth)) is not None:
                runs = [_within(call, run) for run in self._runs(function, depth + 1)]
                paths = [replace(path, events=path.events + events) for path in paths for events in runs]
        return paths

    def _runs(self, function: cst.FunctionDef, depth: int) -> list[ExecutionPath]:
        """The paths through a function that is so many calls deep, without those that raise."""
        key = function, depth
        if key not in self._runs_of:
            inside = self._block(function.body, _PartialPath(), depth)
            events = dict.fromkeys(path.events for path in inside if path.left != "raise")
            self._runs_of[key] = list(events)
        return self._runs_of[key]

    def _own_calls(self, node: Node) -> list[cst.Call]:
        return self._tree.own(node, cst.Call)

    def _entered(self, call: cst.Call, depth: int) -> cst.FunctionDef | None:
        """The function of this file that a call runs, if it has events."""
        if depth >= _CALLS_DEEP:
            return None
        function = self._calls.callee(call)
        if function is None or self._tree.contains(function, call):
            return None
        return function if self._happens(function, depth + 1) else None

    def _matters(self, node: Node, depth: int) -> bool:
        """Whether a node has events, or may end a path."""
        if node not in self._leaves:
            self._leaves[node] = bool(self._tree.own(node, cst.Return, cst.Raise, cst.Break, cst.Continue))
        return self._leaves[node] or self._happens(node, depth)

    def _happens(self, node: Node, depth: int) -> bool:
        if (node, depth) not in self._has_events:
            self._has_events[node, depth] = False  # a function that calls itself ends here
            self._has_events[node, depth] = any(
                self._at(call) is not None or self._entered(call, depth) is not None
                for call in self._own_calls(node)
            )
        return self._has_events[node, depth]


def _within(call: cst.Call, path: ExecutionPath) -> ExecutionPath:
    """A path through the function that a call runs, as seen from the call."""
    return tuple(replace(event, via=(call, *event.via)) for event in path)


def _may_be(name: str, action: Action) -> bool:
    """Whether a call of this name may take an action, which spares the look at most calls of a file."""
    if name == "step":
        return action in (Action.STEP, Action.SCHEDULE, Action.UNKNOWN)
    match action:
        case Action.BACKWARD:
            return name in BACKWARD
        case Action.STEP | Action.SCHEDULE:
            return False
        case Action.UPDATE:
            return name == "update"
        case Action.UNSCALE:
            return "unscale" in name
        case Action.CLIP:
            return _CLIPS.fullmatch(name) is not None
        case Action.CLEAR:
            return _CLEARS.fullmatch(name) is not None
    return True
