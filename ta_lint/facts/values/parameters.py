"""Parameters: the layers that a model certainly has, and the parameters that an optimizer was built with."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.facts.values.classes import Classes
from ta_lint.facts.values.kinds import Kind, Kinds
from ta_lint.facts.values.names import Names
from ta_lint.syntax.tree import Node, Tree, argument, dotted, evaluated, spreads

Variable = cst.Name | cst.Attribute

# Layers of torch that always have trainable parameters.
_TRAINABLE = regex(
    r"torch\.nn\.(Lazy)?(Linear|Bilinear|Conv(Transpose)?[123]d|Embedding(Bag)?|(RNN|LSTM|GRU)(Cell)?|"
    r"MultiheadAttention|Transformer\w*|PReLU|AdaptiveLogSoftmaxWithLoss|Parameter)"
)
_COPIES = frozenset({"builtins.list", "builtins.tuple", "builtins.iter", "builtins.set"})
_GENERATORS = frozenset({"parameters", "named_parameters"})

_DEPTH = 8


@dataclass(frozen=True, eq=False)
class OptimizerCall:
    """The construction of an optimizer, and the models or single parameters that it certainly gets; none if some are uncertain."""

    call: cst.Call
    models: tuple[cst.BaseExpression, ...]


class Parameters:
    """Queries about which objects have parameters, and which optimizers train them."""

    def __init__(self, tree: Tree, names: Names, classes: Classes, kinds: Kinds) -> None:
        self._tree = tree
        self._names = names
        self._classes = classes
        self._kinds = kinds

    # -- optimizers -------------------------------------------------------------------------------------------

    @cached_property
    def optimizers(self) -> list[OptimizerCall]:
        """The optimizers that this file builds, in source order."""
        return [self._optimizer(call) for call in self._tree.all(cst.Call) if self.builds_optimizer(call)]

    def builds_optimizer(self, call: cst.Call) -> bool:
        """Whether a call creates an optimizer of torch, of a known package, or of this file."""
        return self._kinds.instance(call.func) is Kind.OPTIMIZER and self._kinds.construction(call) is call

    def _optimizer(self, call: cst.Call) -> OptimizerCall:
        params = argument(call, "params", 0)
        if params is None and call.args and not spreads(call) and call.args[0].keyword is None:
            params = call.args[0].value
        models = self._models(params) if params is not None else None
        return OptimizerCall(call, tuple(models or ()))

    def _models(self, node: Node, depth: int = _DEPTH) -> list[cst.BaseExpression] | None:
        """The models whose parameters an expression contains; None if some are uncertain."""
        named, node = node, self._literal(node)
        if depth == 0:
            return None
        if isinstance(node, cst.Call):
            return self._of_call(node, depth - 1)
        if isinstance(node, (cst.ListComp, cst.GeneratorExp)):
            return self._of_comprehension(node, depth - 1)
        if isinstance(node, cst.Dict):
            return self._of_group(node, depth - 1)
        found: list[list[cst.BaseExpression] | None]
        if isinstance(node, (cst.List, cst.Tuple)):
            found = [self._models(element.value, depth - 1) for element in node.elements]
            found.append(self._added(named, node, depth - 1))
        elif isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Add):
            found = [self._models(part, depth - 1) for part in (node.left, node.right)]
        else:
            return self._of_parameter(node)
        return None if None in found else [model for models in found if models for model in models]

    def _literal(self, node: Node) -> Node:
        """The expression that an expression's value originates from; of a list with `+=` after it, the list."""
        origin = self._kinds.origin(node)
        if not isinstance(origin, cst.Name):
            return origin
        bindings = self._names.bindings(origin)
        first = bindings[0] if bindings else None
        grows = all(binding.how == "augment" for binding in bindings[1:])
        if first is None or first.how != "assign" or not grows or not isinstance(first.value, cst.List):
            return origin
        return first.value

    def _of_call(self, call: cst.Call, depth: int) -> list[cst.BaseExpression] | None:
        if (model := self.generated_by(call)) is not None:
            return [model]
        called = self._names.qualified(call.func)
        values = [arg.value for arg in call.args if arg.keyword is None and not arg.star]
        if len(values) < len(call.args):
            return None
        if called in _COPIES and len(values) == 1:
            return self._models(values[0], depth)
        if called == "builtins.filter" and len(values) == 2:
            return self._models(values[1], depth)
        if called == "itertools.chain":
            found = [self._models(value, depth) for value in values]
            return None if None in found else [model for models in found if models for model in models]
        return None

    def _of_comprehension(
        self, node: cst.ListComp | cst.GeneratorExp, depth: int
    ) -> list[cst.BaseExpression] | None:
        """`p for p in model.parameters() if p.requires_grad`, and the same over `named_parameters()`."""
        loop = node.for_in
        bound: Node = loop.target
        if isinstance(bound, cst.Tuple) and len(bound.elements) == 2:
            bound = bound.elements[1].value
        if loop.inner_for_in is not None or dotted(node.elt) is None or dotted(node.elt) != dotted(bound):
            return None
        return self._models(loop.iter, depth)

    def _of_group(self, node: cst.Dict, depth: int) -> list[cst.BaseExpression] | None:
        for item in node.elements:
            if (
                isinstance(item, cst.DictElement)
                and isinstance(item.key, cst.SimpleString)
                and evaluated(item.key) == "params"
            ):
                return self._models(item.value, depth)
        return None

    def _of_parameter(self, node: Node) -> list[cst.BaseExpression] | None:
        """A single parameter, as a model of its own: `model.scale`."""
        if isinstance(node, cst.Attribute) and dotted(node) is not None:
            return [node]
        return None

    def _added(self, named: Node, literal: Node, depth: int) -> list[cst.BaseExpression] | None:
        """What code adds to a list after its literal, by the name that it has; None if that is uncertain."""
        if isinstance(named, cst.Name):
            mentions: list[Node] = [*self._names.mentions(named)]
            if len([one for one in mentions if self._is_target(one)]) > 1:
                return None  # several lists under one name
        elif named is not literal:
            path = dotted(named)
            mentions = [one for one in self._tree.all(cst.Attribute) if dotted(one) == path]
            return None if any(self._change(mention) is not None for mention in mentions) else []
        else:
            return []
        found: list[cst.BaseExpression] = []
        for change in map(self._change, mentions):
            models = self._of_change(change, depth) if change is not None else []
            if models is None:
                return None
            found += models
        return found

    def _is_target(self, mention: Node) -> bool:
        """Whether an assignment gives a variable another value here."""
        return (
            isinstance(self._tree.parent[mention], (cst.AssignTarget, cst.Element, cst.AnnAssign))
            and isinstance(self._tree.statement(mention), (cst.Assign, cst.AnnAssign))
            and not self._is_read(mention)
        )

    def _is_read(self, mention: Node) -> bool:
        value = getattr(self._tree.statement(mention), "value", None)
        return value is not None and self._tree.contains(value, mention)

    def _change(self, mention: Node) -> cst.Call | cst.AugAssign | None:
        """The call or statement that adds elements to the list that is mentioned."""
        above = self._tree.parent[mention]
        if isinstance(above, cst.AugAssign) and above.target is mention:
            return above
        if not isinstance(above, cst.Attribute) or above.attr.value not in ("append", "extend", "insert"):
            return None
        call = self._tree.parent[above]
        return call if isinstance(call, cst.Call) and call.func is above else None

    def _of_change(self, change: cst.Call | cst.AugAssign, depth: int) -> list[cst.BaseExpression] | None:
        """What one call or statement adds to a list."""
        if depth == 0:
            return None
        if isinstance(change, cst.AugAssign):
            adds = isinstance(change.operator, cst.AddAssign)
            value: cst.BaseExpression | None = change.value if adds else None
        else:
            value = change.args[0].value if len(change.args) == 1 and not change.args[0].star else None
        if value is None:
            return None
        binding = self._names.definition(value) if isinstance(value, cst.Name) else None
        if binding is not None and isinstance(binding.node, cst.For):
            return self._of_loop(change, binding.node, value, depth)
        return self._models(value, depth)

    def _of_loop(
        self, change: Node, loop: cst.For, value: cst.BaseExpression, depth: int
    ) -> list[cst.BaseExpression] | None:
        """What a loop over parameters adds to a list, one by one: `for n, p in model.named_parameters(): some.append(p)`."""
        bound: Node = loop.target
        if isinstance(bound, cst.Tuple) and len(bound.elements) == 2:
            bound = bound.elements[1].value
        if dotted(bound) != dotted(value) or not self._tree.contains(loop.body, change):
            return None
        between = itertools.takewhile(lambda above: above is not loop, self._tree.ancestors(change))
        if any(isinstance(above, (cst.For, cst.While, cst.Try)) for above in between):
            return None
        return self._models(loop.iter, depth)

    def generated_by(self, node: Node) -> cst.BaseExpression | None:
        """The model of `model.parameters()` or `model.named_parameters()`; None if the file defines such methods."""
        if (
            not isinstance(node, cst.Call)
            or not isinstance(node.func, cst.Attribute)
            or node.func.attr.value not in _GENERATORS
            or node.args
            or dotted(node.func.value) is None
            or self._redefines
        ):
            return None
        return (
            node.func.value
            if self._kinds.kind(node.func.value) in (Kind.MODULE, Kind.CRITERION, None)
            else None
        )

    @cached_property
    def _redefines(self) -> bool:
        """Whether a class of this file defines its own `parameters`, which may return anything."""
        return any(function.name.value in _GENERATORS for function in self._tree.all(cst.FunctionDef))

    # -- layers -----------------------------------------------------------------------------------------------

    def layers(self, node: Node) -> Iterator[tuple[str, cst.Call]]:
        """The layers of torch that a model certainly has: their qualified names and constructor calls.

        Those that a `Sequential` lists, and those that a class of this file creates unconditionally.
        """
        seen: set[Node] = set()
        made = self._kinds.construction(node)
        pending: list[cst.Call] = [made] if made is not None else []
        while pending:
            call = pending.pop()
            if call in seen:
                continue
            seen.add(call)
            called = self._names.qualified(call.func)
            klass = self._classes.local(call.func) if called is None else None
            if klass is not None:
                pending += self._made_by(klass)
            elif called is not None and called.startswith("torch.nn."):
                yield called, call
                if called.startswith(("torch.nn.Sequential", "torch.nn.Module")):
                    pending += self._certain(call)

    def _made_by(self, klass: cst.ClassDef) -> list[cst.Call]:
        """The calls that a class's constructor, or else that of its base in this file, certainly runs."""
        found: list[cst.Call] = []
        pending, seen = [klass], {klass}
        while pending:
            current = pending.pop(0)
            constructor = self._classes.method(current, "__init__")
            if constructor is None or not self._classes.derives(current, "torch.nn.Module"):
                continue
            found += self._certain(constructor.body)
            owner = self._tree.home(constructor)
            bases = self._classes.bases(owner) if isinstance(owner, cst.ClassDef) else []
            new = [base for base in bases if isinstance(base, cst.ClassDef) and base not in seen]
            pending[:0] = new
            seen.update(new)
        return found

    def _certain(self, region: Node) -> list[cst.Call]:
        """The calls in a region that nothing can skip."""
        conditional = (cst.If, cst.IfExp, cst.Try, cst.For, cst.While, cst.BooleanOperation, cst.Lambda)
        found: list[cst.Call] = []
        for call in self._tree.own(region, cst.Call):
            between = []
            for above in self._tree.ancestors(call):
                if above is region:
                    break
                between.append(above)
            if call is not region and not any(isinstance(above, conditional) for above in between):
                found.append(call)
        return found

    def is_trainable(self, node: Node) -> bool:
        """Whether a model certainly has trainable parameters of its own."""
        made = self._kinds.construction(node)
        if made is None:
            return False
        called = self._names.qualified(made.func)
        if called is not None and not called.startswith("torch."):
            return self._kinds.kind(made) is Kind.MODULE
        klass = self._classes.local(made.func)
        if klass is not None and any(
            attribute.attr.value in ("requires_grad", "requires_grad_")
            for attribute in self._tree.within(klass, cst.Attribute)
        ):
            return False
        return any(
            _TRAINABLE.fullmatch(called) and argument(call, "requires_grad") is None
            for called, call in self.layers(node)
        )
