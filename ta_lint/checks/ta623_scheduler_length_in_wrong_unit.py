"""TA623: a schedule counts batches, but is stepped once for several: divide its length."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.core.protocol import Action
from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.loops.loops import Loop
from ta_lint.facts.loops.order import LoopEvent
from ta_lint.facts.torch.lengths import length as length_of
from ta_lint.facts.torch.preparing import Preparer
from ta_lint.facts.torch.splits import is_for_evaluation
from ta_lint.facts.values.calls import called_name
from ta_lint.facts.values.discounting import factors
from ta_lint.syntax.tree import LOOPS, Node, dotted

KEYWORDS = (("lr_scheduler", "*schedule*"),)
AROUND = ("step", ("len",))


def check(module: FileFacts) -> Iterator[Suspicion]:
    if module.loops.framework:
        return
    yield from _of_unsharded_loaders(module)
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
            message = f"`{code}` counts batches, but the schedule steps once for several: divide the count"
            yield Suspicion(made, message, ((schedule.call, "it steps here"), (guard, "once for several")))


def _of_unsharded_loaders(module: FileFacts) -> Iterator[Suspicion]:
    """Schedules whose length counts the batches of all processes, times the number of processes."""
    if not any(prepared.preparer is Preparer.ACCELERATE for prepared in module.preparing.all):
        return
    for made in module.tree.all(cst.Call):
        length = length_of(made, module.names)
        if length is None or not any(_is_process_count(factor, module) for factor in factors(length)):
            continue
        parts = _computed_from(length, made, module)
        divided = any(
            _is_process_count(node, module)
            for part in parts
            for node in module.tree.within(part, cst.Attribute)
        )
        if not divided and (sharded := _sharded_later(parts, made, module)) is not None:
            counted, prepared = sharded
            code = module.code(counted)
            message = f"`{code}` counts the batches of all processes, not of one: count them after `prepare`"
            related = ((counted, "counted here"), (prepared, "each process gets its share here"))
            yield Suspicion(made, message, related, is_note=True)


def _is_process_count(node: Node, module: FileFacts) -> bool:
    return (
        isinstance(node, cst.Attribute)
        and node.attr.value == "num_processes"
        and module.preparing.preparer(node.value) is Preparer.ACCELERATE
    )


def _computed_from(length: Node, made: cst.Call, module: FileFacts) -> list[Node]:
    """The values of the variables and settings that a length is computed from, as its function assigns them before."""
    home = module.tree.home(made)
    assigned: dict[str, list[Node]] = {}
    for statement in module.tree.own(home, cst.Assign):
        if (name := dotted(statement.targets[0].target)) is not None and module.tree.before(statement, made):
            assigned.setdefault(name, []).append(statement.value)
    found: list[Node] = []
    pending = [length]
    while pending:
        part = pending.pop()
        for node in module.tree.within(part, cst.Name, cst.Attribute):
            pending += assigned.pop(dotted(node) or "", [])
        found.append(part)
    return found[1:]


def _sharded_later(parts: list[Node], made: cst.Call, module: FileFacts) -> tuple[cst.Call, cst.Call] | None:
    """The `len` of a loader in what a length is computed from, and the call that prepares the loader later."""
    later = {
        name: prepared.call
        for prepared in module.preparing.all
        if module.tree.home(prepared.call) is module.tree.home(made)
        and module.tree.before(made, prepared.call)
        for given in prepared.given
        if (name := dotted(given) if given is not None else None) is not None
    }
    for part in parts:
        for call in module.tree.within(part, cst.Call):
            if called_name(call) == "len" and len(call.args) == 1:
                prepared = later.get(dotted(call.args[0].value) or "")
                if prepared is not None:
                    return call, prepared
    return None


def _counted_loaders(length: Node, module: FileFacts) -> set[str]:
    """The names whose `len` a number of steps is made of, if it counts batches, and all there is to be seen of it."""
    parts = module.parts.of(length)
    lengths = [
        call
        for part in parts
        for call in module.tree.within(part, cst.Call)
        if called_name(call) == "len" and len(call.args) == 1
    ]
    if any(not _counts_batches(call, module) for call in lengths):
        return set()
    return {name for call in lengths if (name := dotted(call.args[0].value)) is not None}


def _counts_batches(length: cst.Call, module: FileFacts) -> bool:
    """Whether a `len` is that of a loader, by its origin or its name, or of samples, over the size of a batch."""
    counted = length.args[0].value
    name = (dotted(counted) or "").rpartition(".")[2].lower()
    above = module.tree.parent[length]
    over_batches = isinstance(above, cst.BinaryOperation) and _divides_into_batches(above)
    return over_batches or bool(module.loaders.behind(counted)) or "loader" in name or name.endswith("_dl")


def _divides_into_batches(operation: cst.BinaryOperation) -> bool:
    """Whether a division is by the size of a batch: `len(samples) // args.batch_size`."""
    is_division = isinstance(operation.operator, (cst.Divide, cst.FloorDivide))
    size = (dotted(operation.right) or "").rpartition(".")[2].lower()
    return is_division and size.endswith("batch_size") and isinstance(operation.left, cst.Call)


def _is_product(length: Node, module: FileFacts) -> bool:
    """Whether a number of steps is batches times epochs, not divided, and without a number of batches per step."""
    for part in module.parts.of(length):
        operations = module.tree.within(part, cst.BinaryOperation)
        names = [node for node in module.tree.within(part, cst.Name) if "accum" in node.value.lower()]
        if names or not all(
            isinstance(one.operator, (cst.Multiply, cst.Add)) or _divides_into_batches(one)
            for one in operations
        ):
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
