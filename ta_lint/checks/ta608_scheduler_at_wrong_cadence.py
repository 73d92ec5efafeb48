"""TA608: a learning rate scheduler that counts batches is stepped once per epoch, or the reverse."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.core.protocol import Action
from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.loops.loops import Loop
from ta_lint.facts.loops.order import LoopEvent
from ta_lint.facts.values.calls import called_name
from ta_lint.syntax.tree import Node, argument, dotted

KEYWORDS = (
    "step",
    tuple(
        "OneCycleLR *sched* StepLR MultiStepLR CosineAnnealingLR ExponentialLR LinearLR PolynomialLR".split()
    ),
)

# The argument with the number of steps that a schedule is built for.
_LENGTHS = {
    "CosineAnnealingLR": ("T_max", 1),
    "LinearLR": ("total_iters", 3),
    "MultiStepLR": ("milestones", 1),
    "PolynomialLR": ("total_iters", 1),
    "StepLR": ("step_size", 1),
}
_PER_BATCH = regex(r"torch\.optim\.lr_scheduler\.OneCycleLR|transformers\.(\w+\.)*get_\w*sched\w*")
_BATCH_COUNTS = ("steps_per_epoch", "total_steps", "num_training_steps")

# Fewer epochs than any loader has batches, and a decay that leaves almost nothing after a few hundred steps.
_FEW = 10
_FAST = 0.95


def check(module: FileFacts) -> Iterator[Suspicion]:
    if module.loops.framework or not _steps_without_arguments(module):
        return
    for schedule in module.order.events(Action.SCHEDULE):
        made = module.kinds.construction(schedule.subject)
        around = module.tree.loops(schedule.call)
        if made is None or not around or schedule.call.args:
            continue
        code = module.code(schedule.call)
        if (count := _batch_count(module, made)) is not None and _is_per_epoch(module, schedule, around[0]):
            message = f"`{code}` runs per epoch, but `{module.code(count)}` counts batches: step it per batch"
            yield Suspicion(schedule.call, message, ((made, "the schedule is laid out here"),))
        elif (length := _epoch_count(module, made, around)) and _is_per_batch(module, schedule, around):
            message = f"`{code}` runs per batch, but `{module.code(length)}` counts epochs: step it per epoch"
            yield Suspicion(schedule.call, message, ((made, "the schedule is laid out here"),))


def _steps_without_arguments(module: FileFacts) -> bool:
    """Whether the file has a `step()` without arguments, as schedulers do; looking for the events costs far more."""
    return any(called_name(call) == "step" and not call.args for call in module.tree.all(cst.Call))


# -- made for batches, stepped per epoch ----------------------------------------------------------------------


def _batch_count(module: FileFacts, made: cst.Call) -> cst.Arg | None:
    """The argument that makes a schedule count batches: it comes from the length of a loader."""
    if _PER_BATCH.fullmatch(module.qualified(made.func) or "") is None:
        return None
    given = [arg for arg in made.args if arg.keyword is not None and arg.keyword.value in _BATCH_COUNTS]
    return next((arg for arg in given if _counts_batches(module, arg.value)), None)


def _counts_batches(module: FileFacts, count: Node) -> bool:
    origin = module.kinds.origin(count)
    if any(called_name(call) == "len" for call in module.tree.within(origin, cst.Call)):
        return True
    names = module.tree.within(origin, cst.Name) if isinstance(origin, cst.BinaryOperation) else []
    sources = (module.kinds.origin(name) for name in names)
    return any(
        called_name(call) == "len" for source in sources for call in module.tree.within(source, cst.Call)
    )


def _is_per_epoch(module: FileFacts, schedule: LoopEvent, loop: Loop) -> bool:
    """Whether every optimizer step in a loop is in another loop inside it, and the scheduler's step is not."""
    paths = module.order.paths_with(loop, schedule)
    steps = [event for path, _ in paths for event in path if event.action is Action.STEP]
    return bool(steps) and all(_is_repeated(module, step, loop) for step in steps)


def _is_repeated(module: FileFacts, step: LoopEvent, loop: Loop) -> bool:
    places = [*step.via, step.call]
    return any(around is not loop for place in places for around in module.tree.loops(place)[:1])


# -- made for epochs, stepped per batch -----------------------------------------------------------------------


def _epoch_count(module: FileFacts, made: cst.Call, around: list[Loop]) -> Node | None:
    """The argument or call that shows that a schedule counts epochs; None if nothing does."""
    name = (module.qualified(made.func) or "").removeprefix("torch.optim.lr_scheduler.")
    if name == "ExponentialLR":
        gamma = argument(made, "gamma", 1)
        value = module.number(gamma) if gamma is not None else None
        return made if value is not None and value <= _FAST else None
    if name not in _LENGTHS:
        return None
    length = argument(made, *_LENGTHS[name])
    if length is None:
        return None
    if name == "StepLR" and (module.number(length) or _FEW + 1) <= _FEW:
        return made
    return made if len(around) > 1 and _is_bound_of(module, length, around[1]) else None


def _is_bound_of(module: FileFacts, length: Node, epochs: Loop) -> bool:
    """Whether a length is the number of epochs or a part of it: `T_max=args.epochs` and `range(args.epochs)`."""
    if (
        not isinstance(epochs, cst.For)
        or not isinstance(epochs.iter, cst.Call)
        or called_name(epochs.iter) != "range"
    ):
        return False
    stop = dotted(epochs.iter.args[-1].value if len(epochs.iter.args) < 3 else epochs.iter.args[1].value)
    origin = module.kinds.origin(length)
    if stop is None or _counts_batches(module, length):
        return False
    used = {dotted(node) for node in (length, *module.tree.within(origin, cst.Name, cst.Attribute))}
    multiplied = [
        operation
        for operation in module.tree.within(origin, cst.BinaryOperation)
        if isinstance(operation.operator, cst.Multiply)
        and module.number(operation.left) is None
        and module.number(operation.right) is None
    ]
    return stop in used and not multiplied


def _is_per_batch(module: FileFacts, schedule: LoopEvent, around: list[Loop]) -> bool:
    """Whether the scheduler steps in the inner of two loops, on every path, as the optimizer does."""
    if len(around) < 2:
        return False
    paths = module.order.paths(around[0])
    always = all(any(event.call is schedule.call for event in path) for path in paths)
    steps = [event for path in paths for event in path if event.action is Action.STEP]
    return bool(steps) and always and not any(_is_repeated(module, step, around[0]) for step in steps)
