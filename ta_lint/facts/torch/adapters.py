"""Adapters of PEFT: which model gets which, and whether code makes other parameters train beside them."""

from dataclasses import dataclass
from functools import cached_property

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.facts.torch.trainers import Trainers
from ta_lint.facts.values.flow import ValueFlow
from ta_lint.facts.values.kinds import Kinds
from ta_lint.facts.values.names import Names
from ta_lint.facts.values.value import Value
from ta_lint.syntax.tree import Node, Tree

_WRAPS = regex(r"peft\.(\w+\.)*get_peft_model")
_CONFIG = regex(r"peft\.(\w+\.)*(Lora|AdaLora|IA3|LoHa|LoKr|OFT|BOFT|VeRA)Config")

# What makes parameters trainable, or another adapter the one that trains.
_THAWS = frozenset("add_adapter load_adapter set_adapter set_requires_grad requires_grad_ unfreeze".split())

_DEPTH = 3  # adapters around adapters


@dataclass(frozen=True, eq=False)
class Adaptation:
    """`call` puts the adapters of a configuration into a model: `get_peft_model`, or a trainer of TRL."""

    call: cst.Call
    model: Value
    config: cst.Call

    @property
    def models(self) -> list[Node]:
        """The expressions that make the model, one for each way."""
        return [origin.node for origin in self.model.origins if not origin.path]


class Adapters:
    """Queries about the adapters that this file puts into models."""

    def __init__(self, tree: Tree, names: Names, kinds: Kinds, flow: ValueFlow, trainers: Trainers) -> None:
        self._tree = tree
        self._names = names
        self._kinds = kinds
        self._flow = flow
        self._trainers = trainers

    @cached_property
    def put(self) -> list[Adaptation]:
        """The adapters that are put into models, with what is known of their configuration, in source order."""
        wrapped = [
            (call, self._flow.argument(call, "model", 0), self._flow.argument(call, "peft_config", 1))
            for call in self._tree.all(cst.Call)
            if self.wraps(call)
        ]
        wrapped += [
            (call, self._trainers.given(call, "model"), self._trainers.given(call, "peft_config"))
            for call in self._trainers.made
        ]
        found = [(call, model, self._config(config)) for call, model, config in wrapped]
        return [Adaptation(call, model, config) for call, model, config in found if config is not None]

    def _config(self, value: Value) -> cst.Call | None:
        """The one call that makes a configuration, if that tells all: it spreads nothing that is not in sight."""
        made = [self._kinds.construction(origin.node) for origin in value.origins if not origin.path]
        config = made[0] if len(made) == len(value.origins) == 1 else None
        if config is None or _CONFIG.fullmatch(self._names.qualified(config.func) or "") is None:
            return None
        return config

    @cached_property
    def thaws(self) -> bool:
        """Whether code of the file makes parameters trainable, or adds an adapter."""
        for attribute in self._tree.all(cst.Attribute):
            above = self._tree.parent[attribute]
            if attribute.attr.value == "requires_grad":
                statement = self._tree.parent[above] if isinstance(above, cst.AssignTarget) else None
                if isinstance(statement, cst.Assign) and self._kinds.boolean(statement.value) is not False:
                    return True
            elif attribute.attr.value in _THAWS and not self._is_given_false(above):
                return True
        return False

    def _is_given_false(self, call: Node) -> bool:
        return isinstance(call, cst.Call) and any(
            self._kinds.boolean(arg.value) is False for arg in call.args
        )

    def base(self, model: Node) -> cst.Call | None:
        """The call that made a model, below adapters: `LlamaForCausalLM.from_pretrained(path)`."""
        made = self._kinds.construction(model)
        for _ in range(_DEPTH):
            if made is None or not made.args or not self.wraps(made):
                return made
            made = self._kinds.construction(made.args[0].value)
        return None

    def wraps(self, call: cst.Call) -> bool:
        """Whether a call puts new adapters into a model."""
        return _WRAPS.fullmatch(self._names.qualified(call.func) or "") is not None

    def is_unset(self, config: cst.Call, keyword: str) -> bool:
        """Whether a configuration certainly does not set a field, or sets it to `None`: `names.append(name)` is that, too."""
        given = self._flow.argument(config, keyword, -1)
        return all(not origin.path and self._is_none(origin.node) for origin in given.origins)

    def _is_none(self, node: Node) -> bool:
        if isinstance(node, cst.Name):
            return node.value == "None"
        method = node.func if isinstance(node, cst.Call) else None
        return isinstance(method, cst.Attribute) and method.attr.value in ("append", "extend")

    def words(self, config: cst.Call, keyword: str) -> frozenset[str] | None:
        """The strings that a configuration gives for a field, none if it is not set; None if they are not in sight."""
        given = self._flow.argument(config, keyword, -1)
        found: set[str] = set()
        for origin in given.origins:
            strings = self._strings(origin.node) if not origin.path else None
            if strings is None:
                return None
            found |= strings
        return frozenset(found)

    def _strings(self, node: Node) -> set[str] | None:
        if isinstance(node, cst.Name) and node.value == "None":
            return set()
        one = self._kinds.string(node)
        if one is not None:
            return {one}
        name = self._names.qualified(node)
        if name is not None and ".TaskType." in name:
            return {name.rpartition(".")[2]}
        if not isinstance(node, (cst.List, cst.Tuple, cst.Set)):
            return None
        strings = [self._kinds.string(element.value) for element in node.elements]
        return {text for text in strings if text is not None} if None not in strings else None
