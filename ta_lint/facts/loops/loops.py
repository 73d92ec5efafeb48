"""Training loops: the code that runs once per optimizer step."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.facts.values.calls import called_name
from ta_lint.facts.values.classes import Classes
from ta_lint.facts.values.kinds import Kinds
from ta_lint.facts.values.names import Names
from ta_lint.syntax.tree import LOOPS, Node, Tree, dotted

BACKWARD = frozenset({"backward", "manual_backward"})

_CALLS_DEEP = 2  # helpers and their helpers; deeper down nobody clears gradients

# A condition on one of these chooses the kind of run, not single steps.
_MODE = regex(
    r"(^|_)(train|training|phase|mode|amp|fp16|bf16|half|mixed|cuda|distributed|scaler)(_|$)", re.IGNORECASE
)


# In these files gradients are cleared where no loop shows it.
_GATED_IMPORTS = ("composer", "deepspeed", "fastai", "hivemind", "ignite", "megatron", "mmengine")
_GATED_TEXT = regex(
    r"dist_autograd|torch\.distributed\.autograd|register_post_accumulate_grad_hook|register_step_(pre|post)_hook|"
    r"_apply_optimizer_in_backward"
)

# Frameworks that run all or part of the training loop themselves, so that the file does not show what happens in it. Lightning
# is one, but Fabric leaves the loop to its user.
_FRAMEWORKS = regex(
    r"(lightning(?!\.fabric(\.|$))|pytorch_lightning|fastai|ignite|deepspeed|mmengine|mmcv|composer|megatron)(\.|$)"
)
_OF_FABRIC = frozenset({"Fabric", "fabric", "seed_everything"})
_FRAMEWORK_BASES = frozenset({"Trainer", "Seq2SeqTrainer", "LightningModule", "LightningDataModule"})

Loop = cst.For | cst.While
Region = cst.For | cst.While | cst.FunctionDef


@dataclass(frozen=True, eq=False)
class StepCall:
    """A call of `optimizer.step()` or `scaler.step(optimizer)`; `optimizer` is the expression for the optimizer."""

    call: cst.Call
    optimizer: cst.BaseExpression


@dataclass(frozen=True, eq=False)
class TrainingLoop:
    """Code that runs once per optimizer step.

    `region` is a loop, or a function that makes one step and is called from the loops in `callers`, itself or through the
    functions in `between`. `steps` and `backwards` are in the region's own code, not in functions that it calls.
    """

    region: Region
    callers: tuple[Loop, ...]
    steps: tuple[StepCall, ...]
    backwards: tuple[cst.Call, ...]
    between: tuple[cst.FunctionDef, ...] = ()

    @property
    def loops(self) -> tuple[Loop, ...]:
        """The loops that repeat the step."""
        return (self.region,) if isinstance(self.region, LOOPS) else self.callers


class Loops:
    """The training loops of a file, and queries about them."""

    def __init__(self, tree: Tree, names: Names, classes: Classes, kinds: Kinds, text: str) -> None:
        self._tree = tree
        self._names = names
        self._classes = classes
        self._kinds = kinds
        self._calls = kinds.calls
        self._frameworks: dict[cst.Module, str | None] = {}
        self._backwards: dict[Node, list[cst.Call]] = {}
        self.gated = _GATED_TEXT.search(text) is not None or any(
            name.partition(".")[0] in _GATED_IMPORTS for name in names.imported
        )
        self.steps = [step for call in tree.all(cst.Call) if (step := self.step(call)) is not None]
        self.training = self._training_loops()

    @cached_property
    def framework(self) -> str | None:
        """The framework that may run code which the loops of this file do not show: imported, or the name of a base class.

        Rules about the order of events in a loop stay silent if there is one.
        """
        return self.framework_of(self._tree.root)

    def framework_of(self, node: Node) -> str | None:
        """The framework that may run code which the loops of the file of a node do not show."""
        root = self._tree.root_of(node)
        if root not in self._frameworks:
            self._frameworks[root] = self._framework_in(root)
        return self._frameworks[root]

    def _framework_in(self, root: cst.Module) -> str | None:
        names = sorted(self._names.imported_by(root))
        imported = next((name for name in names if _FRAMEWORKS.match(name)), None)
        if imported is not None and not (imported == "lightning" and self._is_fabric_alone(root)):
            return imported.partition(".")[0]
        bases = (base.value for klass in self._tree.within(root, cst.ClassDef) for base in klass.bases)
        foreign = (base for base in bases if not self._classes.is_of_project(base))
        named = ((dotted(base) or "").rpartition(".")[2] for base in foreign)
        return next((name for name in named if name in _FRAMEWORK_BASES), None)

    def _is_fabric_alone(self, root: cst.Module) -> bool:
        """Whether all that a file takes of `lightning` is Fabric's, which leaves the loop to its user."""
        attributes = self._tree.within(root, cst.Attribute)
        taken = {self._names.qualified(node) or "" for node in attributes} | self._names.imported_by(root)
        parts = {name.split(".")[1] for name in taken if name.startswith("lightning.")}
        return "Fabric" in parts and parts <= _OF_FABRIC

    # -- finding the loops ------------------------------------------------------------------------------------

    def step(self, call: cst.Call) -> StepCall | None:
        """The optimizer step that a call makes, if it makes one.

        `step(closure)` does not count because the closure clears gradients, nor does `step(context)` of distributed autograd.
        """
        if not isinstance(call.func, cst.Attribute) or call.func.attr.value != "step":
            return None
        receiver = call.func.value
        if not call.args and self._kinds.is_optimizer(receiver):
            return StepCall(call, receiver)
        if call.args and not call.args[0].star and self._kinds.is_scaler(receiver):
            return StepCall(call, call.args[0].value)
        return None

    def backwards(self, region: Node) -> list[cst.Call]:
        """The calls of `backward` in a region's own code."""
        if region not in self._backwards:
            calls = self._tree.own(region, cst.Call)
            self._backwards[region] = [call for call in calls if is_backward(call)]
        return self._backwards[region]

    def trains(self, region: Node) -> bool:
        """Whether a region calls `backward` or makes a step, itself or in functions of the project that it mentions."""
        return any(
            is_backward(call) or self.step(call) is not None
            for node in self.reach(region)
            for call in self._tree.within(node, cst.Call)
        )

    def trains_each_pass(self, loop: Loop) -> bool:
        """Whether a loop goes backward in each pass, itself or by a function of the project, and not in loops inside it alone."""
        calls = [call for call in self._tree.own(loop, cst.Call) if self._tree.loops(call)[:1] == [loop]]
        if any(is_backward(call) for call in calls):
            return True
        functions = (self._calls.callee(call) for call in calls)
        return any(
            is_backward(call) and not self._tree.loops(call)
            for function in functions
            if function is not None
            for call in self._tree.own(function, cst.Call)
        )

    def _training_loops(self) -> list[TrainingLoop]:
        found: dict[Region, list[StepCall]] = {}
        for step in self.steps:
            region = self._region(step.call)
            if region is not None:
                found.setdefault(region, []).append(step)
        return [
            TrainingLoop(
                region,
                self._callers(region),
                tuple(steps),
                tuple(self.backwards(region)),
                self._between(region),
            )
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
        functions = self._between(region) or (region,)
        sites = (call for function in functions for call in self._calls.sites(function))
        return tuple(dict.fromkeys(loop for call in sites for loop in self._tree.loops(call)[:1]))

    def _between(self, region: Region) -> tuple[cst.FunctionDef, ...]:
        """The functions that run a function that no loop calls, so that the loops which call them repeat it."""
        found: dict[cst.FunctionDef, None] = {}
        level = [region] if isinstance(region, cst.FunctionDef) else []
        for _ in range(_CALLS_DEEP):
            sites = [call for function in level for call in self._calls.sites(function)]
            if any(self._tree.loops(call) for call in sites):
                break
            homes = (self._tree.home(call) for call in sites)
            level = [home for home in homes if isinstance(home, cst.FunctionDef) and home is not region]
            found.update(dict.fromkeys(level))
        return tuple(found)

    def reach(self, region: Node) -> list[Node]:
        """The code that may run in a region: the region and the functions of the project that it mentions, two calls deep.

        Functions that lead to the region are left out, because they run around it.
        """
        home = region if isinstance(region, cst.FunctionDef) else self._tree.home(region)
        around = [region, *(self._calls.sites(home) if isinstance(home, cst.FunctionDef) else [])]
        holders = {self._tree.home(place) for place in around}
        reached: dict[Node, None] = {region: None}
        for _ in range(_CALLS_DEEP):
            for node in list(reached):
                functions = {f for name, f in self.mentions(node) if not self._sets_mode(name)}
                new = sorted(functions - reached.keys(), key=self._tree.order)
                reached.update(dict.fromkeys(f for f in new if not self._leads_to(f, around, holders)))
        return list(reached)

    def _sets_mode(self, name: cst.Name) -> bool:
        """Whether a name is the method of a model in `model.train()`, beside code that trains it."""
        above = self._tree.parent[name]
        is_method = (
            isinstance(above, cst.Attribute)
            and above.attr is name
            and dotted(above.value) not in ("self", "cls")
        )
        call = self._tree.parent.get(above)
        return is_method and name.value in ("train", "eval") and isinstance(call, cst.Call) and not call.args

    def _leads_to(self, function: cst.FunctionDef, places: list[Node], holders: set[Node]) -> bool:
        """Whether a function holds one of these places, or hands on a function that does: `launch(main)`."""
        return any(self._tree.contains(function, place) for place in places) or any(
            mentioned in holders for _, mentioned in self.mentions(function)
        )

    def mentions(self, region: Node) -> Iterator[tuple[cst.Name, cst.FunctionDef]]:
        """The names in a region that may mean a function of the project, called or passed as a value."""
        root = self._tree.root_of(region)
        for name in self._tree.within(region, cst.Name):
            above = self._tree.parent[name]
            is_attribute = isinstance(above, cst.Attribute) and above.attr is name
            if self._names.is_function_elsewhere(above if is_attribute else name):
                imported = self._calls.function(above if is_attribute else name)
                yield from [(name, imported)] if imported is not None else []
                continue
            if isinstance(above, cst.Attribute) and above.attr is name:
                yield from ((name, function) for function in self._calls.meant(above))
                continue
            for function in self._calls.functions(name.value, root):
                if not isinstance(self._tree.home(function), cst.ClassDef):
                    yield name, function

    def is_last_pass(self, node: Node, loop: Loop) -> bool:
        """Whether an iteration that reaches `node` is the last one: a block around it ends by leaving the loop."""
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

    def changes(self, test: Node, region: Region) -> bool:
        """Whether a region binds a name or sets an attribute that a condition reads."""
        tree = self._tree
        assigned = {
            dotted(target)
            for statement in tree.within(region, cst.Assign, cst.AugAssign, cst.AnnAssign)
            for target in targets_of(statement)
        }
        return any(dotted(attribute) in assigned for attribute in tree.within(test, cst.Attribute)) or any(
            self._names.is_bound_in(name, region)
            for name in tree.within(test, cst.Name)
            if name.value != "self" and not _MODE.search(name.value)
        )


def is_backward(call: cst.Call) -> bool:
    return isinstance(call.func, cst.Attribute) and call.func.attr.value in BACKWARD


def _is_range_of_one(iterable: Node) -> bool:
    if not isinstance(iterable, cst.Call) or called_name(iterable) != "range" or len(iterable.args) != 1:
        return False
    stop = iterable.args[0].value
    return isinstance(stop, cst.Integer) and stop.value == "1"


def targets_of(statement: cst.Assign | cst.AugAssign | cst.AnnAssign | cst.Del) -> Iterable[Node]:
    if isinstance(statement, cst.Assign):
        return [item.target for item in statement.targets]
    return [statement.target]
