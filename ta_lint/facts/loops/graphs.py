"""Autograd graphs: values that still hold a graph after `backward` went through it in the same pass."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.facts.loops.calls_in_loop import CallsInLoop
from ta_lint.facts.loops.loops import Region, is_backward
from ta_lint.facts.values.calls import called_name
from ta_lint.facts.values.differentiation import differentiation, is_integer
from ta_lint.facts.values.flow import ValueFlow
from ta_lint.facts.values.kinds import Kind, Kinds
from ta_lint.facts.values.names import Names
from ta_lint.facts.values.packing import is_packed
from ta_lint.facts.values.recording import Recording
from ta_lint.facts.values.value import Frame, Origin, Path, Value
from ta_lint.syntax.tree import Node, Tree, argument, dotted, is_name

Variable = cst.Name | cst.Attribute | cst.Subscript

_Below = Callable[[Node, Frame | None], Iterator[Node]]
_Way = tuple[tuple[cst.Call, cst.FunctionDef], ...]

_DEPTH = 12  # operations and definitions between a loss and its parts
_CALLS_DEEP = 3
_GIVEN_DEEP = 3  # definitions between a parameter and what a function keeps of it
_MOST_FEEDING = 150  # values that one loss is computed from

# Objects whose `backward` takes the loss as an argument: of accelerate, Fabric, DeepSpeed, Apex.
_ENGINES = ("accelerator", "engine", "fabric", "model", "optimizer", "self", "strategy", "trainer")

_LOSSES = regex(r"torch\.nn\.functional\.(\w+_loss|\w*cross_entropy\w*|kl_div)")
_PACKS = "pack_padded_sequence"
_AVERAGES = frozenset({"mean", "norm", "std", "var"})  # only what is no index has them
_LITERALS = (cst.List, cst.Tuple, cst.Dict, cst.ListComp, cst.DictComp)


@dataclass(frozen=True, eq=False)
class Held:
    """A part of a value that still holds a graph, and the backward passes that went through it.

    `is_tensor` is False for a container of what holds it. A pass may be the function whose loss a framework goes back through.
    """

    part: Node
    passes: tuple[Node, ...]
    is_tensor: bool


@dataclass(frozen=True, eq=False)
class GivenGraph:
    """A call that gives a function a value whose graph was gone back through: `meter.update(loss)`.

    `value` is what the call gives, in `region`, the innermost loop around it, or else its function; `passes` are the backward
    passes that went through it.
    """

    call: cst.Call
    value: Node
    region: Region
    passes: tuple[Node, ...]


@dataclass(frozen=True, eq=False)
class BackwardPass:
    """A call of `backward` in a region, or of a function that calls it, and what it frees the graph of."""

    call: Node
    backward: Node
    freed: frozenset[Origin]


class Graphs:
    """The calls of `backward` in a file, and queries about the values that hold a graph."""

    def __init__(
        self,
        tree: Tree,
        names: Names,
        kinds: Kinds,
        flow: ValueFlow,
        calls_in_loop: CallsInLoop,
        recording: Recording,
    ) -> None:
        self._tree = tree
        self._names = names
        self._kinds = kinds
        self._flow = flow
        self._calls_in_loop = calls_in_loop
        self._recording = recording
        self._feeding: dict[BackwardPass, list[Origin]] = {}
        self._passes: dict[Region, list[BackwardPass]] = {}
        self._goes_back: dict[tuple[cst.FunctionDef, int], bool] = {}

    @cached_property
    def starts(self) -> list[tuple[cst.Call, cst.BaseExpression]]:
        """The calls of `backward` in source order, each with the loss that it starts from.

        Calls with a gradient of their own are left out, because they do not start from a loss.
        """
        calls = [call for call in self._tree.all(cst.Call) if is_backward(call)]
        return [(call, _start(call)) for call in calls if not _has_gradient(call)]

    @cached_property
    def regions(self) -> list[Region]:
        """The regions of this file that call `backward` themselves and free the graph, in source order."""
        calls = [call for call in self._tree.all(cst.Call) if is_backward(call) and not _retains(call)]
        found = (self._region(call) for call in calls)
        return list(dict.fromkeys(region for region in found if region is not None))

    def _region(self, call: cst.Call) -> Region | None:
        loops = self._tree.loops(call)
        home = self._tree.home(call)
        return loops[0] if loops else home if isinstance(home, cst.FunctionDef) else None

    # -- what backward passes free ----------------------------------------------------------------------------

    def passes_in(self, region: Region) -> list[BackwardPass]:
        """The backward passes of a region's own code, those in functions that it calls included."""
        if region not in self._passes:
            own = [call for call in self._tree.own(region, cst.Call) if self._region(call) is region]
            self._passes[region] = [found for call in own for found in self._passes_of(call, call, None, ())]
        return self._passes[region]

    def _passes_of(
        self, call: cst.Call, outermost: cst.Call, frame: Frame | None, within: tuple[Node, ...]
    ) -> Iterator[BackwardPass]:
        """The backward pass that a call runs, itself or in the functions of the project below it."""
        if is_backward(call):
            if not _retains(call):
                yield BackwardPass(outermost, call, frozenset(self._freed(_start(call), frame)))
            return
        left = _CALLS_DEEP - len(within)
        function = self._kinds.calls.callee(call) if left else None
        if function is None or function in within or not self._has_backward(function, left - 1):
            return
        inner = self._flow.frame(call, function, frame)
        if inner is not None:
            for below in self._tree.own(function, cst.Call):
                yield from self._passes_of(below, outermost, inner, (*within, function))

    def _has_backward(self, function: cst.FunctionDef, depth: int) -> bool:
        """Whether a function calls `backward`, or, so many calls deep, a function of the project that does."""
        key = function, depth
        if key not in self._goes_back:
            calls = self._tree.own(function, cst.Call)
            self._goes_back[key] = any(map(is_backward, calls)) or any(
                callee is not None and self._has_backward(callee, depth - 1)
                for callee in map(self._kinds.calls.callee, calls if depth else ())
            )
        return self._goes_back[key]

    def _freed(self, loss: Node, frame: Frame | None) -> Iterator[Origin]:
        """What makes a loss and certainly holds a graph: the expressions that it is a sum of, on each way."""
        return self._computed_from(self._flow.of(loss, (), frame).origins, self._summands)

    def _summands(self, node: Node, frame: Frame | None) -> Iterator[Node]:
        """The expressions that certainly hold a graph if a value does: `a` and `b` in `a + b`."""
        if isinstance(node, cst.BinaryOperation):
            yield from self._sides(node)
        elif isinstance(node, cst.UnaryOperation):
            yield node.expression
        elif isinstance(node, cst.AugAssign):
            yield node.target
            if isinstance(node.operator, (cst.AddAssign, cst.SubtractAssign)) and self._is_new(node):
                yield node.value
        elif isinstance(node, cst.Call):
            yield from self._operand(node)

    def _sides(self, node: cst.BinaryOperation) -> Sequence[Node]:
        if isinstance(node.operator, (cst.Add, cst.Subtract)):
            return [node.left, node.right]
        if isinstance(node.operator, (cst.Divide, cst.Power)):
            return [node.left]
        if not isinstance(node.operator, cst.Multiply):
            return []
        sides = [side for side in (node.left, node.right) if not self._is_number(side)]
        return sides if len(sides) == 1 else [side for side in sides if self._is_loss(side)]

    def _is_number(self, node: Node) -> bool:
        return self._kinds.number(node) is not None or self._kinds.is_setting(node)

    def _is_loss(self, node: Node) -> bool:
        """Whether a factor is certainly a loss, so that a product with it has its graph."""
        origins = self._flow.of(node).origins
        return all(
            isinstance(origin.node, cst.Call)
            and not origin.path
            and (
                self._kinds.kind(origin.node.func) is Kind.CRITERION
                or _LOSSES.fullmatch(self._names.qualified(origin.node.func) or "") is not None
            )
            for origin in origins
        )

    def _is_new(self, statement: cst.AugAssign) -> bool:
        """Whether the same pass has made what a statement adds to."""
        loops, target = self._tree.loops(statement), statement.target
        region = loops[0] if loops else self._tree.home(statement)
        bindings = self._names.bindings(target) if isinstance(target, cst.Name) else []
        return any(
            binding.how == "assign" and self._tree.contains(region, binding.node) for binding in bindings
        )

    def _operand(self, call: cst.Call) -> Iterator[Node]:
        """The tensor that a call computes from: `x` in `x.mean()`, `torch.mean(x)` and `scaler.scale(x)`."""
        first = call.args[0].value if call.args and not call.args[0].star else None
        called = self._names.qualified(call.func)
        if called is not None:
            package, _, name = called.rpartition(".")
            if first is not None and package == "torch" and name in differentiation().keeps:
                yield first
        elif isinstance(call.func, cst.Attribute) and call.func.attr.value in differentiation().keeps:
            yield call.func.value
        if first is not None and called_name(call) in (
            "scale",
            "scale_loss",
        ):  # of a gradient scaler, of Apex
            yield first

    def _parts(self, origin: Origin, below: _Below) -> list[Value]:
        """The values that an origin is computed from, or contains."""
        node, frame = origin.node, origin.frame
        if isinstance(node, _LITERALS):
            return [self._flow.of(node, (None,), frame)]
        if (
            isinstance(node, cst.Call)
            and self._names.qualified(node.func) in differentiation().joins.functions
        ):
            return [self._flow.of(arg.value, (None,), frame) for arg in node.args[:1]]
        return [self._flow.of(part, (), frame) for part in below(node, frame)]

    # -- what still holds a graph -----------------------------------------------------------------------------

    def held(self, value: Node, region: Region) -> Held | None:
        """The part of a value that still holds the graph of a pass after `backward` went through it.

        It is a variable, or a call of a function of the project that returns one; None if the value is detached, a number, or
        unknown.
        """
        return self._held(value, region, None)

    def _held(self, value: Node, region: Region, frame: Frame | None, at: Node | None = None) -> Held | None:
        passes = self.passes_in(region)
        passes = [found for found in passes if found.freed and not self._tree.apart(found.call, at or value)]
        if not passes:
            return None
        return self._part(value, passes, region, frame) or self._output(value, passes, region, frame)

    def part_of(self, value: Node, loss: Node, function: cst.FunctionDef) -> Held | None:
        """The part of a value that has one graph with the loss of a function: the loss is it, or a sum with it."""
        freed = frozenset(self._freed(loss, None))
        return self._part(value, [BackwardPass(function, function, freed)], function, None)

    def _part(
        self, value: Node, passes: Sequence[BackwardPass], region: Region, frame: Frame | None
    ) -> Held | None:
        """The part of a value that has the graph of what backward passes go through."""
        for operand in operands(value):
            whole = self._contents(operand, frame)
            if any(self._is_detached(origin) for origin in whole):
                continue
            carried = [origin for origin in self._carried(whole) if self._is_of_pass(origin, region)]
            met = [
                (found, origin)
                for found in passes
                if not self._excludes(found.call, operand)
                for origin in carried
                if _meets(origin, found.freed)
            ]
            if met and not any(map(self._recording.never_records, whole)):
                is_tensor = whole == self._flow.of(operand, (), frame).origins and not any(
                    _contains(origin, found.freed) for found, origin in met
                )
                return Held(operand, tuple(dict.fromkeys(found.backward for found, _ in met)), is_tensor)
        return None

    def _excludes(self, call: Node, operand: Node) -> bool:
        """Whether a value is only used where a backward pass has not run: equal conditions have equal outcomes."""
        if self._tree.apart(call, operand):
            return True
        runs, used = self._tree.conditions(call), self._tree.conditions(operand)
        return any(used.get(test, outcome) != outcome for test, outcome in runs.items())

    # -- outputs of the model that a pass trains --------------------------------------------------------------

    def _output(
        self, value: Node, passes: Sequence[BackwardPass], region: Region, frame: Frame | None
    ) -> Held | None:
        """The part of a value that is computed from an output of the model that backward passes go through.

        What the loss is computed from has the graph of the model; so has another output of the same call, if it has a mean.
        """
        is_averaged = any(called_name(call) in _AVERAGES for call in self._tree.within(value, cst.Call))
        for operand in operands(value):
            carried = list(self._carried(self._flow.of(operand, (), frame).origins))
            if any(self._is_detached(one) or self._recording.never_records(one) for one in carried):
                continue
            calls = [one.node for one in carried if isinstance(one.node, cst.Call)]
            has_mean = is_averaged or any(called_name(call) in _AVERAGES for call in calls)
            outputs = [one for one in carried if self._is_of_pass(one, region) and self._runs_model(one.node)]
            met = [one for one in passes if any(self._feeds(out, one, region, has_mean) for out in outputs)]
            if met:
                return Held(operand, tuple(dict.fromkeys(one.backward for one in met)), True)
        return None

    def _feeds(self, output: Origin, found: BackwardPass, region: Region, has_mean: bool) -> bool:
        """Whether a loss is computed from what a call of the trained model returns, or from another part of that."""
        feeding = [one for one in self._behind(found) if self._is_of_pass(one, region)]
        same = [one for one in feeding if one.node is output.node and one.frame is output.frame]
        if not same or not (has_mean or _meets(output, frozenset(same))):
            return False
        assert isinstance(output.node, cst.Call)
        model = self._calls_in_loop.variable(self._calls_in_loop.called(output.node))
        optimized = self._calls_in_loop.is_optimized(model) if model is not None else False
        if optimized is None:  # then it is the only model that the loss can have its graph from
            calls = [call for one in feeding for call in self._tree.within(one.node, cst.Call)]
            return not any(call is not output.node and self._runs_model(call) for call in calls)
        return optimized

    def _runs_model(self, node: Node) -> bool:
        called = self._calls_in_loop.called(node) if isinstance(node, cst.Call) else None
        return isinstance(called, (cst.Name, cst.Attribute)) and self._calls_in_loop.acts_as_model(called)

    def _behind(self, found: BackwardPass) -> list[Origin]:
        """All that the losses of a backward pass are computed from."""
        if found in self._feeding:
            return self._feeding[found]
        pending, seen = list(found.freed), dict[Origin, None]()
        while pending and len(seen) < _MOST_FEEDING:
            origin = pending.pop()
            if origin not in seen and isinstance(origin.node, (cst.BaseExpression, cst.AugAssign)):
                seen[origin] = None
                lengths = self._lengths(origin.node)
                for name in self._tree.within(origin.node, cst.Name):
                    if name not in lengths and self._names.bindings(name):
                        pending += self._flow.of(name, (), origin.frame).origins
        self._feeding[found] = list(seen)
        return self._feeding[found]

    def _lengths(self, node: Node) -> set[Node]:
        """The names in an expression that stand for numbers of steps, which have no graph: `n` in `pack_padded_sequence(x, n)`."""
        calls = [call for call in self._tree.within(node, cst.Call) if called_name(call) == _PACKS]
        given = [argument(call, "lengths", 1) for call in calls]
        return {name for one in given if one is not None for name in self._tree.within(one, cst.Name)}

    def _is_of_pass(self, origin: Origin, region: Region) -> bool:
        """Whether each pass makes a value anew."""
        in_pass = origin.frame is not None or isinstance(region, cst.FunctionDef)
        return in_pass or self._tree.contains(region, origin.node)

    def _contents(self, node: Node, frame: Frame | None) -> tuple[Origin, ...]:
        """The origins of a value, and those of its elements, if it is a container that the source fills."""
        found = self._flow.of(node, (), frame).origins
        if any(isinstance(origin.node, _LITERALS) for origin in found):
            return self._flow.of(node, (None,), frame).origins
        return found

    def _carried(self, origins: Iterable[Origin]) -> Iterator[Origin]:
        """What a value is computed from by operations that keep the graph."""
        return self._computed_from(origins, self._factors)

    def _computed_from(self, origins: Iterable[Origin], operands_of: _Below) -> Iterator[Origin]:
        """Origins, and what each is computed from or contains, as far as `operands_of` names it."""
        pending = [(origin, 0) for origin in origins]
        seen: set[Origin] = set()
        while pending:
            origin, depth = pending.pop()
            if origin in seen or depth > _DEPTH or is_name(origin.node, "None"):
                continue
            if is_integer(origin, self._names):
                continue
            seen.add(origin)
            yield origin
            below = self._parts(origin, operands_of)
            pending += [(found, depth + 1) for value in below for found in value.origins]

    def _factors(self, node: Node, frame: Frame | None) -> Iterator[Node]:
        """The expressions whose graph a value keeps, if they have one: also both factors of a product."""
        if isinstance(node, cst.BinaryOperation):
            yield from (node.left, node.right)
        elif isinstance(node, cst.AugAssign):
            yield from (node.target, node.value)
        else:
            yield from self._summands(node, frame)

    def _is_detached(self, origin: Origin) -> bool:
        """Whether code takes the graph away on a way that leads to a value: then it does so on purpose."""
        call = origin.node
        if isinstance(call, cst.Attribute):
            return call.attr.value == "data" and not is_packed(
                call.value, self._names, self._flow, origin.frame
            )
        if not isinstance(call, cst.Call):
            return False
        if self._names.qualified(call.func) is None and called_name(call) in differentiation().cuts.detaching:
            return True
        return self._names.qualified(call.func) in ("builtins.float", "torch.tensor")

    # -- functions that are given what holds a graph ----------------------------------------------------------

    def given(self, value: Node, function: cst.FunctionDef) -> tuple[Held, GivenGraph] | None:
        """The part of a value in a function that still holds a graph which a call gives to the function, with that call."""
        if not self._is_given(value, function, _GIVEN_DEEP):
            return None
        for sites in self._ways_to(function, (function,)):
            region, frame = self._region(sites[0][0]), self._framed(sites)
            held = (
                self._held(value, region, frame, sites[0][0])
                if region is not None and frame is not None
                else None
            )
            if region is None or held is None:
                continue
            arguments = (self._held(arg.value, region, None) for arg in sites[0][0].args)
            given = next((found for found in arguments if found is not None), None)
            if given is not None:
                return held, GivenGraph(sites[0][0], given.part, region, held.passes)
        return None

    def _is_given(self, value: Node, function: cst.FunctionDef, depth: int) -> bool:
        """Whether a value is made of a parameter of a function: this costs less than to look for its calls."""
        for name in self._tree.within(value, cst.Name) if depth else ():
            if is_name(name, "self"):
                continue
            for binding in self._names.bindings(name):
                if isinstance(binding.node, cst.Param):
                    given = self._tree.contains(function.params, binding.node)
                else:
                    within = binding.value is not None and self._tree.contains(function, binding.node)
                    given = within and self._is_given(binding.value or name, function, depth - 1)
                if given:
                    return True
        return False

    def _ways_to(self, function: cst.FunctionDef, seen: tuple[Node, ...]) -> Iterator[_Way]:
        """The calls that lead to a function, the outermost first: each call of it, and each that leads to that."""
        for site in self._kinds.calls.sites(function):
            home = self._tree.home(site)
            if home in seen[:1]:
                continue
            yield ((site, function),)
            if isinstance(home, cst.FunctionDef) and home not in seen and len(seen) < _CALLS_DEEP:
                for way in self._ways_to(home, (*seen, home)):
                    yield (*way, (site, function))

    def _framed(self, way: _Way) -> Frame | None:
        frame: Frame | None = None
        for site, function in way:
            frame = self._flow.frame(site, function, frame)
            if frame is None:
                return None
        return frame


def _meets(origin: Origin, freed: frozenset[Origin]) -> bool:
    """Whether the graph of a value was freed, or of something in it."""
    return any(
        origin.node is other.node and origin.frame is other.frame and _is_part(origin.path, other.path)
        for other in freed
    )


def _is_part(path: Path, freed: Path) -> bool:
    """Whether a path leads to what another leads to, into it, or to a container of it."""
    same = all(one is None or other is None or one == other for one, other in zip(path, freed, strict=False))
    return same and not any(isinstance(key, str) and key != ":" for key in path[len(freed) :])


def _contains(origin: Origin, freed: frozenset[Origin]) -> bool:
    """Whether a value is a container of something whose graph was freed."""
    paths = [other.path for other in freed if origin.node is other.node and origin.frame is other.frame]
    return all(len(origin.path) < len(path) for path in paths)


def operands(value: Node) -> Iterator[Variable | cst.Call]:
    """The variables and calls that a value is computed from by operations that keep the graph."""
    if isinstance(value, (cst.Name, cst.Subscript)) or (
        isinstance(value, cst.Attribute) and dotted(value) is not None
    ):
        yield value
    elif isinstance(value, cst.UnaryOperation):
        yield from operands(value.expression)
    elif isinstance(value, cst.BinaryOperation):
        yield from operands(value.left)
        yield from operands(value.right)
    elif isinstance(value, cst.IfExp):
        yield from operands(value.body)
        yield from operands(value.orelse)
    elif isinstance(value, cst.Call):
        if isinstance(value.func, cst.Attribute) and value.func.attr.value in differentiation().keeps:
            yield from operands(value.func.value)
        else:
            yield value


def _start(call: cst.Call) -> cst.BaseExpression:
    """The loss that a `backward` starts from: `loss.backward()`, `accelerator.backward(loss)`."""
    assert isinstance(call.func, cst.Attribute)
    given = _positional(call)
    return given[0] if given and _is_of_engine(call) else call.func.value


def _has_gradient(call: cst.Call) -> bool:
    """Whether a `backward` takes more than a loss: `outputs.backward(gradient)`, a hand-written `backward(x, y)`."""
    keywords = {arg.keyword.value for arg in call.args if arg.keyword is not None}
    return bool(keywords & {"gradient", "grad_tensors"}) or len(_positional(call)) > _is_of_engine(call)


def _positional(call: cst.Call) -> list[cst.BaseExpression]:
    return [arg.value for arg in call.args if arg.keyword is None and not arg.star]


def _is_of_engine(call: cst.Call) -> bool:
    """Whether a `backward` takes the loss as an argument."""
    assert isinstance(call.func, cst.Attribute)
    name = (dotted(call.func.value) or "").rpartition(".")[2]
    return call.func.attr.value == "manual_backward" or name.endswith(_ENGINES)


def _retains(call: cst.Call) -> bool:
    """Whether a call keeps the graph, so that a later `backward` may go through it again."""
    kept = [
        arg
        for arg in call.args
        if arg.keyword is not None and arg.keyword.value in ("retain_graph", "create_graph")
    ]
    return any(not is_name(arg.value, "False") for arg in kept)
