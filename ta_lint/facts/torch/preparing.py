"""What Accelerate, Fabric and DeepSpeed hand back of what they are given: `prepare`, `setup` and `initialize`."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.facts.values.calls import called_name
from ta_lint.facts.values.flow import ValueFlow
from ta_lint.facts.values.kinds import Kinds
from ta_lint.facts.values.names import Names
from ta_lint.syntax.tree import Node, Tree, argument, dotted


class Preparer(StrEnum):
    """The frameworks that leave the loop to their user, and wrap what runs in it."""

    ACCELERATE = "accelerator"
    FABRIC = "fabric"
    DEEPSPEED = "deepspeed"


_METHODS = {
    Preparer.ACCELERATE: frozenset(
        "prepare prepare_model prepare_data_loader prepare_optimizer prepare_scheduler".split()
    ),
    Preparer.FABRIC: frozenset("setup setup_module setup_optimizers setup_dataloaders".split()),
}
_CLASSES = (
    (regex(r"accelerate\.(\w+\.)*Accelerator"), Preparer.ACCELERATE),
    (regex(r"(lightning(\.\w+)*|lightning_fabric(\.\w+)*)\.Fabric"), Preparer.FABRIC),
)
_PACKAGES = {
    Preparer.ACCELERATE: ("accelerate",),
    Preparer.FABRIC: ("lightning", "lightning_fabric"),
}
_INITIALIZES = regex(r"deepspeed\.initialize")

# What `deepspeed.initialize` takes, in the order in which it returns them.
_OF_DEEPSPEED = (("model", 1), ("optimizer", 2), ("training_data", 4), ("lr_scheduler", 5))


@dataclass(frozen=True, eq=False)
class PrepareCall:
    """A call that wraps objects; `given` are those, in the order in which it returns them, None for what it is not given."""

    call: cst.Call
    preparer: Preparer
    given: tuple[cst.BaseExpression | None, ...]


class Preparing:
    """Queries about what a framework has prepared."""

    def __init__(self, tree: Tree, names: Names, kinds: Kinds, flow: ValueFlow) -> None:
        self._tree = tree
        self._names = names
        self._kinds = kinds
        self._flow = flow
        self._found: dict[cst.Call, PrepareCall | None] = {}

    @cached_property
    def all(self) -> list[PrepareCall]:
        """The calls of this file that prepare, in source order; without those that are given `*objects`."""
        return self.made_in(self._tree.root)

    def made_in(self, root: cst.Module) -> list[PrepareCall]:
        """The calls of a file that prepare, in source order; without those that are given `*objects`."""
        found = map(self.at, self._tree.within(root, cst.Call))
        return [prepared for prepared in found if prepared is not None]

    def at(self, call: cst.Call) -> PrepareCall | None:
        """A call as one that prepares, if it is one and shows what it is given."""
        if call not in self._found:
            self._found[call] = self._prepares(call)
        return self._found[call]

    def _prepares(self, call: cst.Call) -> PrepareCall | None:
        preparer = self._preparer_called(call)
        if preparer is None or not call.args or any(arg.star for arg in call.args):
            return None
        if preparer is Preparer.DEEPSPEED:
            return PrepareCall(call, preparer, tuple(argument(call, *each) for each in _OF_DEEPSPEED))
        given = tuple(arg.value for arg in call.args if arg.keyword is None)
        return PrepareCall(call, preparer, given) if given else None

    def _preparer_called(self, call: cst.Call) -> Preparer | None:
        if _INITIALIZES.fullmatch(self._names.qualified(call.func) or ""):
            return Preparer.DEEPSPEED
        name = called_name(call)
        if not isinstance(call.func, cst.Attribute) or not any(name in some for some in _METHODS.values()):
            return None
        preparer = self.preparer(call.func.value)
        return preparer if preparer is not None and name in _METHODS.get(preparer, ()) else None

    def preparer(self, node: Node) -> Preparer | None:
        """Which framework's object an expression is: by what made it, or by its name in a file that imports the framework."""
        made = self.made(node)
        if made is not None:
            called = self._names.qualified(made.func) or ""
            return next((preparer for pattern, preparer in _CLASSES if pattern.fullmatch(called)), None)
        last = (dotted(node) or "").rpartition(".")[2]
        if last not in (Preparer.ACCELERATE, Preparer.FABRIC):
            return None
        imported = {name.partition(".")[0] for name in self._names.imported_by(node)}
        return Preparer(last) if imported.intersection(_PACKAGES[Preparer(last)]) else None

    def made(self, node: Node) -> cst.Call | None:
        """The call that made an `Accelerator` or a `Fabric`, by the way of parameters and attributes."""
        origins = [origin for origin in self._flow.of(node).tensors if not origin.path]
        made = {self._kinds.construction(origin.node) for origin in origins}
        return made.pop() if len(made) == 1 and len(origins) == len(self._flow.of(node).tensors) else None

    def of(self, node: Node) -> PrepareCall | None:
        """The call from which a value certainly comes, the last one of several branches; None if it may be another's."""
        origins = self._flow.of(node).tensors
        if isinstance(node, cst.Attribute):
            replaced = {
                (o.node, o.path) for _, given in self._replacing(node) for o in self._flow.of(given).origins
            }
            origins = tuple(origin for origin in origins if (origin.node, origin.path) not in replaced)
        found = [self._handing_out(origin.node) for origin in origins]
        return found[-1] if found and None not in found else None

    def _replacing(self, attribute: cst.Attribute) -> Iterator[tuple[PrepareCall, cst.BaseExpression]]:
        """The calls that put what they prepare in the place of what an attribute held, under no condition."""
        for prepared, given in self.bare(attribute):
            home = self._tree.home(prepared.call)
            above = self._tree.parent[self._tree.block(prepared.call)]
            if isinstance(home, cst.FunctionDef) and above is home:
                yield prepared, given

    def _handing_out(self, node: Node) -> PrepareCall | None:
        return self.at(node) if isinstance(node, cst.Call) else None

    def bare(self, node: Node) -> Iterator[tuple[PrepareCall, cst.BaseExpression]]:
        """The calls from which a value may come, each with what it was given for it."""
        for origin in self._flow.of(node).tensors:
            prepared = self._handing_out(origin.node)
            place = origin.path[0] if origin.path else 0
            if prepared is None or len(origin.path) > 1 or not isinstance(place, int):
                continue
            if 0 <= place < len(prepared.given):
                given = prepared.given[place]
                yield from [(prepared, given)] if given is not None else []

    def backwards_by(self, call: cst.Call) -> Preparer | None:
        """The framework whose `backward` a call is: `accelerator.backward(loss)`, `engine.backward(loss)`."""
        if called_name(call) != "backward" or not isinstance(call.func, cst.Attribute):
            return None
        receiver = call.func.value
        if (preparer := self.preparer(receiver)) is not None:
            return preparer
        prepared = self.of(receiver)
        return prepared.preparer if prepared is not None and call.args else None

    def targets(self, prepared: PrepareCall) -> list[cst.BaseExpression | None] | None:
        """What the objects are assigned to, in order, None for a starred one; None if they are not unpacked."""
        statement = self._tree.parent[prepared.call]
        if not isinstance(statement, cst.Assign) or statement.value is not prepared.call:
            return None
        target = statement.targets[0].target
        if isinstance(target, (cst.Tuple, cst.List)):
            return [e.value if isinstance(e, cst.Element) else None for e in target.elements]
        single = len(prepared.given) == 1 and isinstance(target, (cst.Name, cst.Attribute))
        return [target] if single and isinstance(target, cst.BaseExpression) else None

    def left_behind(self, prepared: PrepareCall) -> Iterator[cst.BaseExpression]:
        """What was prepared and has another name than what came back, so that the old name still means the bare object."""
        targets = self.targets(prepared)
        if targets is None or len(targets) != len(prepared.given) or None in targets:
            return
        names = {dotted(target) for target in targets if target is not None}
        for given in prepared.given:
            name = dotted(given) if given is not None else None
            if given is not None and name not in (None, "None", *names):
                yield given
