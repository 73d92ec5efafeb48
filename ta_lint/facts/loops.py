"""Training loops: the code that runs once per optimizer step, and what happens in it.

The procedure for clearing of gradients and the reason for each of its guards are in `docs/training-loops.md`.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

import libcst as cst

from ta_lint.facts.classes import Classes
from ta_lint.facts.kinds import Kind, Kinds
from ta_lint.facts.names import Names
from ta_lint.facts.tree import LOOPS, Node, Tree, dotted

BACKWARD = frozenset({"backward", "manual_backward"})

# Whatever its receiver: `zero_grad`, `zero_grad_buffer`, `first_step(zero_grad=True)`, `_foreach_zero_`.
_CLEARS = re.compile(r"zero_?grad|clear_?grad|reset_?grad|zero_param_grad|zero_the_grad|_foreach_zero", re.IGNORECASE)

# These take an optimizer or its owner and never clear gradients.
_HARMLESS = frozenset(
    "adjust_learning_rate append clip_grad_norm_ clip_grad_value_ clip_gradients dict float get_last_lr get_lr id int "
    "isinstance item len list log log_metrics print repr save save_checkpoint scale_loss state_dict step str type "
    "unscale_ update_lr zip".split()
)

# Gradients are cleared where no loop shows it.
_GATED_IMPORTS = ("composer", "deepspeed", "fastai", "ignite", "megatron", "mmengine")
_GATED_TEXT = re.compile(
    r"dist_autograd|torch\.distributed\.autograd|register_post_accumulate_grad_hook|_apply_optimizer_in_backward"
)


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

    region: cst.For | cst.While | cst.FunctionDef
    callers: tuple[cst.For | cst.While, ...]
    steps: tuple[Step, ...]
    backwards: tuple[cst.Call, ...]


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
        self._functions: dict[str, list[cst.FunctionDef]] = {}
        for function in tree.all(cst.FunctionDef):
            self._functions.setdefault(function.name.value, []).append(function)
        self.gated = _GATED_TEXT.search(text) is not None or any(
            name.partition(".")[0] in _GATED_IMPORTS for name in names.imported
        )
        self.training = self._training_loops()

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

    def _training_loops(self) -> list[TrainingLoop]:
        steps = [step for call in self._tree.all(cst.Call) if (step := self.step(call)) is not None]
        found: dict[cst.For | cst.While | cst.FunctionDef, list[Step]] = {}
        for step in steps:
            region = self._region(step.call)
            if region is not None:
                found.setdefault(region, []).append(step)
        return [
            TrainingLoop(region, tuple(self._callers(region)), tuple(steps), tuple(self.backwards(region)))
            for region, steps in found.items()
        ]

    def _region(self, step: cst.Call) -> cst.For | cst.While | cst.FunctionDef | None:
        for loop in self._tree.loops(step):
            if self.backwards(loop):
                return loop
        function = self._tree.home(step)
        if not isinstance(function, cst.FunctionDef) or function.name.value in ("closure", "forward"):
            return None
        return function if self.backwards(function) and any(self._callers(function)) else None

    def _callers(self, region: Node) -> Iterator[cst.For | cst.While]:
        """The loops of this file that call a function once per iteration."""
        if not isinstance(region, cst.FunctionDef):
            return
        for call in self._tree.all(cst.Call):
            if method(call) == region.name.value and self._calls(call, region):
                yield from self._tree.loops(call)[:1]

    def _calls(self, call: cst.Call, function: cst.FunctionDef) -> bool:
        if isinstance(call.func, cst.Name):
            return not isinstance(self._tree.home(function), cst.ClassDef)
        assert isinstance(call.func, cst.Attribute)
        owner = self._tree.home(function)
        receiver = call.func.value
        if not isinstance(owner, cst.ClassDef):
            return False
        if isinstance(receiver, cst.Name) and receiver.value in ("self", "trainer", "agent"):
            return True
        origin = self._kinds.origin(receiver)
        return isinstance(origin, cst.Call) and self._classes.local(origin.func) is owner

    # -- clearing of gradients --------------------------------------------------------------------------------

    def clearing(self, loop: TrainingLoop) -> Clearing:
        """When gradients are cleared in a training loop; what cannot be told from this file is unknown."""
        regions: tuple[Node, ...] = (loop.region, *loop.callers)
        if self.gated or any(self._single_pass(region) for region in (loop.callers or (loop.region,))):
            return Clearing.UNKNOWN
        if any(self._clears(region, depth=2) for region in regions):
            return Clearing.EVERY_STEP
        if any(self._escapes(region, loop) or self._builds_optimizer(region) for region in regions):
            return Clearing.UNKNOWN
        if self._cleared_by_framework(loop.region):
            return Clearing.UNKNOWN
        return Clearing.OUTSIDE if self._cleared_outside(regions) else Clearing.NEVER

    def _clears(self, region: Node, depth: int, seen: frozenset[str] = frozenset()) -> bool:
        """Evidence of clearing anywhere below, nested functions and the file's own callees included."""
        if any(True for _ in self.clearings(region)):
            return True
        if depth == 0:
            return False
        tree = self._tree
        mentioned = {node.value for node in tree.within(region, cst.Name)} - seen
        return any(
            self._clears(function, depth - 1, seen | mentioned)
            for name in mentioned & self._functions.keys()
            for function in self._functions[name]
            if not tree.contains(function, region)
        )

    def clearings(self, region: Node) -> Iterator[Node]:
        """The nodes at or below `region` that clear gradients, or hand on something that does."""
        tree = self._tree
        for name in tree.within(region, cst.Name):
            if _CLEARS.search(name.value):
                yield name
        for statement in tree.within(region, cst.Assign, cst.AugAssign, cst.AnnAssign, cst.Del):
            if any(isinstance(target, cst.Attribute) and target.attr.value == "grad" for target in _targets(statement)):
                yield statement
        for call in tree.within(region, cst.Call):
            called = method(call)
            if called in ("zero_", "detach_", "fill_") and isinstance(call.func, cst.Attribute):
                if any(node.attr.value == "grad" for node in tree.within(call.func.value, cst.Attribute)):
                    yield call
            elif called == "setattr":
                if any("grad" in string.value for string in tree.within(call, cst.SimpleString)):
                    yield call
            elif self._names.qualified(call.func) == "torch.autograd.grad":
                yield call

    def _single_pass(self, region: Node) -> bool:
        """A loop whose body always ends by leaving it runs once."""
        if not isinstance(region, LOOPS) or not isinstance(region.body, cst.IndentedBlock):
            return False
        last = region.body.body[-1]
        return isinstance(last, cst.SimpleStatementLine) and isinstance(last.body[-1], (cst.Break, cst.Return))

    def _builds_optimizer(self, region: Node) -> bool:
        """A fresh optimizer in every pass has fresh gradients: sweeps and tests."""
        return any(
            self._kinds.kind(call) is Kind.OPTIMIZER or method(call) == "configure_optimizers"
            for call in self._tree.within(region, cst.Call)
        )

    def _escapes(self, region: Node, loop: TrainingLoop) -> bool:
        """Whether the optimizer, or what holds it, goes where this file does not show what happens to it."""
        carriers: set[str] = set()
        for step in loop.steps:
            name = dotted(step.optimizer)
            if name is not None:
                parts = name.split(".")
                carriers.update(".".join(parts[: length + 1]) for length in range(len(parts)))
        steps = {step.call for step in loop.steps}
        for call in self._tree.within(region, cst.Call):
            called = method(call)
            if call in steps or called in _HARMLESS or called in self._functions:
                continue
            if any(dotted(arg.value) in carriers for arg in call.args):
                return True
            if self._inherited(call) and "self" in carriers:
                return True
        return False

    def _inherited(self, call: cst.Call) -> bool:
        """`self.something()` that a base class in another file defines."""
        if not (isinstance(call.func, cst.Attribute) and isinstance(call.func.value, cst.Name)):
            return False
        klass = self._tree.enclosing(call, cst.ClassDef)
        if call.func.value.value != "self" or klass is None:
            return False
        name = call.func.attr.value
        foreign = any(base is None or isinstance(base, str) for base in self._classes.bases(klass))
        known = self._classes.derives(klass, "torch.nn.Module") or self._classes.attribute(klass, name)
        return foreign and not known

    def _cleared_by_framework(self, region: Node) -> bool:
        """Whether a method of the same class clears and nobody in this file calls it: a base class does."""
        klass = self._tree.enclosing(region, cst.ClassDef)
        if klass is None:
            return False
        mentioned = {node.attr.value for node in self._tree.all(cst.Attribute)}
        return any(
            name not in mentioned and any(True for _ in self.clearings(function))
            for name, function in self._classes.methods(klass).items()
        )

    def _cleared_outside(self, regions: tuple[Node, ...]) -> bool:
        """Whether gradients are cleared before a region or in a loop around it, in the same function."""
        tree = self._tree
        for region in regions:
            home = tree.home(region)
            outer = tree.loops(region)
            for evidence in self.clearings(home):
                inside = any(tree.contains(other, evidence) for other in regions)
                around = any(tree.contains(loop, evidence) for loop in outer)
                if not inside and tree.home(evidence) is home and (around or tree.before(evidence, region)):
                    return True
        return False


def _is_backward(call: cst.Call) -> bool:
    return isinstance(call.func, cst.Attribute) and call.func.attr.value in BACKWARD


def _targets(statement: cst.Assign | cst.AugAssign | cst.AnnAssign | cst.Del) -> Iterable[Node]:
    if isinstance(statement, cst.Assign):
        return [item.target for item in statement.targets]
    return [statement.target]
