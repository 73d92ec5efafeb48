"""Checkpoints: the training state that a file saves, and the state that it loads again."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.facts.values.calls import called_name
from ta_lint.facts.values.kinds import Kind, Kinds
from ta_lint.facts.values.names import Binding, Names
from ta_lint.syntax.tree import Node, Tree, dotted, is_name, literal_key, literal_text

_SCHEDULER_NAME = regex(r"sched", re.IGNORECASE)
_READS_FILE = frozenset({"torch.load", "torch.hub.load_state_dict_from_url"})


@dataclass(frozen=True, eq=False)
class SavedDict:
    """A dictionary saved as a checkpoint: the value of each key, and the code that writes them; `whole` if all keys are visible."""

    node: cst.Dict | cst.Call
    entries: dict[str, Node]
    whole: bool
    written: tuple[Node, ...]

    def writes(self, node: Node, tree: Tree) -> bool:
        """Whether a node is in the code that writes the dictionary."""
        return any(tree.contains(part, node) for part in self.written)


class _Put(NamedTuple):
    """`state["epoch"] = epoch`."""

    variable: cst.Name
    entry: cst.Subscript
    statement: cst.Assign


@dataclass(frozen=True, eq=False)
class LoadCall:
    """A variable loaded from a file by `call`, and possibly others, and the places that read each key."""

    call: cst.Call
    reads: dict[str, list[Node]] = field(default_factory=dict)


class Checkpoints:
    """The checkpoints of a file, and the objects whose state they contain."""

    def __init__(self, tree: Tree, names: Names, kinds: Kinds) -> None:
        self._tree = tree
        self._names = names
        self._kinds = kinds

    # -- what is saved ----------------------------------------------------------------------------------------

    @cached_property
    def saved(self) -> list[SavedDict]:
        """The dictionaries that store the state of an object under a key."""
        return [
            saved for node in self._tree.all(cst.Dict, cst.Call) if (saved := self._saved(node)) is not None
        ]

    def _saved(self, node: cst.Dict | cst.Call) -> SavedDict | None:
        """`{"model": model.state_dict()}`, or `dict(model=...)`, with the entries that code adds to its variable by key."""
        if isinstance(node, cst.Call) and not self._is_dict(node):
            return None
        pairs = _pairs(node)
        added = self._added(node)
        pairs += [(literal_key(put.entry), put.statement.value) for put in added]
        entries = {key: value for key, value in pairs if key is not None}
        if all(_owner(value) is None for value in entries.values()):
            return None
        whole = all(key is not None for key, _ in pairs)
        return SavedDict(node, entries, whole, (node, *(put.statement for put in added)))

    def _is_dict(self, call: cst.Call) -> bool:
        return is_name(call.func, "dict") and self._names.qualified(call.func) == "builtins.dict"

    def _added(self, node: Node) -> list[_Put]:
        """The assignments to entries of the variable that a dictionary is bound to: `state["epoch"] = epoch`."""
        assign = self._tree.parent[node]
        target = assign.targets[0].target if isinstance(assign, cst.Assign) else None
        if not isinstance(target, cst.Name):
            return []
        bindings = self._names.bindings(target)
        return [
            put
            for put in self._puts.get(target.value, ())
            if len(bindings) == 1 and self._names.bindings(put.variable) is bindings
        ]

    @cached_property
    def _puts(self) -> dict[str, list[_Put]]:
        """The assignments to entries of variables, by the name of the variable."""
        found: dict[str, list[_Put]] = {}
        for assign in self._tree.all(cst.Assign):
            target = assign.targets[0].target
            if isinstance(target, cst.Subscript) and isinstance(target.value, cst.Name):
                found.setdefault(target.value.value, []).append(_Put(target.value, target, assign))
        return found

    def role(self, value: Node) -> str | None:
        """The role in training of the object whose state a value is: see `role_of`."""
        owner = _owner(value)
        return self.role_of(owner) if owner is not None else None

    def role_of(self, owner: Node) -> str | None:
        """The role of an object in training, None for a model or an unknown object."""
        if self._kinds.is_optimizer(owner):
            return "optimizer"
        kind = self._kinds.kind(owner)
        if kind is Kind.SCHEDULER or (kind is None and _SCHEDULER_NAME.search(dotted(owner) or "")):
            return "scheduler"
        return "scaler" if self._kinds.is_scaler(owner) else None

    # -- what is loaded ---------------------------------------------------------------------------------------

    @cached_property
    def loaded(self) -> list[LoadCall]:
        """The variables that hold the content of a file and are only read by key."""
        return list(self._loaded())

    def _loaded(self) -> Iterator[LoadCall]:
        seen: list[list[Binding]] = []
        for call in self._tree.all(cst.Call):
            assign = self._tree.parent[call]
            target = assign.targets[0].target if isinstance(assign, cst.Assign) else None
            if not isinstance(target, cst.Name) or not self._reads_file(call):
                continue
            bindings = self._names.bindings(target)
            if not any(bindings is other for other in seen):
                seen.append(bindings)
                reads = self._reads(target)
                if reads is not None:
                    yield LoadCall(call, reads)

    def _reads_file(self, call: cst.Call) -> bool:
        return self._names.qualified(call.func) in _READS_FILE

    def _reads(self, variable: cst.Name) -> dict[str, list[Node]] | None:
        """Where each key of a variable is read; None if the variable itself goes elsewhere."""
        found: dict[str, list[Node]] = {}
        for mention in self._names.mentions(variable):
            if isinstance(self._tree.parent[mention], (cst.AssignTarget, cst.Del, cst.ComparisonTarget)):
                continue
            reaching = self._names.definition(mention)
            if reaching is not None and not self._is_load(reaching):
                continue  # the program builds its own checkpoint under the same name
            read = self._read(mention)
            if read is None:
                return None
            key, node = read
            found.setdefault(key, []).append(node)
        return found

    def _is_load(self, binding: Binding) -> bool:
        return (
            binding.how == "assign"
            and isinstance(binding.value, cst.Call)
            and self._reads_file(binding.value)
        )

    def _read(self, mention: cst.Name) -> tuple[str, Node] | None:
        """The key that a mention reads, and the expression that reads it."""
        above = self._tree.parent[mention]
        if isinstance(above, cst.Subscript) and above.value is mention:
            changed = isinstance(self._tree.parent[above], (cst.AssignTarget, cst.Del))
            key = literal_key(above) if not changed else None
            return (key, above) if key is not None else None
        call = self._tree.parent[above]
        if isinstance(call, cst.Call) and call.args and called_name(call) == "get" and call.func is above:
            key = literal_text(call.args[0].value)
            return (key, call) if key is not None else None
        return None

    def restored(self, read: Node) -> Node | None:
        """`model` in `model.load_state_dict(checkpoint["model"])`, even with a variable in between."""
        above = self._tree.parent[read]
        target = above.targets[0].target if isinstance(above, cst.Assign) else None
        for value in (read, *(self._names.mentions(target) if isinstance(target, cst.Name) else ())):
            given = self._tree.parent[value]
            call = self._tree.parent[given] if isinstance(given, cst.Arg) else None
            if isinstance(call, cst.Call) and called_name(call) == "load_state_dict":
                return call.func.value if isinstance(call.func, cst.Attribute) else None
        return None


def _pairs(node: cst.Dict | cst.Call) -> list[tuple[str | None, Node]]:
    """The keys and values that a dictionary is made of; None for a key that is unknown."""
    if isinstance(node, cst.Call):
        return [(arg.keyword.value if arg.keyword is not None else None, arg.value) for arg in node.args]
    return [
        (literal_text(element.key) if isinstance(element, cst.DictElement) else None, element.value)
        for element in node.elements
    ]


def _owner(value: Node) -> Node | None:
    """`optimizer` of `optimizer.state_dict()`, and `model` of `accelerator.get_state_dict(model)`."""
    if not isinstance(value, cst.Call):
        return None
    if called_name(value) == "get_state_dict" and len(value.args) == 1:
        return value.args[0].value
    if called_name(value) != "state_dict":
        return None
    return value.func.value if isinstance(value.func, cst.Attribute) else None
