"""Wrappers of `torch.distributed`: where a model is wrapped, and which expressions are wrapped models."""

from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.facts.values.classes import Classes
from ta_lint.facts.values.kinds import Kinds
from ta_lint.facts.values.names import Binding, Names
from ta_lint.facts.values.vocabulary import FLUENT
from ta_lint.syntax.tree import Node, Tree, argument, attribute_of_self, dotted

_DEPTH = 6


class ParallelWrapper(StrEnum):
    """Wrappers that split work among ranks; not `DataParallel`, which copies the model anew for each forward pass."""

    REPLICATED = "DistributedDataParallel"
    FLAT = "FullyShardedDataParallel"
    SHARDED = "fully_shard"


_WRAPPERS = (
    (regex(r"torch\.nn\.parallel\.(distributed\.)?DistributedDataParallel"), ParallelWrapper.REPLICATED),
    (regex(r"torch\.distributed\.fsdp\.(\w+\.)?FullyShardedDataParallel"), ParallelWrapper.FLAT),
    (regex(r"torch\.distributed\.(fsdp|_composable)\.(\w+\.)*fully_shard"), ParallelWrapper.SHARDED),
)


@dataclass(frozen=True, eq=False)
class WrapCall:
    """A call that wraps `model`; `fully_shard` changes it in place, the others return a wrapper with it as `module`."""

    call: cst.Call
    wrapper: ParallelWrapper
    model: Node


class Wrappers:
    """Queries about wrapped models."""

    def __init__(self, tree: Tree, names: Names, classes: Classes, kinds: Kinds) -> None:
        self._tree = tree
        self._names = names
        self._classes = classes
        self._kinds = kinds

    @cached_property
    def all(self) -> list[WrapCall]:
        """Every call that wraps a model, in source order."""
        return list(self._by_call.values())

    @cached_property
    def _by_call(self) -> dict[cst.Call, WrapCall]:
        return {wrapping.call: wrapping for wrapping in self.made_in(self._tree.root)}

    def made_in(self, root: cst.Module) -> list[WrapCall]:
        """Every call of a file that wraps a model, in source order."""
        found = map(self._wrapping, self._tree.within(root, cst.Call))
        return [wrapping for wrapping in found if wrapping is not None]

    def _wrapping(self, call: cst.Call) -> WrapCall | None:
        called = self._names.qualified(call.func)
        model = argument(call, "module", 0) if called is not None else None
        if called is None or model is None:
            return None
        return next(
            (WrapCall(call, wrapper, model) for pattern, wrapper in _WRAPPERS if pattern.fullmatch(called)),
            None,
        )

    @cached_property
    def sharded(self) -> frozenset[str]:
        """The variables and attributes passed to `fully_shard`, as the file spells them."""
        found = (
            dotted(wrapping.model) for wrapping in self.all if wrapping.wrapper is ParallelWrapper.SHARDED
        )
        return frozenset(name for name in found if name is not None)

    def around(self, node: Node, depth: int = _DEPTH) -> WrapCall | None:
        """The call that wrapped the model in an expression, on all paths or only on some.

        In a function other than the call's, the code may run before it. None if the model may have been unwrapped
        again, or if that is not visible.
        """
        if depth == 0:
            return None
        if isinstance(node, cst.Call):
            inner = self._kinds.handed_on(node)
            return self._by_call.get(node) or (self.around(inner, depth - 1) if inner is not None else None)
        if isinstance(node, cst.Name):
            return self._of_variable(node, depth)
        name = attribute_of_self(node)
        return self._of_attribute(node, name, depth) if name is not None else None

    def _of_variable(self, name: cst.Name, depth: int) -> WrapCall | None:
        tree, home = self._tree, self._tree.home(name)
        reaching = self._names.definition(name)
        if reaching is not None and reaching.how == "param":
            return self._given(reaching.node, depth)
        if reaching is not None:
            return self._bound(reaching, depth)
        for binding in reversed(self._names.bindings(name)):
            statement = tree.statement(binding.node)
            if tree.home(binding.node) is home:
                if not tree.before(statement, name) or tree.contains(statement, name):
                    continue
                if tree.apart(binding.node, name):
                    continue
            if (found := self._bound(binding, depth)) is not None:
                return found
            if not self._keeps(binding, name.value):
                return None
        return None

    def _bound(self, binding: Binding, depth: int) -> WrapCall | None:
        if binding.how != "assign" or binding.value is None:
            return None
        return self.around(binding.value, depth - 1)

    def _keeps(self, binding: Binding, name: str) -> bool:
        """Whether a binding keeps the variable's previous value: `model = model.to(device)`."""
        value: Node | None = binding.value
        while isinstance(value, cst.Call):
            if isinstance(value.func, cst.Attribute) and value.func.attr.value in FLUENT:
                value = value.func.value
            else:
                value = self._kinds.handed_on(value)
        return value is not None and dotted(value) == name

    def _given(self, param: Node, depth: int) -> WrapCall | None:
        """The wrapping call behind the arguments that all calls in this file pass for a parameter."""
        given = self._kinds.calls.given(param) if isinstance(param, cst.Param) else None
        found = [self.around(value, depth - 1) for value in given or []]
        return found[0] if found and None not in found else None

    def _of_attribute(self, node: Node, name: str, depth: int) -> WrapCall | None:
        tree, klass = self._tree, self._tree.enclosing(node, cst.ClassDef)
        values = self._classes.attribute(klass, name) if klass is not None else []
        if any(isinstance(value, cst.Attribute) and value.attr.value == "module" for value in values):
            return None
        for value in reversed(values):
            elsewhere = tree.home(value) is not tree.home(node)
            if elsewhere or (tree.before(value, node) and not tree.apart(value, node)):
                found = self.around(value, depth - 1) if isinstance(value, (cst.Call, cst.Name)) else None
                if found is not None and (
                    tree.home(found.call) is not tree.home(node) or tree.before(found.call, node)
                ):
                    return found
        return None
