"""Lightning: which classes are its modules and callbacks, with which hooks, and who runs their optimization."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.facts.values.classes import Classes
from ta_lint.facts.values.flow import ValueFlow
from ta_lint.facts.values.kinds import Kinds
from ta_lint.facts.values.names import Names
from ta_lint.facts.values.value import Frame, Path
from ta_lint.syntax.tree import Node, Tree, argument, attribute_of_self, literal_text

MODULE = "lightning.LightningModule"
CALLBACK = "lightning.Callback"
TRAINER = regex(r"lightning\.(pytorch\.)?(trainer\.)?(trainer\.)?Trainer")

# Bases that say nothing about the optimization.
_NEUTRAL = regex(
    r"lightning\.(\w+\.)*(LightningModule|Callback)|torch\.nn\.Module|abc\.ABC|builtins\.object|typing\.(Generic|Protocol)"
)
# What a `Trainer` of Lightning 1 takes and one of Lightning 2 raises at.
RAISING = {
    "training_epoch_end": "on_train_epoch_end",
    "validation_epoch_end": "on_validation_epoch_end",
    "test_epoch_end": "on_test_epoch_end",
}
"""The hooks of a module at which Lightning 2 raises, and those that it calls instead."""
_REMOVED = (
    "amp_backend amp_level auto_lr_find auto_scale_batch_size auto_select_gpus checkpoint_callback distributed_backend gpus ipus "
    "move_metrics_to_cpu multiple_trainloader_mode num_processes progress_bar_refresh_rate replace_sampler_ddp "
    "resume_from_checkpoint terminate_on_nan tpu_cores track_grad_norm weights_summary"
).split()
_SWITCH = "automatic_optimization"
_CALLS_DEEP = 2


@dataclass(frozen=True, eq=False)
class Schedule:
    """A schedule that Lightning gets: the call that makes it, and whether it is stepped each `epoch` or `step`, None if unknown.

    A call in a function that makes many things makes the schedule only in one `frame`, one call of that function.
    """

    made: cst.Call
    interval: str | None
    frame: Frame | None


@dataclass(frozen=True, eq=False)
class _Switch:
    """A place that sets or reads the mode of optimization: of the class around it, None for another object.

    `mode` is what it is set to, None if that is not clear.
    """

    owner: cst.ClassDef | None
    mode: bool | None


class Lightning:
    """Queries about the classes of a file that Lightning runs."""

    def __init__(self, tree: Tree, names: Names, classes: Classes, kinds: Kinds, flow: ValueFlow) -> None:
        self._tree = tree
        self._names = names
        self._classes = classes
        self._kinds = kinds
        self._flow = flow
        self._automatic: dict[cst.ClassDef, bool | None] = {}
        self._switches: dict[cst.Module, list[_Switch]] = {}  # of each file

    @cached_property
    def modules(self) -> list[cst.ClassDef]:
        """The classes of this file that certainly derive from `LightningModule`."""
        return [klass for klass in self._classes.all() if self._classes.derives(klass, MODULE)]

    @cached_property
    def callbacks(self) -> list[cst.ClassDef]:
        """The classes of this file that certainly derive from Lightning's `Callback`."""
        return [klass for klass in self._classes.all() if self._classes.derives(klass, CALLBACK)]

    @cached_property
    def trainers(self) -> list[cst.Call]:
        """The calls of this file that make a `Trainer` of Lightning."""
        calls = self._tree.all(cst.Call)
        return [call for call in calls if TRAINER.fullmatch(self._names.qualified(call.func) or "")]

    @cached_property
    def is_of_1(self) -> bool:
        """Whether this file makes a `Trainer` as only Lightning 1 does."""
        return any(argument(call, name) is not None for call in self.trainers for name in _REMOVED)

    def hook(self, klass: cst.ClassDef, name: str) -> cst.FunctionDef | None:
        """The method of this name that a class defines itself."""
        return self._classes.methods(klass).get(name)

    def lineage(self, klass: cst.ClassDef) -> list[cst.ClassDef] | None:
        """A class and its bases in this project; None if one of its bases is out of sight."""
        found: dict[cst.ClassDef, None] = {}
        pending = deque([klass])
        while pending:
            current = pending.popleft()
            if current in found:
                continue
            found[current] = None
            for base in self._classes.bases(current):
                if isinstance(base, cst.ClassDef):
                    pending.append(base)
                elif base is None or not _NEUTRAL.fullmatch(base):
                    return None
        return list(found)

    def automatic(self, klass: cst.ClassDef) -> bool | None:
        """Whether Lightning itself runs the backward pass and the optimizer of a module; None if that is not certain."""
        if klass not in self._automatic:
            self._automatic[klass] = self._mode(klass)
        return self._automatic[klass]

    def _mode(self, klass: cst.ClassDef) -> bool | None:
        lineage = self.lineage(klass)
        roots = self._names.beside(_SWITCH)
        if lineage is None or roots is None:
            return None
        modes: set[bool | None] = set()
        for root in dict.fromkeys([self._tree.root, *map(self._tree.root_of, lineage), *roots]):
            if root not in self._switches:
                self._switches[root] = list(self._switches_in(root))
            for one in self._switches[root]:
                if one.owner in lineage:
                    modes.add(one.mode)
                elif one.owner is None or self._classes.inherits(one.owner, klass):
                    modes.add(None)  # which object it is done to, and when, is not known
        if not modes:
            return True
        return modes.pop() if len(modes) == 1 else None

    def _switches_in(self, root: cst.Module) -> Iterator["_Switch"]:
        """Where a file sets or reads the mode of optimization."""
        for method in self._tree.within(root, cst.FunctionDef):
            if method.name.value == _SWITCH:
                yield _Switch(self._tree.enclosing(method, cst.ClassDef), self._returned(method))
        for node in self._tree.within(root, cst.Attribute, cst.Name):
            name = node.attr.value if isinstance(node, cst.Attribute) else node.value
            above = self._tree.parent[node]
            if name != _SWITCH or isinstance(above, (cst.Attribute, cst.FunctionDef)):
                continue
            is_own = isinstance(node, cst.Name) or attribute_of_self(node) is not None
            owner = self._tree.enclosing(node, cst.ClassDef) if is_own else None
            statement = self._tree.parent[above] if isinstance(above, cst.AssignTarget) else above
            value = statement.value if isinstance(statement, (cst.Assign, cst.AnnAssign)) else None
            yield _Switch(owner, self._kinds.boolean(value) if value is not None else None)

    def _returned(self, function: cst.FunctionDef) -> bool | None:
        returns = [one.value for one in self._tree.own(function, cst.Return)]
        values = {self._kinds.boolean(value) if value is not None else None for value in returns}
        return values.pop() if len(values) == 1 else None

    def reached(self, hook: cst.FunctionDef) -> list[cst.FunctionDef]:
        """A hook, and the methods of `self` that it calls, and those that they call."""
        found = [hook]
        level = found
        for _ in range(_CALLS_DEEP):
            called = [
                function
                for one in level
                for call in self._tree.within(one, cst.Call)
                if attribute_of_self(call.func) and (function := self._kinds.calls.callee(call)) is not None
            ]
            level = [function for function in dict.fromkeys(called) if function not in found]
            found += level
        return found

    def optimizers(self, node: Node) -> bool:
        """Whether an expression is what `self.optimizers()` gives, or an element of it, or a name for either."""
        origin = self._kinds.origin(node)
        while isinstance(origin, cst.Subscript):
            origin = self._kinds.origin(origin.value)
        if isinstance(origin, cst.Name):
            binding = self._names.definition(origin)
            if binding is not None and binding.how in ("unpack", "for") and binding.value is not None:
                origin = binding.value
        return isinstance(origin, cst.Call) and attribute_of_self(origin.func) == "optimizers"

    # -- schedules --------------------------------------------------------------------------------------------

    def schedules(self, klass: cst.ClassDef) -> list["Schedule"]:
        """The schedules of the learning rate that `configure_optimizers` of a class gives to Lightning."""
        configure = self.hook(klass, "configure_optimizers")
        returns = self._tree.own(configure, cst.Return) if configure is not None else []
        return [
            schedule
            for statement in returns
            if statement.value is not None
            for path in self._paths(statement.value)
            for schedule in self._schedules_at(statement.value, path)
        ]

    def _paths(self, returned: Node) -> Iterator[Path]:
        """Where in what is returned the schedules stand."""
        for origin in self._flow.of(returned).origins:
            if isinstance(origin.node, cst.Tuple) and len(origin.node.elements) == 2:
                yield (1, None)
            elif isinstance(origin.node, cst.List):
                yield (None, "lr_scheduler")
            elif isinstance(origin.node, cst.Dict) or self._makes_dictionary(origin.node):
                yield ("lr_scheduler",)

    def _schedules_at(self, returned: Node, path: Path) -> Iterator["Schedule"]:
        for origin in self._flow.of(returned, path).origins:
            if origin.path:
                continue  # there is none
            if not isinstance(origin.node, cst.Dict) and not self._makes_dictionary(origin.node):
                if isinstance(origin.node, cst.Call):
                    yield Schedule(origin.node, "epoch", origin.frame)
                continue
            made = self._flow.of(origin.node, ("scheduler",), origin.frame).origins
            interval = self._interval(returned, origin.node, path)
            for one in made:
                if isinstance(one.node, cst.Call):
                    yield Schedule(one.node, interval, one.frame)

    def _interval(self, returned: Node, configuration: Node, path: Path) -> str | None:
        """When Lightning steps a schedule by its configuration; None if that is unknown."""
        if isinstance(configuration, cst.Dict) and any(
            isinstance(element, cst.StarredDictElement) for element in configuration.elements
        ):
            return None
        given = self._flow.of(returned, (*path, "interval")).origins
        said = {
            "epoch" if origin.node is configuration and origin.path else literal_text(origin.node)
            for origin in given
        }
        return said.pop() if len(said) == 1 else None

    def _makes_dictionary(self, node: Node) -> bool:
        return isinstance(node, cst.Call) and self._names.qualified(node.func) == "builtins.dict"
