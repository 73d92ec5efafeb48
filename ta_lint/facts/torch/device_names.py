"""Which kinds of device code names."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.facts.values.flow import ValueFlow
from ta_lint.facts.values.kinds import Kinds
from ta_lint.facts.values.names import Names
from ta_lint.syntax.tree import Node


class DeviceNames:
    """Queries about devices."""

    def __init__(self, names: Names, kinds: Kinds, flow: ValueFlow) -> None:
        self._names = names
        self._kinds = kinds
        self._flow = flow

    def of(self, node: Node) -> Iterator[str]:
        """The types of device that an expression may name, as far as they are known."""
        if isinstance(node, cst.Attribute) and node.attr.value == "type":
            node = node.value
        for origin in self._flow.of(node).origins:
            made = origin.node
            if (
                isinstance(made, cst.Call)
                and self._names.qualified(made.func) == "torch.device"
                and made.args
            ):
                yield from self.of(made.args[0].value)
            elif (text := self._kinds.string(made)) is not None:
                yield text.partition(":")[0]
