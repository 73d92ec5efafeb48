"""Under which autocast code runs."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.facts.values.calls import called_name
from ta_lint.facts.values.flow import ValueFlow
from ta_lint.facts.values.kinds import Kinds
from ta_lint.facts.values.names import Names
from ta_lint.facts.values.vocabulary import PREPARER_NAMES
from ta_lint.syntax.tree import Node, Tree, argument, dotted

_AUTOCAST = regex(r"torch\.(\w+\.)*autocast")
_OF_DEVICE = regex(r"torch\.(cuda|cpu)\.amp\.(\w+\.)*autocast")


class Autocasts:
    """Queries about autocast."""

    def __init__(self, tree: Tree, names: Names, kinds: Kinds, flow: ValueFlow) -> None:
        self._tree = tree
        self._names = names
        self._kinds = kinds
        self._flow = flow

    def around(self, node: Node) -> cst.Call | None:
        """The innermost autocast around a node, in its function: of a `with`, or of a decorator."""
        child = node
        for above in self._tree.ancestors(node):
            if isinstance(above, cst.With) and child is above.body:
                for item in reversed(above.items):
                    if (found := self._meant(item.item)) is not None:
                        return found
            if isinstance(above, cst.FunctionDef) and child is above.body:
                return self.of_function(above)
            if isinstance(above, (cst.Lambda, cst.ClassDef)):
                return None
            child = above
        return None

    def of_function(self, function: cst.FunctionDef) -> cst.Call | None:
        """The autocast that decorates a function."""
        found = (self._meant(item.decorator) for item in function.decorators)
        return next((one for one in found if one is not None), None)

    def _meant(self, context: Node) -> cst.Call | None:
        """The autocast that a context is, itself or by a name: `ctx = nullcontext() if on_cpu else torch.autocast("cuda")`."""
        origins = (origin.node for origin in self._flow.of(context).origins if not origin.path)
        calls = (node for node in origins if isinstance(node, cst.Call))
        return next((call for call in calls if self._is_autocast(call)), None)

    def _is_autocast(self, call: cst.Call) -> bool:
        qualified = self._names.qualified(call.func)
        if qualified is not None:
            return _AUTOCAST.fullmatch(qualified) is not None
        receiver = call.func.value if isinstance(call.func, cst.Attribute) else call.func
        return (
            called_name(call) == "autocast" and (dotted(receiver) or "").rpartition(".")[2] in PREPARER_NAMES
        )

    def is_off(self, call: cst.Call) -> bool:
        """Whether an autocast is switched off in the source."""
        of_device = _OF_DEVICE.fullmatch(self._names.qualified(call.func) or "")
        enabled = argument(call, "enabled", 0 if of_device else 2)
        return enabled is not None and self._kinds.boolean(enabled) is False

    def devices(self, node: Node) -> Iterator[str]:
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
                yield from self.devices(made.args[0].value)
            elif (text := self._kinds.string(made)) is not None:
                yield text.partition(":")[0]
