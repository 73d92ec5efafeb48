"""Autograd graphs: values that still hold a graph after `backward` went through it in the same iteration."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import libcst as cst

from ta_lint.facts.loops.loops import Region, is_backward
from ta_lint.facts.values.calls import Calls, called_name
from ta_lint.facts.values.names import Binding, Names
from ta_lint.syntax.tree import LOOPS, Node, Tree, dotted, is_name

Variable = cst.Name | cst.Attribute

_DEPTH = 4

# Tensor methods whose result has the graph of the tensor.
_DIFFERENTIABLE = frozenset(
    "abs add bfloat16 clone contiguous cpu cuda div double exp flatten float half log mean mul neg pow reshape sqrt "
    "squeeze sub sum to type type_as unsqueeze view".split()
)

# Objects whose `backward` takes the loss as an argument: of accelerate, Fabric, DeepSpeed, Apex.
_ENGINES = ("accelerator", "engine", "fabric", "model", "optimizer", "self", "strategy", "trainer")


_NO_PARAMETERS: frozenset[cst.Param] = frozenset()

# What takes the graph away from what is returned.
_DETACHES = frozenset("detach detach_ item numpy tolist float".split())


@dataclass(frozen=True, eq=False)
class GivenGraph:
    """A call that gives a function a value whose graph was gone back through: `meter.update(loss)`.

    `value` is what holds the graph there, in `region`, the innermost loop around the call, or else its function.
    """

    call: cst.Call
    value: Node
    region: Region


@dataclass(frozen=True, eq=False)
class BackwardCall:
    """A call of `backward` that frees the graph it goes through.

    `call` is the `backward`, or the call of a function of the project that goes back through what it is given. `region` is the
    innermost loop around the call, or else its function. `losses` are the variables that the call starts from and the
    variables that these are sums of: all of them certainly hold a graph.
    """

    call: cst.Call
    region: Region
    losses: tuple[Variable, ...]


class Graphs:
    """The calls of `backward` in a file, and queries about the values that hold a graph."""

    def __init__(self, tree: Tree, names: Names, calls: Calls) -> None:
        self._tree = tree
        self._names = names
        self._calls = calls
        self._returns: dict[tuple[cst.FunctionDef, int | None], bool] = {}
        self._gone_through: dict[cst.FunctionDef, frozenset[cst.Param]] = {}
        self._in_region: dict[Region, list[BackwardCall]] = {}

    @cached_property
    def starts(self) -> list[tuple[cst.Call, cst.BaseExpression]]:
        """The calls of `backward` in source order, each with the loss that it starts from.

        Calls with a gradient of their own are left out, because they do not start from a loss.
        """
        calls = [call for call in self._tree.all(cst.Call) if is_backward(call)]
        return [(call, _start(call)) for call in calls if not _has_gradient(call)]

    @cached_property
    def backwards(self) -> list[BackwardCall]:
        """The calls of `backward` in this file whose loss is a variable, in source order."""
        calls = (call for call in self._tree.all(cst.Call) if is_backward(call))
        return [found for call in calls if (found := self._backward(call)) is not None]

    def backwards_in(self, region: Region) -> list[BackwardCall]:
        """The backward passes in a region's own code, in this file or another, those in functions that it calls included."""
        if region not in self._in_region:
            calls = self._tree.own(region, cst.Call)
            found = (self._backward(call) or self._handed_back(call) for call in calls)
            self._in_region[region] = [one for one in found if one is not None and one.region is region]
        return self._in_region[region]

    def _backward(self, call: cst.Call) -> BackwardCall | None:
        region = self._region(call) if is_backward(call) and not _retains(call) else None
        if region is None:
            return None
        return BackwardCall(call, region, tuple(self._sources(_start(call), region, _DEPTH)))

    def _handed_back(self, call: cst.Call) -> BackwardCall | None:
        """The backward pass in a function of the project, through what this call gives to it."""
        region = self._region(call) if call.args and not is_backward(call) else None
        function = self._calls.callee(call) if region is not None else None
        if region is None or function is None:
            return None
        given = self._calls.arguments(call, function)
        values = [given[param] for param in self._goes_through(function) if param in given]
        losses = [source for value in values for source in self._sources(value, region, _DEPTH)]
        return BackwardCall(call, region, tuple(losses)) if losses else None

    def _goes_through(self, function: cst.FunctionDef) -> frozenset[cst.Param]:
        """The parameters whose graph a function frees by a backward pass."""
        if function not in self._gone_through:
            self._gone_through[function] = _NO_PARAMETERS  # it may call itself
            regions = [function, *self._tree.own(function, *LOOPS)]
            losses = [
                loss
                for region in regions
                for backward in self.backwards_in(region)
                for loss in backward.losses
            ]
            params = [self._parameter(loss, function) for loss in losses]
            self._gone_through[function] = frozenset(param for param in params if param is not None)
        return self._gone_through[function]

    def _parameter(self, variable: Node, function: cst.FunctionDef) -> cst.Param | None:
        """The parameter of a function that a variable is, unless the function binds it again."""
        binding = self._names.definition(variable) if isinstance(variable, cst.Name) else None
        if binding is None or not isinstance(binding.node, cst.Param):
            return None
        return binding.node if self._tree.contains(function.params, binding.node) else None

    def _region(self, call: cst.Call) -> Region | None:
        loops = self._tree.loops(call)
        home = self._tree.home(call)
        return loops[0] if loops else home if isinstance(home, cst.FunctionDef) else None

    def _sources(self, expression: Node, region: Region, depth: int) -> Iterator[Variable]:
        """The variables that an expression is a sum of, itself or through definitions of its variables."""
        for variable in _variables(expression):
            yield variable
            binding = self._names.definition(variable) if isinstance(variable, cst.Name) else None
            if depth == 0 or binding is None or not self._tree.contains(region, binding.node):
                continue
            if binding.how == "assign" and binding.value is not None:
                yield from self._sources(binding.value, region, depth - 1)
            elif (scaled := _scaled_by_apex(binding)) is not None:
                yield from self._sources(scaled, region, depth - 1)

    def held(self, value: Node, region: Region) -> Node | None:
        """The part of a value that still holds the graph of an iteration after `backward` went through it.

        It is a variable, or a call of a function of the project that returns one; None if the value is detached, a number, or
        unknown.
        """
        for operand in operands(value):
            if isinstance(operand, cst.Call):
                if self._returns_graph(operand):
                    return operand
            elif self._holds(operand, region):
                return operand
        return None

    def given(self, value: Node, function: cst.FunctionDef) -> tuple[Node, GivenGraph] | None:
        """The part of a value that is a parameter of a function, with a call that gives it what still holds a graph."""
        for operand in operands(value):
            param = self._parameter(operand, function)
            found = self._given_to(function, param, (function,)) if param is not None else None
            if found is not None:
                return operand, found
        return None

    def _given_to(
        self, function: cst.FunctionDef, param: cst.Param, seen: tuple[Node, ...]
    ) -> GivenGraph | None:
        for site in self._calls.sites(function):
            value, region = self._calls.arguments(site, function).get(param), self._region(site)
            if value is None or region is None:
                continue
            held = self.held(value, region)
            if held is not None:
                return GivenGraph(site, held, region)
            home = self._tree.home(site)
            if not isinstance(home, cst.FunctionDef) or home in seen:
                continue
            for operand in operands(value):
                outer = self._parameter(operand, home)
                found = self._given_to(home, outer, (*seen, home)) if outer is not None else None
                if found is not None:
                    return found
        return None

    def passes(self, held: Node, region: Region) -> list[cst.Call]:
        """The backward passes that go through the graph of what `held` returns."""
        binding = self._names.definition(held) if isinstance(held, cst.Name) else None
        made = held if isinstance(held, cst.Call) else binding.value if binding is not None else None
        function = self._calls.callee(made) if isinstance(made, cst.Call) else None
        regions = [found for found in (function, region) if found is not None]
        found = [backward.call for place in regions for backward in self.backwards_in(place)]
        return list(dict.fromkeys(found))

    def _holds(self, variable: Variable, region: Region) -> bool:
        return any(
            not self._tree.apart(backward.call, variable)
            and any(self._same(loss, variable, region) for loss in backward.losses)
            for backward in self.backwards_in(region)
        ) or (isinstance(variable, cst.Name) and self._is_returned_graph(variable, region))

    def _same(self, loss: Variable, use: Variable, region: Region) -> bool:
        """Whether a variable holds the same graph in two places of one iteration."""
        name = dotted(use)
        if name is None or dotted(loss) != name:
            return False
        tree = self._tree
        first, second = sorted((loss, use), key=tree.order)
        bindings = self._names.bindings(_owner(use))
        bound = [b for b in bindings if b.node is not region and tree.contains(region, b.node)]
        between = [binding for binding in bound if self._is_between(binding, first, second)]
        before = [binding for binding in bound if tree.before(binding.node, first)]
        if not before or not all(self._derives(binding, name) for binding in between):
            return False
        attributes = [
            target for target in tree.own(region, cst.AssignTarget) if dotted(target.target) == name
        ]
        return isinstance(use, cst.Name) or not any(
            tree.before(first, target) and tree.before(target, second) for target in attributes
        )

    def _is_between(self, binding: Binding, first: Node, second: Node) -> bool:
        """Whether a statement binds a name after `first` was read in it, and before `second` is."""
        tree = self._tree
        statement = tree.statement(binding.node)
        after = tree.before(first, binding.node) or statement is tree.statement(first)
        return after and tree.before(binding.node, second) and statement is not tree.statement(second)

    def _derives(self, binding: Binding, name: str) -> bool:
        """Whether a binding keeps the graph of the name's old value: `loss = loss / steps`, `loss *= scale`."""
        if binding.how == "augment":
            return True
        return (
            binding.how == "assign"
            and binding.value is not None
            and any(dotted(operand) == name for operand in operands(binding.value))
        )

    # -- functions that return a loss after going back through it ---------------------------------------------

    def _is_returned_graph(self, variable: cst.Name, region: Region) -> bool:
        """Whether the region binds a variable to the result of such a function, or to a part of it."""
        binding = self._names.definition(variable)
        if binding is None or not isinstance(binding.value, cst.Call):
            return False
        if not self._tree.contains(region, binding.node):
            return False
        if binding.how == "assign":
            return self._returns_graph(binding.value)
        place = _place_in_tuple(binding.node, variable.value) if binding.how == "unpack" else None
        return place is not None and self._returns_graph(binding.value, place)

    def _returns_graph(self, call: cst.Call, place: int | None = None) -> bool:
        """Whether a call returns a graph that was gone back through, by itself or at this place of a tuple."""
        function = self._calls.callee(call)
        if function is None:
            return False
        if (function, place) not in self._returns:
            self._returns[function, place] = False  # it may call itself
            self._returns[function, place] = self._function_returns_graph(function, place)
        return self._returns[function, place]

    def _function_returns_graph(self, function: cst.FunctionDef, place: int | None) -> bool:
        """Whether one `return` after a backward pass holds its graph, and no other one frees a graph on purpose."""
        passes = self.backwards_in(function)
        if not passes or self._tree.own(function, cst.Yield):
            return False
        holding = False
        for statement in self._tree.own(function, cst.Return):
            value = _at_place(statement.value, place)
            later = any(self._tree.before(backward.call, statement) for backward in passes)
            if later and value is not None and self.held(value, function) is not None:
                holding = True
            elif not self._goes_elsewhere(value):
                return False
        return holding

    def _goes_elsewhere(self, value: Node | None) -> bool:
        """Whether a function returns nothing, a number, or what another one returns: `return self.other_step(batch)`."""
        if value is None or isinstance(value, (cst.Integer, cst.Float)) or is_name(value, "None"):
            return True
        if not isinstance(value, cst.Call):
            return False
        return self._calls.callee(value) is not None or called_name(value) not in _DETACHES


def operands(value: Node) -> Iterator[Variable | cst.Call]:
    """The variables and calls that a value is computed from by operations that keep the graph."""
    if isinstance(value, cst.Name) or (isinstance(value, cst.Attribute) and dotted(value) is not None):
        yield value
    elif isinstance(value, cst.UnaryOperation):
        yield from operands(value.expression)
    elif isinstance(value, cst.BinaryOperation):
        yield from operands(value.left)
        yield from operands(value.right)
    elif isinstance(value, cst.Call):
        if isinstance(value.func, cst.Attribute) and value.func.attr.value in _DIFFERENTIABLE:
            yield from operands(value.func.value)
        else:
            yield value


def summands(value: Node) -> Iterator[Node]:
    """The expressions that certainly hold a graph if the value does: `a` and `b` in `(a + b.mean()) / 4`.

    A product of two variables has none, because either factor may hold the graph.
    """
    if isinstance(value, cst.UnaryOperation):
        yield from summands(value.expression)
    elif isinstance(value, cst.BinaryOperation):
        if isinstance(value.operator, (cst.Add, cst.Subtract)):
            yield from summands(value.left)
            yield from summands(value.right)
        elif isinstance(value.operator, cst.Divide):
            yield from summands(value.left)
        elif isinstance(value.operator, cst.Multiply):
            sides = [
                side for side in (value.left, value.right) if not isinstance(side, (cst.Integer, cst.Float))
            ]
            if len(sides) == 1:
                yield from summands(sides[0])
    elif isinstance(value, cst.Call) and isinstance(value.func, cst.Attribute):
        if value.func.attr.value in _DIFFERENTIABLE:
            yield from summands(value.func.value)
        elif value.func.attr.value == "scale" and len(value.args) == 1:  # of a gradient scaler
            yield from summands(value.args[0].value)
        else:
            yield value
    else:
        yield value


def _variables(value: Node) -> Iterator[Variable]:
    """The variables among the summands of a value."""
    for summand in summands(value):
        if isinstance(summand, cst.Name) or (
            isinstance(summand, cst.Attribute) and dotted(summand) is not None
        ):
            yield summand


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


def _scaled_by_apex(binding: Binding) -> Node | None:
    """The loss behind `with amp.scale_loss(loss, optimizer) as scaled`."""
    call = binding.value
    scales = binding.how == "with" and isinstance(call, cst.Call) and called_name(call) == "scale_loss"
    return call.args[0].value if scales and isinstance(call, cst.Call) and call.args else None


def _retains(call: cst.Call) -> bool:
    """Whether a call keeps the graph, so that a later `backward` may go through it again."""
    kept = [
        arg
        for arg in call.args
        if arg.keyword is not None and arg.keyword.value in ("retain_graph", "create_graph")
    ]
    return any(not is_name(arg.value, "False") for arg in kept)


def _at_place(value: Node | None, place: int | None) -> Node | None:
    """What a `return` gives at a place of its tuple; the value itself if no place is asked for."""
    if place is None or value is None:
        return value
    if not isinstance(value, cst.Tuple) or place >= len(value.elements):
        return None
    return value.elements[place].value


def _place_in_tuple(statement: Node, name: str) -> int | None:
    """The place at which `loss, outputs = step(batch)` binds a name."""
    if not isinstance(statement, cst.Assign) or len(statement.targets) != 1:
        return None
    target = statement.targets[0].target
    if not isinstance(target, (cst.Tuple, cst.List)):
        return None
    names = [dotted(element.value) for element in target.elements]
    starred = any(isinstance(element, cst.StarredElement) for element in target.elements)
    return names.index(name) if name in names and not starred else None


def _owner(variable: Variable) -> cst.Name:
    while isinstance(variable, cst.Attribute):
        assert isinstance(variable.value, (cst.Name, cst.Attribute))
        variable = variable.value
    return variable
