"""Gradient flow: whether gradients reach a value from the loss of a backward pass, and where the way is cut."""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.facts.loops.calls_in_loop import CallsInLoop
from ta_lint.facts.loops.graphs import Graphs
from ta_lint.facts.loops.loops import Loops
from ta_lint.facts.values.calls import called_name
from ta_lint.facts.values.classes import Classes
from ta_lint.facts.values.differentiation import differentiation, is_integer
from ta_lint.facts.values.flow import ValueFlow
from ta_lint.facts.values.kinds import Kind, Kinds
from ta_lint.facts.values.layers import Layers
from ta_lint.facts.values.names import Names
from ta_lint.facts.values.packing import is_packed
from ta_lint.facts.values.recording import Recording
from ta_lint.facts.values.value import Frame, Origin
from ta_lint.syntax.tree import Node, Tree, argument, dotted, is_name

Question = Origin | tuple[Node, Frame | None]

_DEPTH = 80  # nested expressions and definitions
_BUDGET = 800  # expressions and origins visited for one answer: a loss needs a few dozen

_DETACHING_CALLS = regex(
    r"torch\.(tensor|(cuda\.)?\w*Tensor|autograd\.Variable|from_numpy|detach)|"
    r"builtins\.(float|int)|numpy\..*"
)
_CONSTANTS = (cst.Integer, cst.Float, cst.SimpleString, cst.FormattedString, cst.ConcatenatedString)
_COMPARISONS = {
    cst.Equal, cst.NotEqual, cst.LessThan, cst.LessThanEqual, cst.GreaterThan, cst.GreaterThanEqual
}  # fmt: skip


# Arguments that no gradient flows through.
_ASIDE = frozenset(
    "axis device dim dtype ignore_index keepdim label_smoothing non_blocking pos_weight reduction size_average weight".split()
)

# Functions of torch that do not depend on their arguments alone, or that take a function.
_OPAQUE = regex(
    r"torch\.(autograd|utils|func|vmap|jit|compile|load|cond|while_loop|ops|distributed|_|nn\.(parallel|utils|init)\b).*"
)
_FACTORY = regex(
    r"torch\.(zeros|ones|rand|randn|randint|randperm|empty|full|arange|linspace|eye|normal)(_like)?"
)
_NEW = regex(r"new_\w+")
_SIZES = frozenset("dim device dtype element_size grad is_cuda layout ndim nelement numel shape size".split())
_COLLECTIONS = frozenset("copy get items keys pop values".split())
_IN_PLACE = regex(r"(?!_)\w*[a-z0-9]_")

# Builtins that pass on the gradient of their arguments, and builtins whose result has none.
_HANDS_ON = frozenset("abs dict enumerate list max min next reversed sorted sum tuple zip".split())
_NUMBERS = frozenset("bool hash id isinstance len ord range round str type".split())

# Names of loss functions of unknown origin, and names of those that contain a network.
_CRITERION = regex(r"criteri|loss|(^|_)(bce|mse|ce|nll|l1|l2)(_|$)", re.IGNORECASE)
_ADVERSARIAL = regex(r"adv|critic|disc|gan|(^|_)d(_|$)", re.IGNORECASE)

# Names of settings and of batches: a parameter with such a name holds no graph.
_SETTINGS = regex(r"_?(args|cfg|config|conf|hparams|hps|hyp|opt|options|opts|settings|flags)", re.IGNORECASE)
_LOADER = regex(r"load|dataset|(^|[._])(data|batch(es)?)$", re.IGNORECASE)
_BATCH = regex(
    r"(batch|data|ground_truth|gt|images?|imgs?|inputs?|labels?|masks?|samples?|targets?|x|y)(_?(batch|true|\d|a|b))?",
    re.IGNORECASE,
)

# What a gradient flows through, as a path of a loss lists it.
_PASSED = (cst.Call, cst.BinaryOperation, cst.Attribute, cst.Name)

# Words that show that some parameters, or some outputs, have no gradient.
_FREEZING_WORDS = frozenset({"requires_grad", "requires_grad_", "set_grad_enabled"})
_CUTTING_WORDS = frozenset({"detach", "detach_", "data", "no_grad", "inference_mode"})
_PRETRAINED = ("torchvision.models.", "timm.", "transformers.")

# Nothing that these export is a tensor with a graph.
_LIBRARIES = frozenset({"math", "numpy", "torch"})


class Flow(IntEnum):
    """Whether a gradient flows through a value."""

    NO = 0
    MAYBE = 1
    YES = 2


@dataclass(frozen=True, eq=False)
class Cut:
    """Where a value loses its gradient: it is detached or, if `steps`, goes through a function with jumps."""

    node: Node
    steps: bool = False


@dataclass(frozen=True, eq=False)
class Gradient:
    """What is known about the gradient of a value.

    Without a gradient and without a `cut`, the value never had one: it is data, or computed under `no_grad`. `into` are the calls
    of networks, and of code out of sight, that a gradient flows into.
    """

    flow: Flow
    cut: Cut | None = None
    into: tuple[cst.Call, ...] = ()


_NONE = Gradient(Flow.NO)
_MAYBE = Gradient(Flow.MAYBE)
_YES = Gradient(Flow.YES)


@dataclass(frozen=True, eq=False)
class LossValue:
    """A loss: `call` runs the backward pass from it, or is the `return` of a Lightning training step."""

    value: cst.BaseExpression
    call: Node


@dataclass(frozen=True, eq=False)
class Write:
    """A write into the tensor of a variable by a method such as `copy_`.

    `forces` means that a tensor is made to require a gradient.
    """

    variable: Node
    values: tuple[Node, ...] = ()
    forces: bool = False


class GradientFlow:
    """Queries about the flow of gradients from a backward pass to the output of a module."""

    def __init__(
        self,
        tree: Tree,
        names: Names,
        classes: Classes,
        kinds: Kinds,
        layers: Layers,
        loops: Loops,
        graphs: Graphs,
        recording: Recording,
        flow: ValueFlow,
        calls_in_loop: CallsInLoop,
    ) -> None:
        self._tree = tree
        self._names = names
        self._classes = classes
        self._kinds = kinds
        self._layers = layers
        self._loops = loops
        self._graphs = graphs
        self._recording = recording
        self._flow = flow
        self._calls_in_loop = calls_in_loop
        self.settled: dict[Question, Gradient] = {}
        self._going_back: dict[cst.For, bool] = {}
        self._paths: dict[LossValue, list[Node]] = {}

    @cached_property
    def losses(self) -> list[LossValue]:
        """The losses of this file, in source order; what a `backward` with a gradient of its own starts from is none."""
        found = [LossValue(value, call) for call, value in self._graphs.starts]
        for call in self._tree.all(cst.Call):  # the scaler of timm, which others have copied
            if (
                len(call.args) > 1
                and not call.args[0].star
                and not isinstance(call.args[1].value, (*_CONSTANTS, cst.UnaryOperation))
                and self._kinds.is_scaler(call.func)
                and self._kinds.is_optimizer(call.args[1].value)
            ):
                found.append(LossValue(call.args[0].value, call))
        return found

    def of(self, node: Node) -> Gradient:
        """The gradient of an expression's value."""
        return _Walk(self).of(node)

    def terms(self, loss: LossValue) -> list[Node]:
        """The expressions that make up a loss, in its own function: its variables, their values, and the terms of sums."""
        found: dict[Node, None] = {}
        pending: list[Node] = [loss.value]
        home = self._tree.home(loss.call)
        while pending and len(found) < _BUDGET:
            term = pending.pop()
            if term in found or self._tree.home(term) is not home:
                continue
            found[term] = None
            value = self._flow.of(term)
            pending += [*_summands(term), *value.aliases, *(origin.node for origin in value.origins)]
        return list(found)

    def path(self, loss: LossValue) -> list[Node]:
        """The expressions that a loss is computed from and that a gradient may flow through."""
        if loss not in self._paths:
            walk = _Walk(self, traces=True)
            walk.of(loss.value)
            self._paths[loss] = sorted(walk.passed, key=self._tree.order)
        return self._paths[loss]

    @cached_property
    def writes(self) -> dict[str, list[Write]]:
        """The writes of this file into tensors of variables, by variable: `buffer`, `self.buffer`."""
        found: dict[str, list[Write]] = {}
        for variable, write in self._all_writes():
            if (path := dotted(variable)) is not None:
                found.setdefault(path, []).append(write)
        return found

    def _all_writes(self) -> Iterator[tuple[Node, Write]]:
        tree = self._tree
        for attribute in tree.all(cst.Attribute):
            name, call = attribute.attr.value, tree.parent[attribute]
            if name in ("requires_grad", "requires_grad_"):
                yield attribute.value, Write(attribute.value, forces=True)
            elif _IN_PLACE.fullmatch(name) and isinstance(call, cst.Call):
                yield attribute.value, Write(attribute.value, tuple(arg.value for arg in call.args))

    def is_off(self, node: Node) -> bool:
        """Whether a node runs without gradients: under `no_grad`, or in a function decorated with it."""
        decision = self._recording.around(node)
        return decision is not None and decision.records is False

    def runs_model(self, node: Node) -> bool:
        """Whether a call runs a model."""
        return isinstance(node, cst.Call) and self._calls_in_loop.acts_as_model(
            self._calls_in_loop.called(node)
        )

    def reaches_network(self, node: Node, depth: int = 4) -> bool:
        """Whether a gradient flows from a value into a network, be it through a distribution or a criterion of another package."""
        found = self.of(node)
        if found.flow is Flow.NO or depth == 0:
            return False
        for call in found.into:
            given = [arg.value for arg in call.args]
            if isinstance(call.func, cst.Attribute) and self._names.qualified(call.func) is None:
                given.append(call.func.value)
            if self.runs_model(call) or any(self.reaches_network(one, depth - 1) for one in given):
                return True
        return False

    def never_records(self, node: Node) -> bool:
        """Whether a node certainly runs without gradients, also because of all of its callers."""
        return self._recording.records(node) is False

    def goes_back(self, loop: cst.For) -> bool:
        """Whether an iteration of a loop runs a backward pass or a step, itself or in functions of this file."""
        if loop not in self._going_back:
            self._going_back[loop] = self._loops.trains(loop.body)
        return self._going_back[loop]

    def is_trained(self, made: cst.Call) -> bool:
        """Whether a call makes a parameter that certainly has a gradient."""
        return (
            self._names.qualified(made.func) == "torch.nn.Parameter"
            and argument(made, "requires_grad", 1) is None
            and not self._freezes
        )

    def trains(self, made: cst.Call) -> bool:
        """Whether a call makes a module whose output certainly has a gradient."""
        if self._freezes:
            return False
        called = self._names.qualified(made.func)
        if called is not None and called.startswith(_PRETRAINED):
            return True
        klass = self._classes.local(made.func)
        if klass is not None and any(
            name.value in _CUTTING_WORDS or name.value in differentiation().steps
            for name in self._tree.within(klass, cst.Name)
        ):
            return False
        return self._layers.made(made) is not None

    @cached_property
    def _freezes(self) -> bool:
        """Whether parameters may be frozen, or gradients switched off, anywhere in the file."""
        return any(name.value in _FREEZING_WORDS for name in self._tree.all(cst.Name))


class _Walk:
    """Answers one question by judging what makes a value, on each way that leads to it; `MAYBE` if that takes too long."""

    def __init__(self, facts: GradientFlow, traces: bool = False) -> None:
        self._facts = facts
        self._flow = facts._flow
        self._tree = facts._tree
        self._names = facts._names
        self._kinds = facts._kinds
        self._budget = _BUDGET
        self._open: set[Question] = set()
        # a question about the path visits everything
        self._settled = {} if traces else facts.settled
        self._cyclic = False
        self.passed: set[Node] = set()

    def of(self, node: Node, frame: Frame | None = None) -> Gradient:
        """The gradient of an expression in a call of its function: of all that may make it, and of what is written into it."""
        found = self._answer((node, frame), lambda: self._value(node, frame))
        if found.flow is not Flow.NO and isinstance(node, _PASSED):
            self.passed.add(node)
        return found

    def _value(self, node: Node, frame: Frame | None) -> Gradient:
        value = self._flow.of(node, (), frame)
        if len(value.origins) == 1 and any(map(_is_setting, value.aliases)):
            return _NONE
        found = _either([self._of_origin(origin) for origin in value.tensors or value.origins])
        written = [gradient for alias in value.aliases for gradient in self._written(alias, found, frame)]
        return _with(found, written)

    def _of_origin(self, origin: Origin) -> Gradient:
        found = self._answer(origin, lambda: self._judge(origin))
        if found.flow is not Flow.NO:
            own = (origin.node,) if isinstance(origin.node, _PASSED) else ()
            self.passed.update((*own, *_calls(origin.frame)))
        return found

    def _answer(self, question: Question, judge: Callable[[], Gradient]) -> Gradient:
        """The answer to a question that may come back to itself; it is kept if it holds for every question."""
        if question in self._settled:
            return self._settled[question]
        if question in self._open:
            self._cyclic = True
            return _NONE  # its old value is one of the other alternatives
        self._budget -= 1
        if self._budget < 0 or len(self._open) > _DEPTH:
            return _MAYBE
        cyclic, self._cyclic = self._cyclic, False
        self._open.add(question)
        found = judge()
        self._open.discard(question)
        if not self._cyclic and self._budget >= 0:
            self._settled[question] = found
        self._cyclic |= cyclic
        return found

    def _judge(self, origin: Origin) -> Gradient:
        """The gradient of what an origin makes, or of the part of it that is meant."""
        if any(map(self._facts.is_off, _calls(origin.frame))):
            return _NONE
        found = self._made(origin.node, origin.frame)
        if not origin.path:
            return found
        if is_integer(origin, self._names):
            return self._cut(origin.node, found, steps=True)
        if set(origin.path) & _SIZES:
            return _NONE
        return found if self._kinds.kind(origin.node) is Kind.TENSOR else _doubted(found)

    def _made(self, node: Node, frame: Frame | None) -> Gradient:
        if isinstance(node, cst.Call):
            return self._call(node, frame)
        if isinstance(node, cst.Attribute):
            return self._attribute(node, frame)
        if isinstance(node, cst.Name):
            return self._name(node)
        if isinstance(node, cst.Param):
            return self._parameter(node, frame)
        if isinstance(node, (cst.For, cst.CompFor)):
            return self._item(node, frame)
        if isinstance(node, cst.BinaryOperation):
            return self._operation(node, frame)
        if isinstance(node, cst.AugAssign):
            return self._together([node.target, node.value], frame)
        if isinstance(node, cst.Comparison):
            return self._comparison(node, frame)
        if isinstance(node, (cst.List, cst.Tuple, cst.Set, cst.Dict)):
            return self._together((element.value for element in node.elements), frame)
        if (carried := _carried(node)) is not None:
            return self.of(carried, frame)
        return _NONE if isinstance(node, _CONSTANTS) else _MAYBE

    # -- variables --------------------------------------------------------------------------------------------

    def _name(self, name: cst.Name) -> Gradient:
        """The gradient of a name that has no value in the source."""
        bindings = self._names.bindings(name)
        if not bindings:
            return _NONE if self._names.qualified(name) is not None else _MAYBE
        imported = [binding.qualified for binding in bindings if binding.how == "import"]
        known = len(imported) == len(bindings) and all(
            (qualified or "").partition(".")[0] in _LIBRARIES for qualified in imported
        )
        return _NONE if known else _MAYBE

    def _parameter(self, param: cst.Param, frame: Frame | None) -> Gradient:
        """The gradient of a parameter by its name, if no call shows more, or of all that a call gives to `*args`."""
        name = param.name.value
        if param.star == "*":
            given = self._flow.of(param, (None,), frame)
            return _with(_NONE, [_MAYBE if o.node is param else self._of_origin(o) for o in given.origins])
        return _NONE if _SETTINGS.fullmatch(name) or _BATCH.fullmatch(name) else _MAYBE

    def _written(self, variable: Node, bound: Gradient, frame: Frame | None) -> Iterator[Gradient]:
        """The gradients of what is written into the value of a variable."""
        for put in self._flow.entries.into(variable):
            yield self.of(put.value, frame)
        for write in self._facts.writes.get(dotted(variable) or "", []):
            if self._is_into(write, variable):
                yield _forced(bound) if write.forces else self._together(write.values, frame)

    def _is_into(self, write: Write, variable: Node) -> bool:
        """Whether a write is into the value that a variable has here."""
        if not isinstance(variable, cst.Name) or not isinstance(write.variable, cst.Name):
            if write.forces and (dotted(variable) or "").startswith(
                "self."
            ):  # what one method does holds in all
                classes = [self._tree.enclosing(node, cst.ClassDef) for node in (variable, write.variable)]
                return classes[0] is classes[1]
            return self._tree.home(write.variable) is self._tree.home(variable)
        if self._names.bindings(write.variable) is not self._names.bindings(variable):
            return False
        reaching = self._names.definition(variable)
        return reaching is None or self._names.definition(write.variable) in (None, reaching)

    def _item(self, loop: cst.For | cst.CompFor, frame: Frame | None) -> Gradient:
        """The gradient of an element of an iterable: it is data if it comes from another file and each iteration goes backward."""
        iterable: Node = loop.iter
        while (handed_on := self._iterated(iterable)) is not None:
            iterable = handed_on
        if isinstance(iterable, cst.Call) and self._names.qualified(iterable.func) == "builtins.zip":
            parts = [arg.value for arg in iterable.args]
            return _NONE if all(self._loads(part) for part in parts) else self.of(iterable, frame)
        goes_back = isinstance(loop, cst.For) and self._facts.goes_back(loop)
        if self._loads(iterable) or (goes_back and not self._is_method(iterable)):
            return _NONE
        return self.of(iterable, frame)

    def _loads(self, iterable: Node) -> bool:
        """Whether an iterable is a data loader, by its kind or by its name."""
        name = dotted(iterable.func if isinstance(iterable, cst.Call) else iterable)
        return self._kinds.kind(iterable) is Kind.DATALOADER or (
            name is not None and _LOADER.search(name) is not None
        )

    def _iterated(self, node: Node) -> Node | None:
        """`loader` for `enumerate(loader)` or `tqdm(loader)`."""
        if not isinstance(node, cst.Call) or not node.args or self._is_method(node):
            return None
        return node.args[0].value if self._names.qualified(node.func) != "builtins.zip" else None

    def _is_method(self, node: Node) -> bool:
        """A call such as `model.parameters()`."""
        return (
            isinstance(node, cst.Call)
            and isinstance(node.func, cst.Attribute)
            and self._names.qualified(node.func) is None
        )

    # -- expressions ------------------------------------------------------------------------------------------

    def _attribute(self, node: cst.Attribute, frame: Frame | None) -> Gradient:
        """The gradient of an attribute of a tensor, or of one that the source does not show."""
        name = node.attr.value
        if name in _SIZES or self._names.qualified(node) is not None:
            return _NONE
        if is_name(node.value, "self") and name not in ("data", "T", "mT"):
            return _MAYBE
        base = self.of(node.value, frame)
        cuts = name == "data" and not is_packed(node.value, self._names, self._flow, frame)
        return self._cut(node, base) if cuts else base

    def _comparison(self, node: cst.Comparison, frame: Frame | None) -> Gradient:
        """Of `<`, `==` and their like, which jump between 0 and 1; `is` and `in` give a plain bool."""
        compared = self._together([node.left, *(target.comparator for target in node.comparisons)], frame)
        jumps = {type(target.operator) for target in node.comparisons} <= _COMPARISONS
        return self._cut(node, compared, steps=True) if jumps else _NONE

    def _operation(self, node: cst.BinaryOperation, frame: Frame | None) -> Gradient:
        found = self._recorded_operation(node, frame)
        if found.flow is not Flow.NO and (
            self._facts.is_off(node) or (frame is None and self._facts.never_records(node))
        ):
            return _NONE
        return found

    def _recorded_operation(self, node: cst.BinaryOperation, frame: Frame | None) -> Gradient:
        if isinstance(node.operator, (cst.BitAnd, cst.BitOr, cst.BitXor)):
            return self._cut(node, self._together([node.left, node.right], frame), steps=True)
        if isinstance(node.operator, cst.FloorDivide):
            return self._cut(node, self.of(node.left, frame), steps=True)
        left, right = node.left, node.right
        if isinstance(node.operator, cst.Divide) and dotted(right) is not None:
            return self.of(left, frame)  # the divisor is a number of steps or samples
        if isinstance(node.operator, cst.Multiply):
            for weight, value in ((left, right), (right, left)):
                if self._is_weight(weight):
                    return self.of(value, frame)
        return self._together([left, right], frame)

    def _is_weight(self, node: Node) -> bool:
        """The gradient of a `self.weight` that the constructor received."""
        return isinstance(node, cst.Attribute) and isinstance(self._kinds.origin(node), cst.Param)

    # -- calls ------------------------------------------------------------------------------------------------

    def _call(self, call: cst.Call, frame: Frame | None) -> Gradient:
        if self._facts.is_off(call) or (frame is None and self._facts.never_records(call)):
            return _NONE
        called = self._names.qualified(call.func)
        if called is not None:
            return self._function(call, called, frame)
        if isinstance(call.func, cst.Attribute):
            found = self._method(call, call.func.value, call.func.attr.value, frame)
            if found is not None:
                return found
        return self._callable(call, frame)

    def _function(self, call: cst.Call, called: str, frame: Frame | None) -> Gradient:
        arguments = _operands(call)
        forced = argument(call, "requires_grad")
        if forced is not None and not is_name(forced, "False"):
            return _forced(self._together(arguments, frame))
        package, last = called.partition(".")[0], called.rpartition(".")[2]
        listed = bool(arguments) and isinstance(arguments[0], (cst.List, cst.Tuple, cst.ListComp))
        if _DETACHING_CALLS.fullmatch(called) or (called == "torch.as_tensor" and listed):
            return self._cut(call, self._together(arguments, frame))
        if package == "builtins" and last in _HANDS_ON:
            return self._together(arguments, frame)
        if _FACTORY.fullmatch(called) or package in ("math", "random", "time"):
            return _NONE
        if package == "builtins":
            return _NONE if last in _NUMBERS else _MAYBE
        if self._facts.is_trained(call):
            return _YES
        if package != "torch" or _OPAQUE.fullmatch(called) or last[:1].isupper():
            return self._callable(call, frame)
        if last in differentiation().losses.of_classes:
            arguments = arguments[:1]
        found = self._together(arguments, frame)
        return self._cut(call, found, steps=True) if last in differentiation().steps else found

    def _method(self, call: cst.Call, receiver: Node, name: str, frame: Frame | None) -> Gradient | None:
        """The gradient of what a method of a tensor or a collection returns; None for any other call."""
        if name in _SIZES or _NEW.fullmatch(name):
            return _NONE
        if name == "scale_loss" or (name == "scale" and len(call.args) == 1):  # of Apex, of a gradient scaler
            return self.of(call.args[0].value, frame)
        if name in _COLLECTIONS:
            return self.of(receiver, frame)
        methods, cuts = differentiation().methods, differentiation().cuts
        known = (
            name in cuts.detaching | differentiation().steps | differentiation().keeps
            or name == "requires_grad_"
        )
        of_tensor = self._kinds.kind(receiver) in (None, Kind.TENSOR, Kind.PARAMETER)
        if not known or not of_tensor or is_name(receiver, "self"):
            return None
        if name == "requires_grad_":
            return _forced(self.of(receiver, frame))
        found = self._together([receiver, *(_operands(call) if name in methods.of_several else ())], frame)
        if name in cuts.detaching:
            return self._cut(call, found)
        steps = name in differentiation().steps or is_integer(Origin(call), self._names)
        return self._cut(call, found, steps=True) if steps else found

    def _callable(self, call: cst.Call, frame: Frame | None) -> Gradient:
        """A call of a criterion, a module, or a function of this file."""
        arguments = _operands(call)
        made = self._kinds.construction(call.func)
        kind = self._kinds.kind(call.func)
        maker = called_name(made) if made is not None else None
        if kind is Kind.CRITERION:
            of_classes = maker in differentiation().losses.of_classes
            inputs = arguments[:1] if of_classes else arguments
            return _YES if maker == "AdaptiveLogSoftmaxWithLoss" else self._together(inputs, frame)
        named = maker or called_name(call) or ""
        is_criterion = _CRITERION.search(named) and not _ADVERSARIAL.search(named)
        if is_criterion and self._is_foreign(call, made) and not self._is_of_object(call):
            found = self._together(arguments, frame)
            cut_first = bool(arguments) and self.of(arguments[0], frame).cut is not None
            return found if found.flow is Flow.NO and cut_first else _MAYBE
        if kind is Kind.MODULE and made is not None and (jumping := self._jumping(made)) is not None:
            return jumping
        is_trained = kind is Kind.MODULE and made is not None and self._facts.trains(made)
        return Gradient(Flow.YES if is_trained else Flow.MAYBE, into=(call,))

    def _jumping(self, made: cst.Call) -> Gradient | None:
        """The gradient of what a model of the project returns, if it ends in a step function."""
        forward = self._flow.forward_of(made)
        returned = self._flow.returned(forward).origins if forward is not None else ()
        found = _either([self._of_origin(origin) for origin in returned]) if returned else _MAYBE
        return found if found.cut is not None and found.cut.steps else None

    def _is_foreign(self, call: cst.Call, made: cst.Call | None) -> bool:
        """Whether a call runs no function of this file, or none but the `forward` of a class."""
        return made is not None or self._kinds.calls.callee(call) is None

    def _is_of_object(self, call: cst.Call) -> bool:
        """Whether a call is a method of an object, which may hold the network as well: `net.loss(x, y)`, `self.net.loss(x, y)`."""
        return (
            self._is_method(call)
            and isinstance(call.func, cst.Attribute)
            and not is_name(call.func.value, "self")
        )

    def _cut(self, node: Node, before: Gradient, steps: bool = False) -> Gradient:
        """The gradient that remains after a node that lets none through."""
        if before.flow is Flow.NO:
            return before
        return Gradient(Flow.NO, Cut(node, steps))

    def _together(self, nodes: Iterable[Node], frame: Frame | None) -> Gradient:
        """The gradient of a value computed from several others."""
        return _with(_NONE, [self.of(node, frame) for node in nodes])


def _calls(frame: Frame | None) -> Iterator[cst.Call]:
    """The calls in which a value is made, the innermost first."""
    while frame is not None:
        yield frame.call
        frame = frame.outer


def _is_setting(variable: Node) -> bool:
    """Whether a variable is read from settings, by their name: `args.weight`."""
    path = dotted(variable)
    return path is not None and any(map(_SETTINGS.fullmatch, path.split(".")[:-1]))


def _summands(value: Node) -> Iterator[Node]:
    """The expressions that certainly hold a graph if the value does: `a` and `b` in `(a + b.mean()) / 4`.

    A product of two variables has none, because either factor may hold the graph.
    """
    if isinstance(value, cst.UnaryOperation):
        yield from _summands(value.expression)
    elif isinstance(value, cst.AugAssign):
        yield from (value.target, value.value)
    elif isinstance(value, cst.BinaryOperation):
        if isinstance(value.operator, (cst.Add, cst.Subtract)):
            yield from _summands(value.left)
            yield from _summands(value.right)
        elif isinstance(value.operator, cst.Divide):
            yield from _summands(value.left)
        elif isinstance(value.operator, cst.Multiply):
            sides = [
                side for side in (value.left, value.right) if not isinstance(side, (cst.Integer, cst.Float))
            ]
            if len(sides) == 1:
                yield from _summands(sides[0])
    elif isinstance(value, cst.Call) and isinstance(value.func, cst.Attribute):
        if value.func.attr.value in differentiation().keeps:
            yield from _summands(value.func.value)
        elif value.func.attr.value == "scale" and len(value.args) == 1:  # of a gradient scaler
            yield from _summands(value.args[0].value)
        else:
            yield value
    else:
        yield value


def _carried(node: Node) -> Node | None:
    """The expression whose gradient a node has as its own: of `-x` it is `x`."""
    if isinstance(node, cst.UnaryOperation):
        return node.expression
    if isinstance(node, cst.NamedExpr):
        return node.value
    return node.elt if isinstance(node, (cst.ListComp, cst.GeneratorExp)) else None


def _with(first: Gradient, others: list[Gradient]) -> Gradient:
    every = [first, *others]
    found = max(every, key=lambda gradient: gradient.flow)
    if found.flow is not Flow.NO:
        return Gradient(found.flow, into=_into(every))
    cut = next((gradient.cut for gradient in every if gradient.cut is not None), None)
    return Gradient(Flow.NO, cut)


def _either(alternatives: list[Gradient]) -> Gradient:
    """The gradient of a value that may be any of these."""
    if all(gradient.flow is Flow.YES for gradient in alternatives):
        return Gradient(Flow.YES, into=_into(alternatives))
    if any(gradient.flow is not Flow.NO for gradient in alternatives):
        return Gradient(Flow.MAYBE, into=_into(alternatives))
    return _with(_NONE, alternatives)


def _into(gradients: list[Gradient]) -> tuple[cst.Call, ...]:
    """The calls that the gradients of several values flow into."""
    flowing = (gradient for gradient in gradients if gradient.flow is not Flow.NO)
    return tuple(dict.fromkeys(call for gradient in flowing for call in gradient.into))


def _doubted(value: Gradient) -> Gradient:
    """The gradient of one of several values."""
    return Gradient(Flow.MAYBE, into=value.into) if value.flow is Flow.YES else value


def _forced(value: Gradient) -> Gradient:
    """The gradient of a value that is made to require one: a function with jumps still cuts it."""
    return value if value.cut is not None and value.cut.steps else _MAYBE


def _operands(call: cst.Call) -> list[cst.BaseExpression]:
    """The arguments that a call computes from, judged by their names."""
    return [arg.value for arg in call.args if arg.keyword is None or arg.keyword.value not in _ASIDE]
