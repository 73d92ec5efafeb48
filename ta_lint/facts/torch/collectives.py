"""Collectives: calls that block until every rank of a distributed run makes them."""

from functools import cached_property

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.facts.torch.ranks import Ranks
from ta_lint.facts.values.calls import Calls, called_name
from ta_lint.facts.values.kinds import Kinds
from ta_lint.facts.values.names import Names
from ta_lint.syntax.layout import plain
from ta_lint.syntax.tree import FUNCTIONS, Node, Tree, argument, dotted, is_name, spreads

# The position of the `group` argument in functions of torch.distributed: a group may exclude some ranks.
_GROUP_POSITION = {
    "all_gather": 2,
    "all_gather_into_tensor": 2,
    "all_gather_object": 2,
    "all_reduce": 2,
    "all_to_all": 2,
    "all_to_all_single": 4,
    "barrier": 0,
    "broadcast": 2,
    "broadcast_object_list": 2,
    "gather": 3,
    "gather_object": 3,
    "monitored_barrier": 0,
    "reduce": 3,
    "reduce_scatter": 3,
    "reduce_scatter_tensor": 3,
    "scatter": 3,
    "scatter_object_list": 3,
}
_GATHERS_STATE = regex(
    r"torch\.distributed\.checkpoint(\.\w+)*\.(get_(model_|optimizer_)?state_dict|save|load)"
)
_SHARDED = "torch.distributed.fsdp.FullyShardedDataParallel"

# Frameworks, by the usual name of their main object.
_FRAMEWORK_METHODS = {
    "accelerator": frozenset({"wait_for_everyone", "gather", "gather_for_metrics", "reduce"}),
    "fabric": frozenset({"barrier", "all_gather", "all_reduce", "broadcast"}),
    "strategy": frozenset({"barrier", "broadcast", "reduce"}),
}


class Collectives:
    """Which calls are collectives among all ranks, or certainly run one."""

    def __init__(self, tree: Tree, names: Names, kinds: Kinds, calls: Calls, ranks: Ranks) -> None:
        self._tree = tree
        self._names = names
        self._kinds = kinds
        self._calls = calls
        self._ranks = ranks

    def name(self, call: cst.Call) -> str | None:
        """The collective among all ranks that a call runs, or the function of this file that certainly runs one."""
        return self._own.get(self._tree.order(call)) or self._runs_collective(call)

    @cached_property
    def _own(self) -> dict[int, str]:
        """The name of each call that is itself a collective among all ranks, by the number of the call."""
        named = ((self._tree.order(call), self._collective(call)) for call in self._tree.all(cst.Call))
        return {number: name for number, name in named if name is not None}

    def _collective(self, call: cst.Call) -> str | None:
        """The name of the collective among all ranks that a call is; None for any other call."""
        name = called_name(call)
        if name is None or spreads(call):
            return None
        qualified = self._names.qualified(call.func) or ""
        if qualified == f"torch.distributed.{name}" and name in _GROUP_POSITION:
            return name if self._among_all(argument(call, "group", _GROUP_POSITION[name])) else None
        if qualified == "torch.distributed.new_group" or _GATHERS_STATE.fullmatch(qualified):
            return name
        if not isinstance(call.func, cst.Attribute):
            return None
        receiver = call.func.value
        if name in _FRAMEWORK_METHODS.get((dotted(receiver) or "").rpartition(".")[2], ()):
            return name
        if name == "full_tensor" and not call.args:
            return name
        if name == "log" and is_name(receiver, "self"):  # of a LightningModule
            synced = argument(call, "sync_dist")
            alone = argument(call, "rank_zero_only")
            return name if synced is not None and self._kinds.boolean(synced) and alone is None else None
        if name == "state_dict":
            made = self._kinds.construction(receiver)
            return name if made is not None and self._names.qualified(made.func) == _SHARDED else None
        return None

    def _among_all(self, group: Node | None) -> bool:
        return (
            group is None
            or is_name(group, "None")
            or self._names.qualified(group) == "torch.distributed.group.WORLD"
        )

    def _runs_collective(self, call: cst.Call) -> str | None:
        """The called function of this file, if it always runs a collective among all ranks."""
        function = self._calls.callee(call) if self._own else None
        if function is None or any(
            isinstance(item.decorator, (cst.Name, cst.Attribute)) and "main" in plain(item.decorator)
            for item in function.decorators
        ):
            return None
        inside = self._tree.own(function, cst.Call)
        certain = any(self._tree.order(inner) in self._own and self._always_runs(inner) for inner in inside)
        return function.name.value if certain else None

    def _always_runs(self, call: cst.Call) -> bool:
        """Whether a call runs whenever its function does in a distributed run."""
        child: Node = call
        for above in self._tree.ancestors(call):
            if isinstance(above, FUNCTIONS):
                return True
            if isinstance(above, cst.IndentedBlock):
                earlier = above.body[: above.body.index(child)] if child in above.body else ()
                if any(self._may_leave(statement) for statement in earlier):
                    return False
            elif isinstance(above, (cst.If, cst.IfExp)):
                if child is not above.test and not self._asks_if_distributed(above.test):
                    return False
            elif isinstance(above, (cst.BooleanOperation, cst.ExceptHandler, cst.For, cst.While)):
                return False
            child = above
        return True

    def _may_leave(self, statement: Node) -> bool:
        if not isinstance(statement, cst.If) or self._asks_if_distributed(statement.test):
            return False
        return bool(self._tree.own(statement, cst.Return, cst.Raise, cst.Break, cst.Continue))

    def _asks_if_distributed(self, test: Node) -> bool:
        """Whether a condition tests the state of the run, not an argument of the caller."""
        names = self._tree.within(test, cst.Name)
        given = any(binding.how == "param" for name in names for binding in self._names.bindings(name))
        return not given and self._ranks.asks_if_distributed(test)
