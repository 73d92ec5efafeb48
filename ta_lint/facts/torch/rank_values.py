"""Values that each rank of a distributed run has for itself: its losses, its clock, and what is counted and decided by them.

What is marked is the statement that puts a value into a variable, or an attribute of `self` for its whole class. A value is a rank's own if it comes from
the loss that goes backward, from batches of a `DistributedSampler`, or from the clock. `counter += 1` and `stop = True` are so as
well, below a condition on such a value or on the rank. What ranks agree on is nobody's own, wherever it is used.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.facts.loops.loops import is_backward
from ta_lint.facts.torch.agreeing import Agreeing
from ta_lint.facts.torch.ranks import Ranks
from ta_lint.facts.values.calls import called_name
from ta_lint.facts.values.classes import Classes
from ta_lint.facts.values.kinds import Kinds
from ta_lint.facts.values.loaders import Loaders
from ta_lint.facts.values.names import Names
from ta_lint.syntax.tree import FUNCTIONS, Node, Tree, attribute_of_self, children, dotted

_SAMPLER = "torch.utils.data.DistributedSampler"
_CLOCK = regex(r"time\.(time|monotonic|perf_counter|process_time)(_ns)?|datetime\.datetime\.(now|utcnow)")
_COMPUTES = regex(r"(torch|math|numpy|builtins|statistics|copy|sklearn)\..*")
# What all ranks have in common of different values: shapes, types and lengths.
_IN_COMMON = regex(
    r"builtins\.(len|isinstance|hasattr|type|range|print|open|str)|torch\.(zeros|ones|empty)_like"
)
_METADATA = frozenset("shape size dim ndim dtype device numel requires_grad grad_fn __len__".split())
_GATHERS = frozenset({"append", "extend", "add"})
_LITERALS = (cst.Integer, cst.Float, cst.Name, cst.UnaryOperation)

Key = tuple[Node, str]
"""A variable as one statement binds it, or an attribute of an object that it binds: the statement, or the class of `self`, and the name."""


@dataclass(frozen=True, eq=False)
class _Flow:
    """A value that is put into a variable at a node; `counts` says that it is added to what is there."""

    target: Key
    value: Node
    at: Node
    counts: bool = False

    @property
    def is_binding(self) -> bool:
        return isinstance(self.at, (cst.Assign, cst.AnnAssign, cst.NamedExpr))


class RankValues:
    """Queries about what differs among ranks."""

    def __init__(
        self, tree: Tree, names: Names, classes: Classes, kinds: Kinds, loaders: Loaders, ranks: Ranks
    ) -> None:
        self._tree = tree
        self._names = names
        self._classes = classes
        self._kinds = kinds
        self._loaders = loaders
        self._ranks = ranks
        self._agreeing = Agreeing(tree, names, classes, kinds)
        self._returns: dict[cst.FunctionDef, list[Node]] = {}

    def differ(self, expression: Node) -> bool:
        """Whether an expression is computed from what one rank has for itself."""
        return self._is_own(expression, self._own)

    # -- the variables --------------------------------------------------------------------------------------------

    @cached_property
    def _own(self) -> set[Key]:
        own = {key for key in self._seeds() if not self._agreed(key)}
        for _ in range(len(self._flows) + 1):
            before = len(own)
            for flow in self._flows:
                if flow.target not in own and not self._agreed(flow.target) and self._brings(flow, own):
                    own.add(flow.target)
            if len(own) == before:
                break
        return own

    def _brings(self, flow: _Flow, own: set[Key]) -> bool:
        if self._is_own(flow.value, own):
            return True
        if isinstance(flow.at, cst.AugAssign) and self._is_own(flow.at.target, own):
            return True
        if not flow.counts and not self._is_literal(flow.value):
            return False
        return self._is_under_own(flow.at, own)

    def _is_literal(self, value: Node) -> bool:
        return isinstance(value, _LITERALS) and (
            self._kinds.number(value) is not None or self._kinds.boolean(value) is not None
        )

    def _is_under_own(self, node: Node, own: set[Key]) -> bool:
        """Whether a condition on the rank, or on what it has for itself, decides whether a line runs."""
        if self._ranks.guard(node) is not None:
            return True
        child = node
        for above in self._tree.ancestors(node):
            if isinstance(above, FUNCTIONS):
                return False
            if isinstance(above, cst.If) and child is not above.test and self._is_own(above.test, own):
                return True
            child = above
        return False

    def _seeds(self) -> Iterator[Key]:
        for root in self._roots:
            for call in self._tree.within(root, cst.Call):
                loss = _loss_of(call) if is_backward(call) else None
                yield from self._uses(loss) if loss is not None else ()
            for loop in self._tree.within(root, cst.For, cst.CompFor):
                if self._is_sharded(loop.iter):
                    yield from self._keys(self._item(loop), loop)

    def _is_sharded(self, iterable: Node) -> bool:
        """Whether each rank gets a part of its own of what an iterable yields."""
        found = self._loaders.behind(iterable)
        return bool(found) and all(
            (given := loader.given("sampler")) is not None
            and any(
                isinstance(value, cst.Call) and self._names.qualified(value.func) == _SAMPLER
                for value in self._loaders.alternatives(given)
            )
            for loader in found
        )

    @cached_property
    def _roots(self) -> list[cst.Module]:
        """This file, and those with functions that it calls."""
        functions = (self._agreeing.function(call) for call in self._tree.all(cst.Call))
        others = (self._tree.root_of(function) for function in functions if function is not None)
        return list(dict.fromkeys([self._tree.root, *others]))

    @cached_property
    def _flows(self) -> list[_Flow]:
        found = (flow for root in self._roots for flow in self._flows_in(root))
        return [flow for flow in found if not self._ranks.runs_alone(flow.at)]

    def _flows_in(self, root: cst.Module) -> Iterator[_Flow]:
        for node in self._tree.within(root, cst.Assign, cst.AnnAssign, cst.NamedExpr):
            targets = [one.target for one in node.targets] if isinstance(node, cst.Assign) else [node.target]
            for target in targets if node.value is not None else []:
                yield from self._put(target, node.value, node)
        for node in self._tree.within(root, cst.AugAssign):
            yield from (_Flow(key, node.value, node, counts=True) for key in self._keys(node.target, node))
        for node in self._tree.within(root, cst.For, cst.CompFor):
            yield from (_Flow(key, node.iter, node) for key in self._keys(self._item(node), node))
        for call in self._tree.within(root, cst.Call):
            yield from self._handed_over(call)

    def _put(self, target: Node, value: Node, at: Node) -> Iterator[_Flow]:
        if isinstance(target, (cst.Tuple, cst.List)) and isinstance(value, (cst.Tuple, cst.List)):
            for one, given in zip(target.elements, value.elements, strict=False):
                yield from self._put(one.value, given.value, at)
        else:
            yield from (_Flow(key, value, at) for key in self._keys(target, at))

    def _handed_over(self, call: cst.Call) -> Iterator[_Flow]:
        """What a call puts into the object that it is called on, or into the parameters of another method of `self`."""
        function = self._agreeing.function(call)
        receiver = call.func.value if isinstance(call.func, cst.Attribute) else call.func
        if isinstance(receiver, cst.Name) and receiver.value in ("self", "cls"):
            for param, value in self._kinds.calls.arguments(call, function).items() if function else ():
                yield _Flow((param, param.name.value), value, call)
            return
        is_method = function is not None and isinstance(self._tree.home(function), cst.ClassDef)
        if not is_method and called_name(call) not in _GATHERS:
            return
        if not self._agreeing.does(call):
            # `stopper(score)` on one rank: it counts there, and nowhere else
            counts = function is not None and function.name.value == "__call__"
            yield from (
                _Flow(key, arg.value, call, counts) for key in self._uses(receiver) for arg in call.args
            )

    # -- what ranks agree on --------------------------------------------------------------------------------------

    def _agreed(self, key: Key) -> bool:
        return _is_in(key, self._shared)

    @cached_property
    def _shared(self) -> set[Key]:
        """The variables on which ranks agree somewhere in their function, and those that are made of them."""
        shared = set(self._given_to_collectives())
        for _ in range(len(self._flows) + 1):
            before = len(shared)
            shared |= {
                flow.target
                for flow in self._flows
                if flow.is_binding and flow.target not in shared and self._is_shared(flow, shared)
            }
            if len(shared) == before:
                break
        return shared

    def _given_to_collectives(self) -> Iterator[Key]:
        for root in self._roots:
            for call in self._tree.within(root, cst.Call):
                if not self._agreeing.is_named(call) or not self._agreeing.is_in_place(call):
                    continue
                receiver = [call.func.value] if isinstance(call.func, cst.Attribute) else []
                for node in (*receiver, *(arg.value for arg in call.args)):
                    for name in self._tree.within(node, cst.Name, cst.Attribute):
                        yield from self._uses(name)

    def _is_shared(self, flow: _Flow, shared: set[Key]) -> bool:
        """Whether a value is what ranks agree on, or may be: `loss = f(loss)` of a function that is not known."""
        calls = self._tree.within(flow.value, cst.Call)
        if any(self._agreeing.does(call) or self._is_remade(flow, call) for call in calls):
            return True
        names = self._tree.within(flow.value, cst.Name, cst.Attribute)
        return any(key in shared for name in names for key in self._uses(name))

    def _is_remade(self, flow: _Flow, call: cst.Call) -> bool:
        return self._is_unknown(call) and any(dotted(arg.value) == flow.target[1] for arg in call.args)

    def _is_unknown(self, call: cst.Call) -> bool:
        """Whether a call is of an imported function that neither the project nor torch has: it may reduce what it is given."""
        called = self._names.qualified(call.func)
        return (
            called is not None and not _COMPUTES.fullmatch(called) and self._agreeing.function(call) is None
        )

    # -- expressions ----------------------------------------------------------------------------------------------

    def _is_own(self, node: Node, own: set[Key]) -> bool:
        if isinstance(node, cst.Call):
            return self._is_own_result(node, own)
        if isinstance(node, (cst.Name, cst.Attribute)):
            return self._is_own_name(node, own)
        if isinstance(node, (cst.Lambda, cst.FormattedString)):
            return False
        if isinstance(node, cst.Comparison) and any(
            isinstance(one.operator, (cst.Is, cst.IsNot, cst.In, cst.NotIn)) for one in node.comparisons
        ):
            return False
        return any(self._is_own(child, own) for child in _operands(node))

    def _is_own_name(self, node: cst.Name | cst.Attribute, own: set[Key]) -> bool:
        if isinstance(node, cst.Attribute) and dotted(node) is None:
            inner = node.value
            return node.attr.value not in _METADATA and self._is_own(inner, own)
        uses = self._uses(node)
        return not any(map(self._agreed, uses)) and any(_is_in(key, own) for key in uses)

    def _is_own_result(self, call: cst.Call, own: set[Key]) -> bool:
        called = self._names.qualified(call.func) or ""
        if _CLOCK.fullmatch(called):
            return True
        if (
            self._agreeing.does(call)
            or _IN_COMMON.fullmatch(called)
            or called_name(call) in _METADATA
            or self._is_unknown(call)
        ):
            return False
        function = self._agreeing.function(call)
        if function is not None and any(self._is_own(value, own) for value in self._returned(function)):
            return True
        if isinstance(call.func, cst.Attribute) and self._is_own(call.func.value, own):
            return True
        is_known = function is not None or _COMPUTES.fullmatch(called) or self._is_object(call.func)
        return bool(is_known) and any(self._is_own(arg.value, own) for arg in call.args)

    def _is_object(self, called: Node) -> bool:
        """Whether what is called is an object, such as a model or a criterion, and no metric, which may reduce by itself."""
        name = dotted(called)
        if name is None or "metric" in name.lower() or self._names.qualified(called) is not None:
            return False
        if isinstance(called, cst.Name):
            return True
        klass, attribute = self._tree.enclosing(called, cst.ClassDef), attribute_of_self(called)
        return klass is not None and attribute is not None and bool(self._classes.attribute(klass, attribute))

    def _returned(self, function: cst.FunctionDef) -> list[Node]:
        if function not in self._returns:
            values = (one.value for one in self._tree.own(function, cst.Return))
            self._returns[function] = [value for value in values if value is not None]
        return self._returns[function]

    # -- keys -----------------------------------------------------------------------------------------------------

    def _keys(self, target: Node, at: Node) -> Iterator[Key]:
        """The variables that a statement binds, or the objects whose attributes and elements it sets."""
        if isinstance(target, (cst.Tuple, cst.List)):
            for element in target.elements:
                yield from self._keys(element.value, at)
        elif isinstance(target, cst.Name):
            yield at, target.value
        else:
            yield from self._uses(target)

    def _uses(self, node: Node) -> list[Key]:
        """The variables that a name or attribute may stand for, as each statement binds them that may have run last."""
        while isinstance(node, cst.Subscript):  # `losses["train"]` is of `losses`
            node = node.value
        name = dotted(node)
        if name is None or name in ("self", "cls"):
            return []
        if name.startswith("self."):
            klass = self._tree.enclosing(node, cst.ClassDef)
            return [(klass, name)] if klass is not None else []
        while isinstance(node, cst.Attribute):
            node = node.value
        return (
            [(binding.node, name) for binding in self._names.reaching(node)]
            if isinstance(node, cst.Name)
            else []
        )

    def _item(self, loop: cst.For | cst.CompFor) -> Node:
        """The target of a loop, without the index of `enumerate` and the key of `items`, which ranks have in common."""
        target = loop.target
        if isinstance(target, cst.Tuple) and len(target.elements) == 2 and self._counts(loop.iter):
            return target.elements[1].value
        return target

    def _counts(self, iterable: Node, depth: int = 4) -> bool:
        """Whether `enumerate` or `items` gives the pairs, perhaps through a variable and what shows progress: `tqdm(enumerate(loader))`."""
        made = self._kinds.origin(iterable)
        if not isinstance(made, cst.Call) or not depth:
            return False
        name = called_name(made)
        wraps = made.args and name != "zip" and made.args[0].keyword is None
        return name in ("enumerate", "items") or (bool(wraps) and self._counts(made.args[0].value, depth - 1))


def _is_in(key: Key, marked: set[Key]) -> bool:
    """Whether a variable, or what it is an attribute of, is marked, and it is more than a shape or a type of that."""
    scope, parts = key[0], key[1].split(".")
    return any(
        (scope, ".".join(parts[:count])) in marked and _METADATA.isdisjoint(parts[count:])
        for count in range(1, len(parts) + 1)
    )


def _loss_of(call: cst.Call) -> Node | None:
    """The variable that a backward pass starts from: of `loss`, `(loss / 4)`, `scaler.scale(loss)`, `accelerator.backward(loss)`."""
    node: Node = call.args[0].value if call.args else call.func
    if not call.args or call.args[0].keyword is not None:
        node = call.func.value if isinstance(call.func, cst.Attribute) else call.func
    while not isinstance(node, (cst.Name, cst.Attribute)):
        if isinstance(node, cst.BinaryOperation):
            node = node.left
        elif isinstance(node, cst.Call) and node.args:
            node = node.args[0].value
        elif isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
            node = node.func.value
        else:
            return None
    return node


def _operands(node: Node) -> list[Node]:
    """The expressions that the value of an expression is made of."""
    if isinstance(node, cst.IfExp):
        return [node.test, node.body, node.orelse]
    if isinstance(node, (cst.ListComp, cst.GeneratorExp, cst.SetComp)):
        return [node.elt]
    if isinstance(node, cst.Subscript):
        return [node.value]
    return children(node)
