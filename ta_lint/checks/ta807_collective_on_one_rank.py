"""TA807: a collective waits for every rank of its group, and a condition on the rank keeps the others from it."""

import re
from collections.abc import Iterator

import libcst as cst

from ta_lint.facts import Module, Suspicion
from ta_lint.facts.calls import called_name
from ta_lint.facts.ranks import Guard
from ta_lint.facts.tree import FUNCTIONS, Node, argument, dotted, is_name, spreads

# Where each function of torch.distributed takes the group, which may be fewer ranks than all.
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
_GATHERS_STATE = re.compile(
    r"torch\.distributed\.checkpoint(\.\w+)*\.(get_(model_|optimizer_)?state_dict|save|load)"
)
_SHARDED = "torch.distributed.fsdp.FullyShardedDataParallel"

# Frameworks, by the usual name of their object.
_FRAMEWORK_METHODS = {
    "accelerator": frozenset({"wait_for_everyone", "gather", "gather_for_metrics", "reduce"}),
    "fabric": frozenset({"barrier", "all_gather", "all_reduce", "broadcast"}),
    "strategy": frozenset({"barrier", "broadcast", "reduce"}),
}

# Calls of them. The short names belong to other things too, so those only as of their usual owners.
_CALLS = (
    r"all_gather\(|all_gather_into_tensor\(|all_gather_object\(|all_reduce\(|all_to_all|barrier\(|broadcast\(|"
    r"broadcast_object_list\(|dist\.gather|dist\.reduce|dist\.scatter|distributed\.gather|distributed\.reduce|"
    r"distributed\.scatter|gather_object\(|reduce_scatter|scatter_object_list\(|new_group\(|wait_for_everyone\(|"
    r"accelerator\.gather|accelerator\.reduce|gather_for_metrics\(|full_tensor\(|sync_dist|FullyShardedDataParallel|"
    r"distributed\.checkpoint"
)
NEEDS = (
    _CALLS,
    r"distributed|accelerat|abric|ightning|full_tensor",
    r"\b(?:if|elif)\b[^\n]*(?i:rank|main|master|primary|chief|zero|process_index)|_only\b|on_\w*main",
)

# What the other ranks may call without joining in.
_HARMLESS = re.compile(
    r"builtins\.\w+|(logging|os|sys|time|math|random|warnings|json|shutil|pathlib|numpy)\..+"
)
_DISTRIBUTED = re.compile(r"is_initialized|is_available|get_world_size|world_size|distributed")


def check(module: Module) -> Iterator[Suspicion]:
    if module.is_test:
        return
    found = [
        (call, name, guards)
        for call in module.tree.all(cst.Call)
        if (name := _collective(call, module) or _runs_collective(call, module)) is not None
        and (guards := module.ranks.guards(call))
    ]
    for call, name, guards in found:
        nearest = guards[0]
        joined = any(other == name and around[0].main is not nearest.main for _, other, around in found)
        if not joined and not any(_others_may_join(call, guard, module) for guard in guards):
            who = "one rank alone reaches it" if nearest.main else "the main process does not reach it"
            message = (
                f"`{module.code(call.func)}` waits for all ranks, and {who}, by `{module.code(nearest.test)}`"
            )
            yield Suspicion(call, message, related=((nearest.test, "here the ranks part"),))


# -- what waits for all -----------------------------------------------------------------------------------------


def _collective(call: cst.Call, module: Module) -> str | None:
    """The name of the collective that a call runs among all ranks, None for another call."""
    name = called_name(call)
    if name is None or spreads(call):
        return None
    qualified = module.qualified(call.func) or ""
    if qualified == f"torch.distributed.{name}" and name in _GROUP_POSITION:
        return name if _among_all(argument(call, "group", _GROUP_POSITION[name]), module) else None
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
        return name if synced is not None and module.boolean(synced) and alone is None else None
    if name == "state_dict":
        made = module.kinds.construction(receiver)
        return name if made is not None and module.qualified(made.func) == _SHARDED else None
    return None


def _among_all(group: Node | None, module: Module) -> bool:
    return (
        group is None or is_name(group, "None") or module.qualified(group) == "torch.distributed.group.WORLD"
    )


def _runs_collective(call: cst.Call, module: Module) -> str | None:
    """The function of this file that a call runs, if it runs a collective among all ranks whenever it is called."""
    function = module.calls.callee(call)
    if function is None or any(
        isinstance(item.decorator, (cst.Name, cst.Attribute)) and "main" in module.code(item.decorator)
        for item in function.decorators
    ):
        return None
    inside = module.tree.own(function, cst.Call)
    certain = any(_collective(inner, module) and _always_runs(inner, module) for inner in inside)
    return function.name.value if certain else None


def _always_runs(call: cst.Call, module: Module) -> bool:
    """Whether a call runs whenever its function does in a distributed run."""
    child: Node = call
    for above in module.tree.ancestors(call):
        if isinstance(above, FUNCTIONS):
            return True
        if isinstance(above, cst.IndentedBlock):
            earlier = above.body[: above.body.index(child)] if child in above.body else ()
            if any(_may_leave(statement, module) for statement in earlier):
                return False
        elif isinstance(above, (cst.If, cst.IfExp)):
            if child is not above.test and not _asks_if_distributed(above.test, module):
                return False
        elif isinstance(above, (cst.BooleanOperation, cst.ExceptHandler, cst.For, cst.While)):
            return False
        child = above
    return True


def _may_leave(statement: Node, module: Module) -> bool:
    if not isinstance(statement, cst.If) or _asks_if_distributed(statement.test, module):
        return False
    return bool(module.tree.own(statement, cst.Return, cst.Raise, cst.Break, cst.Continue))


def _asks_if_distributed(test: Node, module: Module) -> bool:
    """Whether a condition asks for the state of the run, and not for what the caller wants."""
    names = module.tree.within(test, cst.Name)
    given = any(binding.how == "param" for name in names for binding in module.names.bindings(name))
    return not given and any(_DISTRIBUTED.search(name.value) for name in names)


# -- what the others do -----------------------------------------------------------------------------------------


def _others_may_join(call: cst.Call, guard: Guard, module: Module) -> bool:
    """Whether the other way at the condition runs a collective too, or something that is not known."""
    split = module.tree.parent[guard.test]
    if not isinstance(split, (cst.If, cst.IfExp)):
        return False
    branches = [branch for branch in (split.body, split.orelse) if branch is not None]
    others = [branch for branch in branches if not module.tree.contains(branch, call)]
    return any(
        not _HARMLESS.fullmatch(module.qualified(other.func) or "")
        for branch in others
        for other in module.tree.within(branch, cst.Call)
    )
