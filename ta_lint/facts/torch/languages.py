"""Causal language models of transformers, and which stretch of a sequence a call is given."""

from dataclasses import dataclass
from functools import cached_property
from itertools import islice

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.facts.loops.calls_in_loop import CallsInLoop
from ta_lint.facts.values.classes import Classes
from ta_lint.facts.values.flow import ValueFlow
from ta_lint.facts.values.kinds import Kinds
from ta_lint.facts.values.loaders import Loaders
from ta_lint.facts.values.names import Names
from ta_lint.facts.values.vocabulary import FLUENT, HANDS_ON
from ta_lint.syntax.tree import Node, Tree, argument, dotted, is_name, literal_text

_CAUSAL = regex(
    r"(transformers|peft)\.(\w+\.)*(?!TF|Flax)\w*(ForCausalLM|LMHeadModel)(\.(from_pretrained|from_config|_from_config))?"
)
_ADAPTED = regex(r"peft\.(\w+\.)*(get_peft_model|prepare_model_for_kbit_training)")
_TRAINER = regex(r"(transformers|trl)\.(\w+\.)*\w*Trainer")
_COPIES = regex(r"torch\.(tensor|as_tensor|LongTensor|from_numpy|clone)|numpy\.(array|asarray)")
_KEEP = frozenset("astype clone contiguous cpu cuda detach long masked_fill tolist to".split())
"""Methods after which each position still has the token that it had, or none."""
_DEPTH = 8
_STEPS = 12
_MOST = 4  # places of a file that train


@dataclass(frozen=True)
class Stretch:
    """The part of a sequence that an expression stands for: `base` without its first `front` tokens, after those that
    `start` counts, an expression as it is written."""

    base: Node
    front: int = 0
    start: str = ""

    def of(self, inner: "Stretch") -> "Stretch":
        """This stretch of what is itself a stretch."""
        return Stretch(inner.base, self.front + inner.front, f"{self.start}{inner.start}")


class Languages:
    """Queries about language models."""

    def __init__(
        self,
        tree: Tree,
        names: Names,
        classes: Classes,
        kinds: Kinds,
        flow: ValueFlow,
        loaders: Loaders,
        calls_in_loop: CallsInLoop,
    ) -> None:
        self._tree = tree
        self._names = names
        self._classes = classes
        self._kinds = kinds
        self._flow = flow
        self._loaders = loaders
        self._calls_in_loop = calls_in_loop

    # -- models -----------------------------------------------------------------------------------------------

    def is_causal(self, model: Node) -> bool:
        """Whether an expression certainly stands for a causal language model of transformers, with adapters or without."""
        made = self.makers(model)
        return bool(made) and all(_CAUSAL.fullmatch(self._names.qualified(call.func) or "") for call in made)

    def makers(self, model: Node, depth: int = _DEPTH) -> list[cst.Call]:
        """The calls of libraries that certainly made the model which an expression stands for; empty if one is unknown."""
        node = self._kinds.origin(model)
        if depth == 0:
            return []
        if isinstance(node, cst.Param):
            values = self._calls_in_loop.values(node)
        elif isinstance(node, cst.Call) and (inner := self._inside(node)) is not None:
            values = [inner]
        elif isinstance(node, cst.Call) and self._names.qualified(node.func) is not None:
            return [node]
        else:
            values = self._alternatives(node)
        found = [self.makers(value, depth - 1) if value is not node else [] for value in values]
        return [call for calls in found for call in calls] if all(found) else []

    def _inside(self, call: cst.Call) -> Node | None:
        """The model that a call returns, moved, wrapped or with adapters."""
        called = self._names.qualified(call.func)
        if called is not None and call.args and (_ADAPTED.fullmatch(called) or HANDS_ON.fullmatch(called)):
            return call.args[0].value
        if len(call.args) == 1 and (prepared := self._kinds.prepared(call)):
            return prepared[0]
        method = call.func.attr.value if isinstance(call.func, cst.Attribute) else ""
        return call.func.value if method in FLUENT and isinstance(call.func, cst.Attribute) else None

    def _alternatives(self, node: Node) -> list[Node]:
        """What an expression is on each way that leads to it; nothing where that is a part of something unknown."""
        found: list[Node] = []
        for origin in self._flow.of(node).origins:
            prepared = self._kinds.prepared(origin.node) if isinstance(origin.node, cst.Call) else []
            place = origin.path[0] if len(origin.path) == 1 else None
            if isinstance(place, int) and 0 <= place < len(prepared):
                found.append(prepared[place])
            elif origin.path:
                return []
            else:
                found.append(origin.node)
        return found

    def takes_labels(self, call: cst.Call) -> bool:
        """Whether a call gives labels, or may, out of a dictionary."""
        return argument(call, "labels") is not None or any(arg.star == "**" for arg in call.args)

    @cached_property
    def trainings(self) -> list[cst.Call]:
        """The first calls of this file that train a model: `trainer.train()`, and those of the model with labels."""
        calls = self._tree.all(cst.Call)
        found = (call for call in calls if self._is_training(call) or self._is_labelled(call))
        return list(islice(found, _MOST))

    @cached_property
    def generations(self) -> list[cst.Call]:
        """The first calls of this file by which a model generates."""
        found = (
            call
            for call in self._tree.all(cst.Call)
            if isinstance(call.func, cst.Attribute)
            and call.func.attr.value == "generate"
            and self.is_causal(call.func.value)
        )
        return list(islice(found, _MOST))

    def _is_labelled(self, call: cst.Call) -> bool:
        return self.takes_labels(call) and self.is_causal(call.func)

    def _is_training(self, call: cst.Call) -> bool:
        if not isinstance(call.func, cst.Attribute) or call.func.attr.value != "train":
            return False
        made = self._kinds.construction(call.func.value)
        called = self._names.qualified(made.func) if made is not None else None
        return called is not None and _TRAINER.fullmatch(called) is not None

    # -- sequences --------------------------------------------------------------------------------------------

    def given(self, call: cst.Call, keyword: str, place: int | None = None) -> Stretch | None:
        """The stretch that a call is given, also out of a dictionary; None if nothing tells."""
        node = argument(call, keyword, place)
        if node is not None:
            return self.stretch(node)
        spread = [arg.value for arg in call.args if arg.star == "**"]
        entry = self._entry(spread[0], keyword) if len(spread) == 1 else None
        return self.stretch(entry) if entry is not None else None

    def stretch(self, node: Node) -> Stretch:
        """The stretch that an expression stands for, through names, copies, slices and what a dataset hands out."""
        found = Stretch(node)
        for _ in range(_STEPS):
            step = self._step(found.base)
            if step is None:
                break
            found = found.of(step)
        return found

    def lag(self, later: Stretch, earlier: Stretch) -> int | None:
        """How many tokens one stretch begins after another; None if they are not of one sequence."""
        is_same = later.start == earlier.start and self._is_same(later.base, earlier.base)
        return later.front - earlier.front if is_same else None

    def _is_same(self, one: Node, other: Node) -> bool:
        """Whether two expressions are the same, or uses of one variable, or of one entry of it."""
        if isinstance(one, cst.Subscript) and isinstance(other, cst.Subscript) and _key(one) is not None:
            return _key(one) == _key(other) and self._is_same(one.value, other.value)
        if one is other or not isinstance(one, (cst.Name, cst.Attribute)) or dotted(one) is None:
            return one is other
        if dotted(one) != dotted(other) or self._tree.home(one) is not self._tree.home(other):
            return False
        if isinstance(one, cst.Name) and isinstance(other, cst.Name):
            binding = self._names.definition(one)
            return binding is not None and binding is self._names.definition(other)
        return True

    def _step(self, node: Node) -> Stretch | None:
        """What an expression is made of; None if it is not made of one sequence."""
        if isinstance(node, (cst.Name, cst.Attribute)):
            return self._variable(node)
        if isinstance(node, cst.Subscript):
            return self._subscript(node)
        return self._call(node) if isinstance(node, cst.Call) else None

    def _subscript(self, node: cst.Subscript) -> Stretch | None:
        key = node.slice[-1].slice
        if isinstance(key, cst.Index):
            text = _key(node)
            entry = (
                (self._entry(node.value, text) or self._put(node.value, text)) if text is not None else None
            )
            return Stretch(entry) if entry is not None else None
        if not isinstance(key, cst.Slice) or key.step is not None:
            return None
        if key.lower is None:
            return Stretch(node.value)
        start, front = self._sum(key.lower)
        return Stretch(node.value, front, start) if start is not None and front >= 0 else None

    def _sum(self, node: Node) -> tuple[str | None, int]:
        """An expression as the variable in it, and the number that is added to that."""
        number = self._kinds.number(node)
        if number is not None:
            return "", int(number)
        if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Add):
            added = self._kinds.number(node.right)
            return dotted(node.left) if added is not None else None, int(added or 0)
        return dotted(node), 0

    def _call(self, node: cst.Call) -> Stretch | None:
        called = self._names.qualified(node.func)
        if called == "torch.where" and len(node.args) == 3:
            chosen = [arg.value for arg in node.args[1:] if self._kinds.number(arg.value) is None]
            return Stretch(chosen[0]) if len(chosen) == 1 else None
        if called is not None:
            first = argument(node, "input" if called == "torch.roll" else "data", 0)
            if first is None or (called != "torch.roll" and not _COPIES.fullmatch(called)):
                return None
            return Stretch(first, self._shift(node, 1) if called == "torch.roll" else 0)
        if not isinstance(node.func, cst.Attribute):
            return None
        if node.func.attr.value == "roll":
            return Stretch(node.func.value, self._shift(node, 0))
        return Stretch(node.func.value) if node.func.attr.value in _KEEP else None

    def _shift(self, roll: cst.Call, place: int) -> int:
        """By how many tokens a roll moves a sequence to the front."""
        shifts = argument(roll, "shifts", place)
        number = self._kinds.number(shifts) if shifts is not None else None
        return -int(number) if number is not None else 0

    def _variable(self, node: cst.Name | cst.Attribute) -> Stretch | None:
        written = self._written(node) if isinstance(node, cst.Name) else None
        if written is not None:
            return written
        origin = self._kinds.origin(node)
        if origin is not node:
            return Stretch(origin)
        sample = self._sample(node) if isinstance(node, cst.Name) else None
        return Stretch(sample) if sample is not None else None

    def _written(self, variable: cst.Name) -> Stretch | None:
        """What `labels[:, :-1] = ids[:, 1:]` puts into a variable: the sequence, moved by as many tokens to the front."""
        for assign in self._tree.within(self._tree.home(variable), cst.Assign):
            target, value = assign.targets[0].target, assign.value
            if not isinstance(target, cst.Subscript) or not is_name(target.value, variable.value):
                continue
            taken, put = self._step(value), self._step(target)
            if isinstance(value, cst.Subscript) and taken and put and taken.front > put.front:
                return Stretch(taken.base, taken.front - put.front)
        return None

    # -- what is handed out -----------------------------------------------------------------------------------

    def _entry(self, mapping: Node, key: str) -> Node | None:
        """The entry of a dictionary: of a literal, of one made over the items of another, or of a batch."""
        for _ in range(_STEPS):
            origin = self._kinds.origin(mapping)
            if isinstance(origin, cst.Dict):
                return _item(origin, key)
            inner = _remade(origin)
            if inner is None:
                break
            mapping = inner
        return self._sample(mapping, key) if isinstance(mapping, cst.Name) else None

    def _sample(self, batch: cst.Name, key: str | None = None) -> Node | None:
        """What the `__getitem__` of a dataset returns for a batch of its loader, or an element or entry of one."""
        found = self._loaders.pass_of(batch)
        if found is None or len(found.loaders) != 1:
            return None
        collate = found.loaders[0].given("collate_fn")
        if collate is not None:
            function = self._kinds.calls.function(collate) if key is not None else None
            return self.handed_out(function, key) if function is not None and key is not None else None
        klass = self._loaders.dataset_class(found.loaders[0])
        method = self._classes.method(klass, "__getitem__") if klass is not None else None
        leaves = self._tree.own(method, cst.Return) if method is not None else []
        if len(leaves) != 1 or leaves[0].value is None:
            return None
        returned = self._kinds.origin(leaves[0].value)
        if key is not None:
            return _item(returned, key) if isinstance(returned, cst.Dict) else None
        part = found.part(batch)
        if part is None or not isinstance(returned, cst.Tuple) or part >= len(returned.elements):
            return None
        return returned.elements[part].value

    def handed_out(self, function: cst.FunctionDef, key: str) -> Node | None:
        """The entry of the batches that a function of the project makes."""
        leaves = self._tree.own(function, cst.Return)
        if len(leaves) != 1 or leaves[0].value is None:
            return None
        returned = self._kinds.origin(leaves[0].value)
        put = self._put(leaves[0].value, key)
        return _item(returned, key) if put is None and isinstance(returned, cst.Dict) else put

    def _put(self, mapping: Node, key: str) -> Node | None:
        """What the function around a use of a dictionary has certainly put into an entry of it last."""
        function, put = self._tree.home(mapping), None
        if not isinstance(mapping, cst.Name) or not isinstance(function, cst.FunctionDef):
            return None
        for assign in self._tree.own(function, cst.Assign):
            if self._tree.contains(assign, mapping):
                break
            target = assign.targets[0].target
            if not isinstance(target, cst.Subscript) or not is_name(target.value, mapping.value):
                continue
            if _key(target) != key:
                continue
            if self._tree.parent[self._tree.parent[assign]] is not function.body:
                return None  # under a condition, or in a loop
            put = assign.value
        return put


def _key(node: Node) -> str | None:
    """The name of the entry that `batch["labels"]` stands for."""
    index = node.slice[0].slice if isinstance(node, cst.Subscript) and len(node.slice) == 1 else None
    return literal_text(index.value) if isinstance(index, cst.Index) else None


def _item(literal: cst.Dict, key: str) -> Node | None:
    entries = [item for item in literal.elements if isinstance(item, cst.DictElement)]
    found = [item.value for item in entries if literal_text(item.key) == key]
    return found[-1] if found else None


def _remade(node: Node) -> Node | None:
    """`batch` of `{name: value.to(device) for name, value in batch.items()}`, and of `batch.to(device)`."""
    called = "to"
    if isinstance(node, cst.DictComp) and not node.for_in.ifs:
        node, called = node.for_in.iter, "items"
    if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and node.func.attr.value == called:
        return node.func.value
    return None
