"""TA630: a rank leaves the training loop by its own loss, patience or clock, and the others wait."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.loops.loops import Loop
from ta_lint.facts.torch.ranks import Guard
from ta_lint.facts.values.calls import called_name
from ta_lint.syntax.tree import Node

KEYWORDS = (("break", "return", "while"),)
AROUND = (("init_process_group", "DistributedDataParallel", "FullyShardedDataParallel", "Accelerator"),)

_RANKS = (
    "torch.distributed.init_process_group",
    "torch.nn.parallel.DistributedDataParallel",
    "torch.nn.parallel.distributed.DistributedDataParallel",
    "torch.distributed.fsdp.FullyShardedDataParallel",
    "accelerate.Accelerator",
)


def check(module: FileFacts) -> Iterator[Suspicion]:
    if module.loops.framework is not None:
        return
    exits = list(_exits(module))
    if not exits or not any(each.calls_to(*_RANKS) for each in module.script):
        return
    for leaving, loop in exits:
        tests = _tests(leaving, loop, module)
        if any(map(module.ranks.asks_if_distributed, tests)) or not module.loops.trains(loop):
            continue
        part = _parting(leaving, loop, tests, module)
        if part is not None and not _joins(loop, module) and not module.ranks.only_main(loop):
            message = _message(leaving, by_rank=_guard(leaving, loop, module) is not None)
            yield Suspicion(leaving, message, related=((part, "here the ranks part"),))


def _exits(module: FileFacts) -> Iterator[tuple[Node, Loop]]:
    """The places that leave loops, with the loop: of a `return`, the outermost; of a `while`, its condition."""
    for leaving in module.tree.all(cst.Break, cst.Return):
        loops = module.tree.loops(leaving)
        if loops:
            yield leaving, loops[0] if isinstance(leaving, cst.Break) else loops[-1]
    yield from ((loop.test, loop) for loop in module.tree.all(cst.While))


def _tests(leaving: Node, loop: Loop, module: FileFacts) -> list[Node]:
    """The conditions within a loop that end it, the innermost first."""
    if isinstance(loop, cst.While) and leaving is loop.test:
        return [loop.test]
    found: list[Node] = []
    child = leaving
    for above in module.tree.ancestors(leaving):
        if above is loop:
            break
        if isinstance(above, cst.If) and child is not above.test:
            found.append(above.test)
        child = above
    return found


def _parting(leaving: Node, loop: Loop, tests: list[Node], module: FileFacts) -> Node | None:
    """The condition under which only some ranks leave; None if they leave together, or may."""
    guard = _guard(leaving, loop, module)
    if guard is not None:
        others = (_guard(other, loop, module) for other, left in _exits(module) if left is loop)
        return (
            None
            if any(other is not None and other.main is not guard.main for other in others)
            else guard.test
        )
    return next((test for test in tests if module.rank_values.differ(test)), None)


def _guard(leaving: Node, loop: Loop, module: FileFacts) -> Guard | None:
    """The condition on the rank that is inside the loop and around the statement that leaves it."""
    guards = module.ranks.guards(leaving)
    return next((guard for guard in guards if module.tree.contains(loop.body, guard.test)), None)


def _joins(loop: Loop, module: FileFacts) -> bool:
    """Whether `with model.join()` is around a loop: ranks that leave then answer the collectives of the others."""
    return any(
        isinstance(item.item, cst.Call) and (called_name(item.item) or "").lower() == "join"
        for above in module.tree.ancestors(loop)
        if isinstance(above, cst.With)
        for item in above.items
    )


def _message(leaving: Node, *, by_rank: bool) -> str:
    name = {cst.Break: "break", cst.Return: "return"}.get(type(leaving), "while")
    if by_rank:
        return f"only some ranks take this `{name}`, and the rest hang: broadcast the decision"
    return f"ranks may leave by this `{name}` at different steps, and the rest hang: all-reduce the decision"
