"""TA807: a collective waits for all ranks of its group, but a condition on the rank keeps some from it."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.torch.ranks import Guard
from ta_lint.facts.torch.wrappers import ParallelWrapper
from ta_lint.syntax.tree import Node, argument

# Words of torch.distributed and the frameworks, and the names of collectives.
KEYWORDS = (
    ("*distributed*", "accelerator", "fabric", "strategy", "full_tensor", "sync_dist"),
    tuple(
        "all_gather all_gather_into_tensor all_gather_object all_reduce all_to_all all_to_all_single barrier broadcast "
        "broadcast_object_list gather gather_object monitored_barrier reduce reduce_scatter reduce_scatter_tensor scatter "
        "scatter_object_list new_group checkpoint full_tensor gather_for_metrics sync_dist wait_for_everyone "
        "FullyShardedDataParallel DistributedDataParallel fully_shard prepare".split()
    ),
)

# Calls of the other ranks that do not join a collective.
_HARMLESS = regex(r"builtins\.\w+|(logging|os|sys|time|math|random|warnings|json|shutil|pathlib|numpy)\..+")


def check(module: FileFacts) -> Iterator[Suspicion]:
    found = [
        (call, name, guards)
        for call in module.tree.all(cst.Call)
        if (name := module.collectives.name(call)) is not None and (guards := module.ranks.guards(call))
    ]
    for call, name, guards in found:
        nearest = guards[0]
        joined = any(other == name and around[0].main is not nearest.main for _, other, around in found)
        if not joined and not any(_others_may_join(call, guard, module) for guard in guards):
            who = "only one rank calls it" if nearest.main else "the main process never calls it"
            message = f"`{module.code(call.func)}` waits for all ranks, but {who}, so training hangs: call it on all"
            yield Suspicion(call, message, related=((nearest.test, "here the ranks part"),))
    known = {call for call, _, _ in found}
    yield from (one for one in _forwards(module) if one.node not in known)


# -- forward passes of wrapped models -------------------------------------------------------------------------


def _forwards(module: FileFacts) -> Iterator[Suspicion]:
    """Forward passes that gather parameters or send buffers, but that only the main process runs."""
    for call in module.tree.all(cst.Call):
        guards = module.ranks.guards(call)
        wrapping = _waits_in_forward(call, module) if guards and guards[0].main else None
        if wrapping is not None and not any(_others_may_join(call, guard, module) for guard in guards):
            message = f"the wrapped `{module.code(call.func)}` waits for all ranks, but only one runs it: run the plain model"
            related = ((wrapping, "wrapped here"), (guards[0].test, "here the ranks part"))
            yield Suspicion(call, message, related)


def _waits_in_forward(call: cst.Call, module: FileFacts) -> cst.Call | None:
    """The call that wrapped the model that a call runs, if each of its forward passes is a collective."""
    model = module.calls_in_loop.called(call)
    if not isinstance(model, (cst.Name, cst.Attribute)):
        return None
    if (wrapped := module.wrappers.around(model)) is not None:
        is_sharded = wrapped.wrapper is not ParallelWrapper.REPLICATED
        return wrapped.call if is_sharded or _sends_buffers(wrapped.call, wrapped.model, module) else None
    return next(
        (one.call for one, given in module.preparing.bare(model) if _sends_buffers(one.call, given, module)),
        None,
    )


def _sends_buffers(wrapping: cst.Call, model: Node, module: FileFacts) -> bool:
    """Whether a model has the buffers of a BatchNorm, which `DistributedDataParallel` sends before each forward pass."""
    if argument(wrapping, "broadcast_buffers") is not None:
        return False
    return any("BatchNorm" in called for called, _ in module.parameters.layers(model))


def _others_may_join(call: cst.Call, guard: Guard, module: FileFacts) -> bool:
    """Whether the other branch of the condition runs a collective too, or unknown code."""
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
