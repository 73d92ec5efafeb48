"""Clearing of gradients: where it happens, and when a training loop does it.

`docs/training-loops.md` describes the procedure and gives the reason for each guard.
"""

import re
from collections.abc import Iterator
from enum import StrEnum

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.facts.loops.loops import Loops, Region, TrainingLoop, targets_of
from ta_lint.facts.values.calls import called_name
from ta_lint.facts.values.classes import Classes
from ta_lint.facts.values.kinds import Kind, Kinds
from ta_lint.facts.values.names import Names
from ta_lint.syntax.layout import plain
from ta_lint.syntax.tree import LOOPS, Node, Tree, dotted

# Names that clear gradients on any receiver: `zero_grad`, `zero_grad_buffer`, `first_step(zero_grad=True)`, `_foreach_zero_`.
_CLEARS = regex(
    r"zero_?(\w+_)?grad|(^|_)(clear|clean|reset|delete|del|erase|flush|wipe)_?(\w+_)?grad|_foreach_zero",
    re.IGNORECASE,
)
_GRADS = frozenset({"grad", "_grad", "main_grad"})
_OVERWRITES = frozenset({"copy_", "detach_", "fill_", "set_", "zero_"})

# These take an optimizer or its owner and never clear gradients.
_HARMLESS = frozenset(
    "adjust_learning_rate append autocast clip_grad_norm_ clip_grad_value_ clip_gradients dict enumerate float "
    "get_last_lr get_lr getattr hasattr id int isinstance item len list log log_metrics print repr save "
    "save_checkpoint save_model scale_loss set_lr state_dict step str super synchronize type unscale_ update_lr "
    "zip".split()
)

# Methods of optimizers and of well-known wrappers that do not clear gradients.
_OPTIMIZER_METHODS = frozenset(
    "add_param_group backward clip_grad_norm clip_grad_norm_ clip_master_grads eval get_lr load_state_dict "
    "skip_synchronize state_dict step synchronize train".split()
)

# Methods that a base class in another file often defines and that only compute or report.
_QUIET = regex(
    r"_?(\w+_)?(loss(es)?(_fn|_func|_function)?|criterion|forward|log(ger|s)?|accuracy|metrics?|device)|"
    r"_?(model|net|network|backbone|encoder|decoder|actor|critic|policy|generator|discriminator)(_?\w{1,6})?|"
    r"_?(log|track|report)_\w+"
)

# Names of what runs code of somebody else at each step.
_CALLBACK = regex(r"callback|hook", re.IGNORECASE)

# Of a threshold: 1 if it holds from some value of its left side on, -1 if up to some value.
_DIRECTIONS = {cst.GreaterThan: 1, cst.GreaterThanEqual: 1, cst.LessThan: -1, cst.LessThanEqual: -1}


class Clearing(StrEnum):
    """When a training loop clears gradients."""

    EVERY_STEP = "every step"
    OUTSIDE = "outside the loop"
    NEVER = "never"
    UNKNOWN = "unknown"


class Clearings:
    """The code that clears gradients in a file, and when each training loop runs it."""

    def __init__(self, tree: Tree, names: Names, classes: Classes, kinds: Kinds, loops: Loops) -> None:
        self._tree = tree
        self._names = names
        self._classes = classes
        self._kinds = kinds
        self._calls = kinds.calls
        self._loops = loops
        self._when: dict[TrainingLoop, Clearing] = {}

    def when(self, loop: TrainingLoop) -> Clearing:
        """When a training loop clears gradients; `UNKNOWN` if this file does not show it."""
        if loop not in self._when:
            self._when[loop] = self._judge(loop)
        return self._when[loop]

    def _judge(self, loop: TrainingLoop) -> Clearing:
        regions = (loop.region, *loop.between, *loop.callers)
        reached = [node for region in regions for node in self._loops.reach(region)]
        if self._loops.gated:
            return Clearing.UNKNOWN
        if any(map(self._clears, reached)) or any(map(self._clears, self._forwards(reached))):
            return Clearing.EVERY_STEP
        if self._may_step_once(loop) or self._is_hidden(loop, reached):
            return Clearing.UNKNOWN
        return Clearing.OUTSIDE if self._clears_outside(loop) else Clearing.NEVER

    def _forwards(self, reached: list[Node]) -> Iterator[cst.FunctionDef]:
        """The `forward` of each module of the project that code calls."""
        for call in (call for node in reached for call in self._tree.within(node, cst.Call)):
            made = self._kinds.construction(call.func)
            klass = self._classes.local(made.func) if made is not None else None
            forward = self._classes.method(klass, "forward") if klass is not None else None
            if forward is not None:
                yield forward

    def places(self, region: Node) -> Iterator[Node]:
        """The nodes at or below `region` that clear gradients, or pass on something that does."""
        yield from (name for name in self._tree.within(region, cst.Name) if _CLEARS.search(name.value))
        yield from self.writes(region)

    def writes(self, region: Node) -> Iterator[Node]:
        """The statements and calls at or below `region` that replace or overwrite a `.grad`."""
        for statement in self._tree.within(region, cst.Assign, cst.AnnAssign, cst.Del):
            targets = [target for target in targets_of(statement) if self._has_grad(target)]
            if any(not self._rescales(target, statement) for target in targets):
                yield statement
        yield from (call for call in self._tree.within(region, cst.Call) if self._overwrites(call))

    def _clears(self, region: Node) -> bool:
        return any(True for _ in self.places(region))

    def _overwrites(self, call: cst.Call) -> bool:
        """`p.grad.zero_()` and the like, and `setattr(p, "grad", None)`, `getattr(optimizer, "zero_grad")()`."""
        if called_name(call) in ("setattr", "getattr"):
            return any("grad" in string.value for string in self._tree.within(call, cst.SimpleString))
        return (
            called_name(call) in _OVERWRITES
            and isinstance(call.func, cst.Attribute)
            and self._has_grad(call.func.value)
        )

    def _has_grad(self, node: Node) -> bool:
        """Whether an expression goes through `.grad`: `p.grad`, `p.grad.data`, `p.grad[mask]`."""
        return any(found.attr.value in _GRADS for found in self._tree.within(node, cst.Attribute))

    def _rescales(self, target: Node, statement: cst.Assign | cst.AnnAssign | cst.Del) -> bool:
        """Whether a statement computes a `.grad` from its old value: `p.grad = p.grad / count`."""
        value = None if isinstance(statement, cst.Del) else statement.value
        parts = self._tree.within(value, cst.Attribute) if value is not None else []
        return dotted(target) in {dotted(part) for part in parts}

    # -- steps that may happen once ---------------------------------------------------------------------------

    def _may_step_once(self, loop: TrainingLoop) -> bool:
        """Whether every step may happen only once, so that no gradient can accumulate."""
        steps = [step.call for step in loop.steps]
        if all(self._is_occasional(step, loop.region, steps) for step in steps):
            return True
        if isinstance(loop.region, LOOPS):
            return all(self._loops.is_last_pass(step, loop.region) for step in steps)
        repeated: list[bool] = []
        for function in (loop.region, *loop.between):
            calls = self._calls.sites(function)
            within = [
                (call, home) for call in calls for home in loop.between if self._tree.home(call) is home
            ]
            if within and all(self._is_occasional(call, home, calls) for call, home in within):
                return True
            repeated += [
                not self._loops.is_last_pass(call, caller) and not self._is_occasional(call, caller, calls)
                for call in calls
                for caller in self._tree.loops(call)[:1]
            ]
        return not any(repeated)

    def _is_occasional(self, node: Node, region: Region, steps: list[cst.Call]) -> bool:
        """Whether `node` is under a condition that may hold only once, such as `if index == last:`.

        A modulus or a threshold holds again and again, a check for NaN fails again and again, and a condition that the region
        does not change holds always or never. If both branches step, the condition does not matter.
        """
        tree = self._tree
        for above in tree.ancestors(node):
            if above is region:
                break
            if not isinstance(above, cst.If) or tree.contains(above.test, node):
                continue
            both = above.orelse is not None and all(
                any(tree.contains(branch, step) for step in steps) for branch in (above.body, above.orelse)
            )
            outcome = tree.contains(above.body, node)
            recurs = self._recurs(above.test, region, outcome)
            if not both and not recurs and self._loops.changes(above.test, region):
                return True
        return False

    def _recurs(self, test: Node, region: Region, outcome: bool) -> bool:
        """Whether a condition, or the one behind its name, has an outcome again and again."""
        if isinstance(test, cst.BooleanOperation):
            sides = (test.left, test.right)
            return any(self._recurs(side, region, outcome) for side in sides)
        if isinstance(test, cst.UnaryOperation):
            return self._recurs(test.expression, region, not outcome)
        origin = self._kinds.origin(test) if isinstance(test, cst.Name) else test
        if isinstance(origin, cst.Comparison) and self._holds_in_last_pass(origin, region) is outcome:
            return False
        return self._holds_again(origin)

    def _holds_in_last_pass(self, test: cst.Comparison, region: Region) -> bool | None:
        """Whether a threshold holds in the last pass of a loop alone: `start + size >= len(x)` in `for start in range(0, len(x), size)`.

        False if it holds in all others, None for any other test.
        """
        rising = len(test.comparisons) == 1 and _DIRECTIONS.get(type(test.comparisons[0].operator))
        if not rising or not isinstance(region, LOOPS):
            return None
        left, right = test.left, test.comparisons[0].comparator
        ends = self._ends(region)
        if isinstance(region, cst.While):  # `while start < count:`, and later `if start >= count:`
            for one, other, above in ((left, right, rising > 0), (right, left, rising < 0)):
                if plain(one) in ends and self._is_end(other, ends):
                    return above
            return None
        for side, bound, above in ((left, right, rising > 0), (right, left, rising < 0)):
            counts = self._kinds.origin(side) if isinstance(side, cst.Name) else side
            if not self._tree.within(counts, cst.BinaryOperation):
                continue  # `start >= end` would never hold
            counters = {dotted(name) for name in self._tree.within(region.target, cst.Name)}
            names = {dotted(name): name for name in self._tree.within(counts, cst.Name)}
            if not counters & names.keys():
                continue
            if self._is_end(bound, ends):
                return above
            parts = self._tree.within(counts, cst.BinaryOperation)
            if any(isinstance(o.operator, cst.Subtract) and self._is_end(o.left, ends) for o in parts):
                return not above  # `len(x) - start <= size`
        return None

    def _ends(self, loop: cst.For | cst.While) -> set[str]:
        """The numbers up to which a loop counts, as they are written."""
        if isinstance(loop, cst.While):
            test = loop.test
            sides = (
                [test.left, *(t.comparator for t in test.comparisons)]
                if isinstance(test, cst.Comparison)
                else []
            )
            return {plain(side) for side in sides}
        given = loop.iter
        if not isinstance(given, cst.Call) or not given.args:
            return set()
        if called_name(given) in ("range", "trange"):
            stop = given.args[min(1, len(given.args) - 1)].value
            return {plain(stop), plain(self._kinds.origin(stop))}
        return {f"len({plain(given.args[0].value)})"} if called_name(given) == "enumerate" else set()

    def _is_end(self, node: Node, ends: set[str]) -> bool:
        return plain(node) in ends or plain(self._kinds.origin(node)) in ends

    def _holds_again(self, test: Node) -> bool:
        tree = self._tree
        operators = {type(operation.operator) for operation in tree.within(test, cst.BinaryOperation)}
        comparisons = {type(target.operator) for target in tree.within(test, cst.ComparisonTarget)}
        # `index >= start` and `index - last >= every` hold again and again, `index >= count - 1` once
        to_the_end = any(
            isinstance(operation.operator, cst.Subtract) and isinstance(operation.right, cst.Integer)
            for operation in tree.within(test, cst.BinaryOperation)
        )
        threshold = bool(comparisons & _DIRECTIONS.keys()) and not to_the_end
        calls = {called_name(call) for call in tree.within(test, cst.Call)}
        return cst.Modulo in operators or threshold or bool(calls & {"isnan", "isfinite", "isinf"})

    # -- clearing that this file does not show ----------------------------------------------------------------

    def _is_hidden(self, loop: TrainingLoop, reached: list[Node]) -> bool:
        """Whether gradients may be cleared, or be new, in a way that the loop does not show."""
        return (
            self._escapes(loop, reached)
            or any(self._calls_back(node) or self._builds_optimizer(node, loop) for node in reached)
            or self._has_own_backward()
            or self._is_cleared_by_base(loop.region)
        )

    def _escapes(self, loop: TrainingLoop, reached: list[Node]) -> bool:
        """Whether the optimizer, or an object that holds it, is passed to code that this file does not show."""
        optimizers = {name for step in loop.steps if (name := dotted(_indexed(step.optimizer))) is not None}
        carriers = {
            ".".join(parts[:length])
            for parts in (name.split(".") for name in optimizers)
            for length in range(1, len(parts) + 1)
        }
        for node in reached:
            held = carriers if node in (loop.region, *loop.between, *loop.callers) else carriers - {"self"}
            for call in self._tree.within(node, cst.Call):
                called = called_name(call)
                if isinstance(call.func, cst.Attribute) and dotted(call.func.value) in optimizers:
                    if called not in _OPTIMIZER_METHODS:
                        return True
                elif called not in _HARMLESS and not self._is_visible(call) and self._hands_over(call, held):
                    return True
                if "self" in held and self._is_inherited(call):
                    return True
        return False

    def _is_visible(self, call: cst.Call) -> bool:
        """Whether a call runs a function of the project, which is looked into."""
        named = self._calls.functions(called_name(call) or "", self._tree.root_of(call))
        return bool(named) or self._calls.callee(call) is not None

    def _hands_over(self, call: cst.Call, carriers: set[str]) -> bool:
        """Whether one of these objects itself, not a part of it, is among the arguments of a call."""
        return any(
            dotted(node) in carriers
            and not isinstance(self._tree.parent[node], (cst.Attribute, cst.Comparison))
            and self._tree.enclosing(node, cst.Call) is call
            for arg in call.args
            for node in self._tree.within(arg.value, cst.Name, cst.Attribute)
        )

    def _is_inherited(self, call: cst.Call) -> bool:
        """Whether a base class in another file defines the method of `self.something()` or `super().something()`."""
        klass = self._tree.enclosing(call, cst.ClassDef)
        if klass is None or not isinstance(call.func, cst.Attribute):
            return False
        receiver, name = call.func.value, call.func.attr.value
        is_super = isinstance(receiver, cst.Call) and called_name(receiver) == "super"
        is_self = isinstance(receiver, cst.Name) and receiver.value == "self"
        root = self._tree.root_of(call)
        if not (is_super or is_self) or name in _HARMLESS or (is_self and self._calls.functions(name, root)):
            return False
        if _QUIET.fullmatch(name):
            return False
        foreign = any(not isinstance(base, cst.ClassDef) for base in self._classes.bases(klass))
        known = self._classes.derives(klass, "torch.nn.Module") or self._classes.attribute(klass, name)
        return foreign and not known

    def _calls_back(self, region: Node) -> bool:
        """Whether a region runs callbacks or hooks, which may do anything."""
        return any(_CALLBACK.search(name.value) for name in self._tree.within(region, cst.Name))

    def _builds_optimizer(self, region: Node, loop: TrainingLoop) -> bool:
        """Whether a region builds a new optimizer in each iteration, as sweeps and tests do: its gradients are new too."""
        calls = self._tree.within(region, cst.Call)
        if any(
            self._kinds.kind(call) is Kind.OPTIMIZER or called_name(call) == "configure_optimizers"
            for call in calls
        ):
            return True
        roots = (name for step in loop.steps for name in self._tree.within(step.optimizer, cst.Name)[:1])
        return any(
            binding.how in ("assign", "unpack")
            and isinstance(binding.value, cst.Call)
            and self._tree.contains(region, binding.node)
            for root in roots
            for binding in self._names.bindings(root)
        )

    def _has_own_backward(self) -> bool:
        """Whether this file, or one that it imports, defines a `backward` that is not autograd's: it may overwrite gradients."""
        imported = "def backward" in self._names.attributes_of_imports
        others = self._names.beside("def backward") if imported else []
        return others is None or any(
            not self._loops.backwards(function)
            and not any(_is_static(decorator) for decorator in function.decorators)
            for root in (self._tree.root, *others)
            for function in self._calls.functions("backward", root)
        )

    def _is_cleared_by_base(self, region: Node) -> bool:
        """Whether a method of the same class clears gradients and this file never calls it: a base class probably does.

        A method that also trains does not count, because it clears gradients for itself.
        """
        klass = self._tree.enclosing(region, cst.ClassDef)
        if klass is None:
            return False
        mentioned = {node.attr.value for node in self._tree.all(cst.Attribute)}
        return any(
            name not in mentioned and self._clears(function) and not self._loops.trains(function)
            for name, function in self._classes.methods(klass).items()
        )

    # -- clearing outside the loop ----------------------------------------------------------------------------

    def _clears_outside(self, loop: TrainingLoop) -> bool:
        """Whether gradients are cleared around the loop: in its function, or where that function is called."""
        places: list[Node] = list(loop.loops)
        for place in loop.loops:
            function = self._tree.home(place)
            if isinstance(function, cst.FunctionDef):
                places += self._calls.sites(function)
        return any(self._clears_around(place) for place in places)

    def _clears_around(self, place: Node) -> bool:
        """Whether the function around `place` clears gradients outside of the training loops next to it."""
        tree = self._tree
        home = tree.home(place)
        helpers = (
            name
            for name, function in self._loops.mentions(home)
            if self._clears(function) and not self._loops.trains(function)
        )
        evidence = [*self.places(home), *helpers]
        around = tree.loops(place)
        return any(
            tree.home(node) is home
            and not tree.contains(place, node)
            and not any(self._loops.backwards(beside) for beside in tree.loops(node) if beside not in around)
            for node in evidence
        )


def _is_static(decorator: cst.Decorator) -> bool:
    return isinstance(decorator.decorator, cst.Name) and decorator.decorator.value == "staticmethod"


def _indexed(node: cst.BaseExpression) -> cst.BaseExpression:
    """`optimizers` for `optimizers[0]`."""
    return node.value if isinstance(node, cst.Subscript) else node
