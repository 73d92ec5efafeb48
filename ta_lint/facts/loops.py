"""Training loops: the code that runs once per optimizer step, and where it clears gradients.

The procedure and the reason of each of its guards are in `docs/training-loops.md`.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

import libcst as cst

from ta_lint.facts.classes import Classes
from ta_lint.facts.kinds import Kind, Kinds
from ta_lint.facts.names import Names
from ta_lint.facts.tree import LOOPS, Node, Tree, dotted

BACKWARD = frozenset({"backward", "manual_backward"})

_CALLS_DEEP = 2  # helpers of helpers are followed; further down nobody clears gradients

# Whatever its receiver: `zero_grad`, `zero_grad_buffer`, `first_step(zero_grad=True)`, `_foreach_zero_`.
_CLEARS = re.compile(
    r"zero_?(\w+_)?grad|(^|_)(clear|clean|reset|delete|del|erase|flush|wipe)_?(\w+_)?grad|_foreach_zero",
    re.IGNORECASE,
)
_GRADS = frozenset({"grad", "_grad", "main_grad"})
_OVERWRITES = frozenset({"copy_", "detach_", "fill_", "set_", "zero_"})

# A condition on one of these chooses a kind of run, not some of its steps.
_MODE = re.compile(
    r"(^|_)(train|training|phase|mode|amp|fp16|bf16|half|mixed|cuda|distributed|scaler)(_|$)", re.IGNORECASE
)

# These take an optimizer or its owner and never clear gradients.
_HARMLESS = frozenset(
    "adjust_learning_rate append autocast clip_grad_norm_ clip_grad_value_ clip_gradients dict enumerate float "
    "get_last_lr get_lr getattr hasattr id int isinstance item len list log log_metrics print repr save "
    "save_checkpoint save_model scale_loss set_lr state_dict step str super synchronize type unscale_ update_lr "
    "zip".split()
)

# What an optimizer can do without clearing: its own methods, and those that wrappers of it are known for.
_OPTIMIZER_METHODS = frozenset(
    "add_param_group backward clip_grad_norm clip_grad_norm_ clip_master_grads eval get_lr load_state_dict "
    "skip_synchronize state_dict step synchronize train".split()
)

# Methods that a base class in another file may well define, and that compute or report and no more.
_QUIET = re.compile(
    r"_?(\w+_)?(loss(es)?(_fn|_func|_function)?|criterion|forward|log(ger|s)?|accuracy|metrics?|device)|"
    r"_?(model|net|network|backbone|encoder|decoder|actor|critic|policy|generator|discriminator)(_?\w{1,6})?|log_\w+"
)

# What runs somebody else's code at each step.
_CALLBACK = re.compile(r"callback|hook", re.IGNORECASE)

# Gradients are cleared where no loop shows it.
_GATED_IMPORTS = ("composer", "deepspeed", "fastai", "hivemind", "ignite", "megatron", "mmengine")
_GATED_TEXT = re.compile(
    r"dist_autograd|torch\.distributed\.autograd|register_post_accumulate_grad_hook|register_step_(pre|post)_hook|"
    r"_apply_optimizer_in_backward"
)

# Frameworks that run loops, or parts of them, themselves: in their files a loop does not show what happens in it. Of
# Lightning, Fabric leaves the loop to its user.
_FRAMEWORKS = re.compile(
    r"(lightning(?!\.fabric(\.|$))|pytorch_lightning|fastai|ignite|deepspeed|mmengine|mmcv|composer|megatron)(\.|$)"
)
_FRAMEWORK_BASES = frozenset({"Trainer", "Seq2SeqTrainer", "LightningModule", "LightningDataModule"})

_ORDERINGS = {cst.GreaterThan, cst.GreaterThanEqual, cst.LessThan, cst.LessThanEqual}

Loop = cst.For | cst.While
Region = cst.For | cst.While | cst.FunctionDef


class Clearing(StrEnum):
    """When a training loop clears gradients."""

    EVERY_STEP = "every step"
    OUTSIDE = "outside the loop"
    NEVER = "never"
    UNKNOWN = "unknown"


@dataclass(frozen=True, eq=False)
class Step:
    """`optimizer.step()`, or `scaler.step(optimizer)`; `optimizer` is the expression for the optimizer."""

    call: cst.Call
    optimizer: cst.BaseExpression


@dataclass(frozen=True, eq=False)
class TrainingLoop:
    """Code that runs once per optimizer step.

    `region` is a loop, or a function that does one step and is called from the loops in `callers`. `steps` and
    `backwards` stand in the region itself, not in functions it calls.
    """

    region: Region
    callers: tuple[Loop, ...]
    steps: tuple[Step, ...]
    backwards: tuple[cst.Call, ...]

    @property
    def loops(self) -> tuple[Loop, ...]:
        """The loops that repeat the step."""
        return (self.region,) if isinstance(self.region, LOOPS) else self.callers


def method(call: cst.Call) -> str | None:
    """The last name of what is called: `step` for `self.optimizer.step()`, `train` for `train()`."""
    if isinstance(call.func, cst.Attribute):
        return call.func.attr.value
    return call.func.value if isinstance(call.func, cst.Name) else None


class Loops:
    """Training loops, and the questions that loop rules ask about them."""

    def __init__(self, tree: Tree, names: Names, classes: Classes, kinds: Kinds, text: str) -> None:
        self._tree = tree
        self._names = names
        self._classes = classes
        self._kinds = kinds
        self._clearing: dict[TrainingLoop, Clearing] = {}
        self._functions: dict[str, list[cst.FunctionDef]] = {}
        for function in tree.all(cst.FunctionDef):
            self._functions.setdefault(function.name.value, []).append(function)
        self.gated = _GATED_TEXT.search(text) is not None or any(
            name.partition(".")[0] in _GATED_IMPORTS for name in names.imported
        )
        self.steps = [step for call in tree.all(cst.Call) if (step := self.step(call)) is not None]
        self.training = self._training_loops()

    @cached_property
    def framework(self) -> str | None:
        """The framework that may run what a loop of this file does not show: an import, or a base class by name.

        Rules about the order of things in a loop are silent where there is one.
        """
        imported = next((name for name in sorted(self._names.imported) if _FRAMEWORKS.match(name)), None)
        if imported is not None:
            return imported.partition(".")[0]
        bases = (base.value for klass in self._classes.all() for base in klass.bases)
        foreign = (base for base in bases if self._classes.local(base) is None)
        named = ((dotted(base) or "").rpartition(".")[2] for base in foreign)
        return next((name for name in named if name in _FRAMEWORK_BASES), None)

    # -- finding the loops ------------------------------------------------------------------------------------

    def step(self, call: cst.Call) -> Step | None:
        """The optimizer step a call makes.

        `step(closure)` clears inside the closure, and `step(context)` belongs to distributed autograd: neither is
        one.
        """
        if not isinstance(call.func, cst.Attribute) or call.func.attr.value != "step":
            return None
        receiver = call.func.value
        if not call.args and self._kinds.is_optimizer(receiver):
            return Step(call, receiver)
        if call.args and not call.args[0].star and self._kinds.is_scaler(receiver):
            return Step(call, call.args[0].value)
        return None

    def backwards(self, region: Node) -> list[cst.Call]:
        """The calls of `backward` in a region's own body."""
        return [call for call in self._tree.own(region, cst.Call) if _is_backward(call)]

    def trains(self, region: Node) -> bool:
        """Whether a region runs `backward` or a step, itself or in functions of this file that it mentions."""
        return any(
            _is_backward(call) or self.step(call) is not None
            for node in self.reach(region)
            for call in self._tree.within(node, cst.Call)
        )

    def _training_loops(self) -> list[TrainingLoop]:
        found: dict[Region, list[Step]] = {}
        for step in self.steps:
            region = self._region(step.call)
            if region is not None:
                found.setdefault(region, []).append(step)
        return [
            TrainingLoop(region, self._callers(region), tuple(steps), tuple(self.backwards(region)))
            for region, steps in found.items()
        ]

    def _region(self, step: cst.Call) -> Region | None:
        for loop in self._tree.loops(step):
            if self.backwards(loop.body):
                return loop
        function = self._tree.home(step)
        if not isinstance(function, cst.FunctionDef) or function.name.value == "closure":
            return None
        return function if self.backwards(function) and self._callers(function) else None

    def _callers(self, region: Region) -> tuple[Loop, ...]:
        """The loops of this file that call a function once per iteration."""
        if isinstance(region, LOOPS):
            return ()
        innermost = (loop for call in self.calls_of(region) for loop in self._tree.loops(call)[:1])
        return tuple(dict.fromkeys(innermost))

    def calls_of(self, function: cst.FunctionDef) -> list[cst.Call]:
        """The calls of a function in this file: `step()`, `self.step()`, `trainer.step()` of a known trainer."""
        name = function.name.value
        return [
            call
            for call in self._tree.all(cst.Call)
            if method(call) == name and self._is_call_of(function, call)
        ]

    def callee(self, call: cst.Call) -> cst.FunctionDef | None:
        """The function of this file that a call runs, None where several may, or none is known."""
        found = [f for f in self._functions.get(method(call) or "", []) if self._is_call_of(f, call)]
        return found[0] if len(found) == 1 else None

    def _is_call_of(self, function: cst.FunctionDef, call: cst.Call) -> bool:
        owner = self._tree.home(function)
        if isinstance(call.func, cst.Name):
            return any(binding.node is function for binding in self._names.bindings(call.func))
        if not isinstance(call.func, cst.Attribute) or not isinstance(owner, cst.ClassDef):
            return False
        receiver = call.func.value
        if isinstance(receiver, cst.Name) and receiver.value in ("self", "trainer", "agent"):
            return True
        made = self._kinds.construction(receiver)
        return made is not None and self._classes.local(made.func) is owner

    # -- clearing of gradients --------------------------------------------------------------------------------

    def clearing(self, loop: TrainingLoop) -> Clearing:
        """When gradients are cleared in a training loop; what cannot be told from this file is unknown."""
        if loop not in self._clearing:
            self._clearing[loop] = self._judge(loop)
        return self._clearing[loop]

    def _judge(self, loop: TrainingLoop) -> Clearing:
        regions = (loop.region, *loop.callers)
        reached = [node for region in regions for node in self.reach(region)]
        if self.gated:
            return Clearing.UNKNOWN
        if any(self._clears(node) for node in reached):
            return Clearing.EVERY_STEP
        if self._may_step_once(loop) or self._is_hidden(loop, reached):
            return Clearing.UNKNOWN
        return Clearing.OUTSIDE if self._clears_outside(loop) else Clearing.NEVER

    def clearings(self, region: Node) -> Iterator[Node]:
        """The nodes at or below `region` that clear gradients, or hand on something that does."""
        yield from (name for name in self._tree.within(region, cst.Name) if _CLEARS.search(name.value))
        yield from self.gradient_writes(region)

    def gradient_writes(self, region: Node) -> Iterator[Node]:
        """The statements and calls at or below `region` that put something in the place of a `.grad`."""
        for statement in self._tree.within(region, cst.Assign, cst.AnnAssign, cst.Del):
            targets = [target for target in _targets(statement) if self._has_grad(target)]
            if any(not self._rescales(target, statement) for target in targets):
                yield statement
        yield from (call for call in self._tree.within(region, cst.Call) if self._overwrites(call))

    def _clears(self, region: Node) -> bool:
        return any(True for _ in self.clearings(region))

    def _overwrites(self, call: cst.Call) -> bool:
        """`p.grad.zero_()` and the like, and `setattr(p, "grad", None)`, `getattr(optimizer, "zero_grad")()`."""
        if method(call) in ("setattr", "getattr"):
            return any("grad" in string.value for string in self._tree.within(call, cst.SimpleString))
        return (
            method(call) in _OVERWRITES
            and isinstance(call.func, cst.Attribute)
            and self._has_grad(call.func.value)
        )

    def _has_grad(self, node: Node) -> bool:
        """Whether an expression goes through `.grad`: `p.grad`, `p.grad.data`, `p.grad[mask]`."""
        return any(found.attr.value in _GRADS for found in self._tree.within(node, cst.Attribute))

    def _rescales(self, target: Node, statement: cst.Assign | cst.AnnAssign | cst.Del) -> bool:
        """`p.grad = p.grad / count` keeps what was there."""
        value = None if isinstance(statement, cst.Del) else statement.value
        parts = self._tree.within(value, cst.Attribute) if value is not None else []
        return dotted(target) in {dotted(part) for part in parts}

    def reach(self, region: Node) -> list[Node]:
        """A region, and the functions of this file that it mentions, two calls deep: what may run in it."""
        reached: dict[Node, None] = {region: None}
        for _ in range(_CALLS_DEEP):
            for node in list(reached):
                functions = (function for _, function in self._mentions(node))
                reached.update(dict.fromkeys(f for f in functions if not self._tree.contains(f, region)))
        return list(reached)

    def _mentions(self, region: Node) -> Iterator[tuple[cst.Name, cst.FunctionDef]]:
        """The names in a region that may stand for a function of this file, called or handed on as a value."""
        for name in self._tree.within(region, cst.Name):
            above = self._tree.parent[name]
            is_attribute = isinstance(above, cst.Attribute) and above.attr is name
            for function in self._functions.get(name.value, []):
                if is_attribute is isinstance(self._tree.home(function), cst.ClassDef):
                    yield name, function

    # -- steps that may happen once ---------------------------------------------------------------------------

    def _may_step_once(self, loop: TrainingLoop) -> bool:
        """Whether each step may be the only one: nothing accumulates then."""
        steps = [step.call for step in loop.steps]
        if all(self._is_occasional(step, loop.region, steps) for step in steps):
            return True
        if isinstance(loop.region, LOOPS):
            return all(self.is_last_pass(step, loop.region) for step in steps)
        calls = self.calls_of(loop.region)
        return all(
            self.is_last_pass(call, caller) or self._is_occasional(call, caller, calls)
            for call in calls
            for caller in self._tree.loops(call)[:1]
        )

    def is_last_pass(self, node: Node, loop: Loop) -> bool:
        """Whether a pass that comes to `node` is the last one: a block around it ends by leaving the loop."""
        if isinstance(loop, cst.For) and _is_range_of_one(loop.iter):
            return True
        for above in self._tree.ancestors(node):
            if above is loop:
                break
            if isinstance(above, cst.IndentedBlock) and isinstance(above.body[-1], cst.SimpleStatementLine):
                last = above.body[-1].body[-1]
                if isinstance(last, cst.Return) or (
                    isinstance(last, cst.Break) and self._tree.loops(last)[0] is loop
                ):
                    return True
        return False

    def _is_occasional(self, node: Node, region: Region, steps: list[cst.Call]) -> bool:
        """Whether `node` stands under a condition that may hold once, such as `if index == last:`.

        A modulus or a threshold holds again and again, a check for NaN fails again and again, and what the region
        does not change holds always or never; and where both branches step, the condition does not matter.
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
            if not both and not self._recurs(above.test) and self.changes(above.test, region):
                return True
        return False

    def _recurs(self, test: Node) -> bool:
        tree = self._tree
        operators = {type(operation.operator) for operation in tree.within(test, cst.BinaryOperation)}
        comparisons = {type(target.operator) for target in tree.within(test, cst.ComparisonTarget)}
        # `index >= start` holds again and again, `index >= count - 1` once
        threshold = bool(comparisons & _ORDERINGS) and cst.Subtract not in operators
        calls = {method(call) for call in tree.within(test, cst.Call)}
        return cst.Modulo in operators or threshold or bool(calls & {"isnan", "isfinite", "isinf"})

    def changes(self, test: Node, region: Region) -> bool:
        """Whether a region binds a name, or sets an attribute, that a condition depends on."""
        tree = self._tree
        assigned = {
            dotted(target)
            for statement in tree.within(region, cst.Assign, cst.AugAssign, cst.AnnAssign)
            for target in _targets(statement)
        }
        return any(dotted(attribute) in assigned for attribute in tree.within(test, cst.Attribute)) or any(
            tree.contains(region, binding.node)
            for name in tree.within(test, cst.Name)
            if name.value != "self" and not _MODE.search(name.value)
            for binding in self._names.bindings(name)
        )

    # -- clearing that this file does not show ----------------------------------------------------------------

    def _is_hidden(self, loop: TrainingLoop, reached: list[Node]) -> bool:
        """Whether gradients may be cleared, or be new, without evidence in what runs in the loop."""
        return (
            self._escapes(loop, reached)
            or any(self._calls_back(node) or self._builds_optimizer(node, loop) for node in reached)
            or self._has_own_backward()
            or self._is_cleared_by_base(loop.region)
        )

    def _escapes(self, loop: TrainingLoop, reached: list[Node]) -> bool:
        """Whether the optimizer, or what holds it, goes where this file does not show what happens to it."""
        optimizers = {name for step in loop.steps if (name := dotted(_indexed(step.optimizer))) is not None}
        carriers = {
            ".".join(parts[:length])
            for parts in (name.split(".") for name in optimizers)
            for length in range(1, len(parts) + 1)
        }
        for node in reached:
            held = carriers if node in (loop.region, *loop.callers) else carriers - {"self"}
            for call in self._tree.within(node, cst.Call):
                called = method(call)
                if isinstance(call.func, cst.Attribute) and dotted(call.func.value) in optimizers:
                    if called not in _OPTIMIZER_METHODS:
                        return True
                elif (
                    called not in _HARMLESS and called not in self._functions and self._hands_over(call, held)
                ):
                    return True
                if "self" in held and self._is_inherited(call):
                    return True
        return False

    def _hands_over(self, call: cst.Call, carriers: set[str]) -> bool:
        """Whether one of these objects itself, not a part of it, is in the arguments of a call."""
        return any(
            dotted(node) in carriers
            and not isinstance(self._tree.parent[node], (cst.Attribute, cst.Comparison))
            and self._tree.enclosing(node, cst.Call) is call
            for arg in call.args
            for node in self._tree.within(arg.value, cst.Name, cst.Attribute)
        )

    def _is_inherited(self, call: cst.Call) -> bool:
        """`self.something()` or `super().something()` that a base class in another file defines."""
        klass = self._tree.enclosing(call, cst.ClassDef)
        if klass is None or not isinstance(call.func, cst.Attribute):
            return False
        receiver, name = call.func.value, call.func.attr.value
        is_super = isinstance(receiver, cst.Call) and method(receiver) == "super"
        is_self = isinstance(receiver, cst.Name) and receiver.value == "self"
        if not (is_super or is_self) or name in _HARMLESS or (is_self and name in self._functions):
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
        """A fresh optimizer in every pass has fresh gradients: sweeps and tests."""
        calls = self._tree.within(region, cst.Call)
        if any(
            self._kinds.kind(call) is Kind.OPTIMIZER or method(call) == "configure_optimizers"
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
        """Whether this file defines a `backward` that is not autograd's: it may overwrite gradients."""
        return any(
            not self.backwards(function)
            and not any(_is_static(decorator) for decorator in function.decorators)
            for function in self._functions.get("backward", [])
        )

    def _is_cleared_by_base(self, region: Node) -> bool:
        """Whether a method of the same class clears and nobody in this file calls it: a base class does.

        A method that trains by itself clears for itself.
        """
        klass = self._tree.enclosing(region, cst.ClassDef)
        if klass is None:
            return False
        mentioned = {node.attr.value for node in self._tree.all(cst.Attribute)}
        return any(
            name not in mentioned and self._clears(function) and not self.trains(function)
            for name, function in self._classes.methods(klass).items()
        )

    # -- clearing outside the loop ----------------------------------------------------------------------------

    def _clears_outside(self, loop: TrainingLoop) -> bool:
        """Whether gradients are cleared around the loop: in its function, or where that function is called."""
        places: list[Node] = list(loop.loops)
        for place in loop.loops:
            function = self._tree.home(place)
            if isinstance(function, cst.FunctionDef):
                places += self.calls_of(function)
        return any(self._clears_around(place) for place in places)

    def _clears_around(self, place: Node) -> bool:
        """Whether the function that holds `place` clears gradients, other than in a training loop beside it."""
        tree = self._tree
        home = tree.home(place)
        helpers = (name for name, function in self._mentions(home) if self._clears(function))
        evidence = [*self.clearings(home), *helpers]
        around = tree.loops(place)
        return any(
            tree.home(node) is home
            and not tree.contains(place, node)
            and not any(self.backwards(beside) for beside in tree.loops(node) if beside not in around)
            for node in evidence
        )


def _is_backward(call: cst.Call) -> bool:
    return isinstance(call.func, cst.Attribute) and call.func.attr.value in BACKWARD


def _is_static(decorator: cst.Decorator) -> bool:
    return isinstance(decorator.decorator, cst.Name) and decorator.decorator.value == "staticmethod"


def _is_range_of_one(iterable: Node) -> bool:
    if not isinstance(iterable, cst.Call) or method(iterable) != "range" or len(iterable.args) != 1:
        return False
    stop = iterable.args[0].value
    return isinstance(stop, cst.Integer) and stop.value == "1"


def _indexed(node: cst.BaseExpression) -> cst.BaseExpression:
    """`optimizers` for `optimizers[0]`."""
    return node.value if isinstance(node, cst.Subscript) else node


def _targets(statement: cst.Assign | cst.AugAssign | cst.AnnAssign | cst.Del) -> Iterable[Node]:
    if isinstance(statement, cst.Assign):
        return [item.target for item in statement.targets]
    return [statement.target]
