"""TA623: a schedule counts batches, but is stepped once for several: divide its length."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.core.protocol import Action
from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.loops.loops import Loop
from ta_lint.facts.loops.order import LoopEvent
from ta_lint.facts.torch.lengths import length as length_of
from ta_lint.facts.torch.splits import is_for_evaluation
from ta_lint.facts.values.calls import called_name
from ta_lint.syntax.tree import LOOPS, Node, dotted

KEYWORDS = (("lr_scheduler", "*schedule*"),)
AROUND = ("step", ("len",))


def check(module: FileFacts) -> Iterator[Suspicion]:
    if module.loops.framework or module.is_test:
        return
    reported: set[Node] = set()
    for schedule in module.order.events(Action.SCHEDULE):
        made = module.kinds.construction(schedule.subject)
        length = length_of(made, module.names) if made is not None else None
        loop = module.order.region(schedule, Action.BACKWARD)
        if made is None or length is None or made in reported or not isinstance(loop, LOOPS):
            continue
        counted = _counted_loaders(length, module)
        reported.add(made)
        code = module.code(length)
        if counted and all(is_for_evaluation(name) for name in counted):
            message = f"`{code}` counts evaluation batches, but the schedule trains: use the training loader"
            yield Suspicion(made, message, ((schedule.call, "it steps here"),))
        elif (
            counted and _is_product(length, module) and (guard := _guard(schedule, loop, module)) is not None
        ):
            message = f"`{code}` counts batches, but the schedule steps once for several: divide it"
            yield Suspicion(made, message, ((schedule.call, "it steps here"), (guard, "once for several")))


def _counted_loaders(length: Node, module: FileFacts) -> set[str]:
    """The names whose `len` a number of steps is made of, if they are loaders, and all there is to be seen of it."""
    parts = module.parts.of(length)
    lengths = [
        call
        for part in parts
        for call in module.tree.within(part, cst.Call)
        if called_name(call) == "len" and len(call.args) == 1
    ]
    if any(not _counts_batches(call.args[0].value, module) for call in lengths):
        return set()
    return {name for call in lengths if (name := dotted(call.args[0].value)) is not None}


def _counts_batches(counted: Node, module: FileFacts) -> bool:
    """Whether the counted object is a loader, by its origin or its name."""
    name = (dotted(counted) or "").rpartition(".")[2].lower()
    return bool(module.loaders.behind(counted)) or "loader" in name or name.endswith("_dl")


def _is_product(length: Node, module: FileFacts) -> bool:
    """Whether a number of steps is batches times epochs, not divided, and without a number of batches per step."""
    for part in module.parts.of(length):
        operations = module.tree.within(part, cst.BinaryOperation)
        names = [node for node in module.tree.within(part, cst.Name) if "accum" in node.value.lower()]
        if names or not all(isinstance(one.operator, (cst.Multiply, cst.Add)) for one in operations):
            return False
    return True


def _guard(schedule: LoopEvent, loop: Loop, module: FileFacts) -> Node | None:
    """What lets both the optimizer and the schedule step once in several passes of a loop; None where each pass steps."""
    steps = [event for path in module.order.paths(loop) for event in path if event.action is Action.STEP]
    for accumulation in module.order.accumulations:
        inner = accumulation.guard is accumulation.loop
        if module.code(accumulation.count) == "1":
            continue
        if isinstance(accumulation.guard, cst.If) and accumulation.loop is loop:
            if module.order.is_guarded(schedule.place, accumulation.guard):
                return accumulation.guard.test
        elif inner and module.tree.contains(loop, accumulation.loop) and accumulation.loop is not loop:
            return None
    guards = [module.order.guard(step, loop) for step in steps]
    guard = guards[0] if guards else None
    is_shared = guard is not None and all(one is guard for one in guards)
    return (
        guard.test
        if guard is not None and is_shared and module.order.is_guarded(schedule.place, guard)
        else None
    )
