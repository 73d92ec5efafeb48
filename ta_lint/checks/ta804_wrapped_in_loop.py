"""TA804: a training loop or step wraps a model again and again."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.loops.loops import Region, names_training
from ta_lint.facts.loops.scripts import header
from ta_lint.facts.torch.wrappers import ParallelWrapper, WrapCall
from ta_lint.syntax.layout import plain
from ta_lint.syntax.tree import LOOPS, Node, dotted

KEYWORDS = (("DistributedDataParallel", "FullyShardedDataParallel", "fully_shard"),)

_HARM = {
    ParallelWrapper.REPLICATED: "which sends all its parameters to all ranks",
    ParallelWrapper.FLAT: "which shards what is sharded already",
    ParallelWrapper.SHARDED: "which raises the second time",
}

_STEP = regex(r"forward|(training|train|validation|test)_step")
_ASKS = regex(r"isinstance|hasattr|\bNone\b|wrapped")


def check(module: FileFacts) -> Iterator[Suspicion]:
    for wrapping in module.wrappers.all:
        region = _repeats(wrapping, module)
        if region is None:
            continue
        what = f"`{wrapping.wrapper}` wraps `{module.code(wrapping.model)}`"
        if isinstance(region, cst.FunctionDef):
            message = (
                f"{what} again in each call of `{region.name.value}`, {_HARM[wrapping.wrapper]}: wrap it once"
            )
            yield Suspicion(wrapping.call, message)
        else:
            related = ((header(region), "this loop wraps it again and again"),)
            message = f"{what} again in each pass of the loop, {_HARM[wrapping.wrapper]}: wrap it once, before the loop"
            yield Suspicion(wrapping.call, message, related)


def _repeats(wrapping: WrapCall, module: FileFacts) -> Region | None:
    """The training loop, or the function for one step, that wraps the same model each time it runs."""
    tree, call = module.tree, wrapping.call
    for loop in tree.loops(call):
        if _is_always_the_same(wrapping, loop, module) and _trains(loop.body, wrapping, module):
            return loop if not _is_chosen(call, loop, module) else None
    step = tree.home(call)
    if (
        isinstance(step, cst.FunctionDef)
        and _STEP.fullmatch(step.name.value)
        and (attribute := dotted(wrapping.model)) is not None
        and attribute.startswith("self.")
        and _is_always_the_same(wrapping, step, module)
        and not _is_chosen(call, step, module)
    ):
        return step
    return None


def _trains(region: Node, wrapping: WrapCall, module: FileFacts) -> bool:
    """Whether a region trains, itself or in an external function that is named for it and gets the model."""
    model = dotted(wrapping.model)
    return module.loops.trains(region) or any(
        names_training(call)
        and module.calls.callee(call) is None
        and any(dotted(arg.value) == model for arg in call.args)
        for call in module.tree.within(region, cst.Call)
    )


def _is_always_the_same(wrapping: WrapCall, region: Node, module: FileFacts) -> bool:
    """Whether a region wraps the same model each time: it rebinds no name in the arguments."""
    tree = module.tree
    if dotted(wrapping.model) is None:
        return False  # a copy, an element or a new model
    for arg in wrapping.call.args:
        for name in tree.within(arg.value, cst.Name):
            bindings = module.names.bindings(name)
            if any(
                tree.contains(region, binding.node) and not _is_wrapping(binding.node, wrapping, module)
                for binding in bindings
                if binding.how != "param"
            ):
                return False
    path = dotted(wrapping.model)
    return not any(
        dotted(target.target) == path and not _is_wrapping(tree.parent[target], wrapping, module)
        for target in tree.within(region, cst.AssignTarget)
    )


def _is_wrapping(statement: Node, wrapping: WrapCall, module: FileFacts) -> bool:
    return module.tree.contains(statement, wrapping.call) and not isinstance(
        statement, (*LOOPS, cst.FunctionDef)
    )


def _is_chosen(call: cst.Call, region: Node, module: FileFacts) -> bool:
    """Whether a condition in the region lets only some passes wrap, or a pass that wraps is the last one."""
    tree = module.tree
    if isinstance(region, LOOPS) and module.loops.is_last_pass(call, region):
        return True
    for above in tree.ancestors(call):
        if above is region:
            return False
        if isinstance(above, (cst.If, cst.IfExp)) and _is_about_passes(above.test, region, module):
            return True
    return False


def _is_about_passes(test: Node, region: Node, module: FileFacts) -> bool:
    asks_for_wrapper = _ASKS.search(plain(test)) is not None
    attributes = isinstance(region, cst.FunctionDef) and "self." in plain(test)
    loop = isinstance(region, LOOPS) and module.loops.changes(test, region)
    return asks_for_wrapper or attributes or loop
