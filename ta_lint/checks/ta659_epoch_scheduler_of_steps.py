"""TA659: Lightning steps a schedule with a length in steps once per epoch, so it never leaves its first part."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.values.calls import called_name
from ta_lint.facts.values.value import Origin
from ta_lint.syntax.edits import ProposedFix, insert_after, wrap
from ta_lint.syntax.tree import Node, argument, attribute_of_self, literal_text, spreads

KEYWORDS = ("configure_optimizers",)
AROUND = (
    ("lightning", "pytorch_lightning"),
    ("OneCycleLR", "CyclicLR", "CosineAnnealing*", "LinearLR", "PolynomialLR", "LambdaLR", "*schedule*"),
)

_TORCH = "torch.optim.lr_scheduler."
_OF_TRANSFORMERS = regex(r"(transformers|diffusers)\.(\w+\.)*get_\w*schedule\w*")

# The argument that says how long a schedule of torch is, and its place.
_LENGTHS = {
    "CosineAnnealingLR": ("T_max", 1),
    "CosineAnnealingWarmRestarts": ("T_0", 1),
    "CyclicLR": ("step_size_up", 3),
    "LinearLR": ("total_iters", 3),
    "OneCycleLR": ("total_steps", 2),
    "PolynomialLR": ("total_iters", 1),
}
_STEPS = ("step", "iter", "batches")
_DECAY = regex(r"decay_?steps?$")  # of an epoch too, as in `StepLR(optimizer, step_size=lr_decay_steps)`
_MANY = 1000  # no number of epochs


def check(module: FileFacts) -> Iterator[Suspicion]:
    for klass in module.lightning.modules:
        schedules = module.lightning.schedules(klass)
        if not schedules or module.lightning.automatic(klass) is not True or _steps_itself(module, klass):
            continue
        for schedule in schedules:
            if schedule.interval == "epoch" and _is_in_steps(module, schedule.made):
                name = called_name(schedule.made)
                message = f'Lightning steps `{name}` per epoch, but its length is in steps; return `"interval": "step"`'
                yield from _at(module, klass, schedule.made, message)


def _at(module: FileFacts, klass: cst.ClassDef, made: cst.Call, message: str) -> Iterator[Suspicion]:
    if module.is_here(made):
        yield Suspicion(made, message, fix=_fix(module, klass))


def _steps_itself(module: FileFacts, klass: cst.ClassDef) -> bool:
    """Whether a module steps its schedules by hand, or says itself how they are stepped."""
    for one in module.lightning.lineage(klass) or ():
        if module.lightning.hook(one, "lr_scheduler_step") is not None:
            return True
        calls = module.tree.within(one, cst.Call)
        if any(
            attribute_of_self(call.func) == "lr_schedulers" or _is_schedule_step(module, call)
            for call in calls
        ):
            return True
    return False


def _is_schedule_step(module: FileFacts, call: cst.Call) -> bool:
    return called_name(call) == "step" and "sched" in module.code(call.func).lower()


# -- lengths --------------------------------------------------------------------------------------------------


def _is_in_steps(module: FileFacts, made: cst.Call) -> bool:
    """Whether a schedule certainly counts batches."""
    called = module.qualified(made.func) or ""
    if spreads(made):
        return False
    if _OF_TRANSFORMERS.fullmatch(called):
        is_general = called.endswith(".get_scheduler")
        length = argument(made, "num_training_steps", 3 if is_general else 2)
        length = length or argument(made, "num_warmup_steps", 2 if is_general else 1)
        return length is not None and _counts_steps(module, length)
    name = called.removeprefix(_TORCH)
    if name in ("ChainedScheduler", "SequentialLR"):
        members = argument(made, "schedulers", 1 if name == "SequentialLR" else 0)
        origins = module.flow.of(members, (None,)).origins if members is not None else ()
        return any(isinstance(one.node, cst.Call) and _is_in_steps(module, one.node) for one in origins)
    if name == "LambdaLR":
        factor = argument(made, "lr_lambda", 1)
        return factor is not None and _takes_steps(module, factor)
    if not called.startswith(_TORCH) or name not in _LENGTHS:
        return False
    per_epoch = argument(made, "steps_per_epoch", 4) if name == "OneCycleLR" else None
    if per_epoch is not None:
        return module.number(per_epoch) is None or (module.number(per_epoch) or 0) > 1
    length = argument(made, *_LENGTHS[name])
    return _counts_steps(module, length) if length is not None else name == "CyclicLR"


def _takes_steps(module: FileFacts, factor: Node) -> bool:
    """Whether the function of a schedule calls its argument a step, and nothing in it an epoch."""
    origin = module.kinds.origin(factor)
    function = origin if isinstance(origin, cst.Lambda) else module.calls.function(factor)
    if function is None or not function.params.params:
        return False
    words = [name.value.lower() for name in module.tree.within(function, cst.Name)]
    given = function.params.params[-1].name.value.lower()
    return any(step in given for step in _STEPS) and not any("epoch" in word for word in words)


def _counts_steps(module: FileFacts, length: Node) -> bool:
    number = module.number(length)
    if number is not None:
        return number >= _MANY
    origins = module.flow.of(length).origins
    return bool(origins) and all(_is_of_steps(module, origin) for origin in origins)


def _is_of_steps(module: FileFacts, origin: Origin) -> bool:
    """Whether a length is computed from a number of steps, or from the length of a loader."""
    read = [str(key) for key in origin.path]  # of an object, such as the trainer
    parts = [] if read else module.parts.of(origin.node)
    words = [word.lower() for word in (*read, *(word for part in parts for word in _words(module, part)))]
    return any(step in word for word in words for step in _STEPS if not _DECAY.search(word))


def _words(module: FileFacts, part: Node) -> Iterator[str]:
    if isinstance(part, cst.Param):
        yield part.name.value
        return
    for name in module.tree.within(part, cst.Name):
        yield name.value
    for call in module.tree.within(part, cst.Call):
        if module.qualified(call.func) == "builtins.len" and "load" in module.code(call).lower():
            yield "batches"


# -- the fix --------------------------------------------------------------------------------------------------


def _fix(module: FileFacts, klass: cst.ClassDef) -> ProposedFix | None:
    """Says when to step where `configure_optimizers` returns one schedule, written out."""
    configure = module.lightning.hook(klass, "configure_optimizers")
    returns = module.tree.own(configure, cst.Return) if configure is not None else []
    schedule = _written(returns[0].value) if len(returns) == 1 else None
    if schedule is None:
        return None
    if not isinstance(schedule, cst.Dict):
        return ProposedFix("step it per batch", wrap(schedule, '{"scheduler": ', ', "interval": "step"}'))
    keys = [literal_text(one.key) if isinstance(one, cst.DictElement) else None for one in schedule.elements]
    if "interval" in keys or None in keys or not keys:
        return None
    last = schedule.elements[-1].value
    return ProposedFix("step it per batch", (insert_after(last, ', "interval": "step"'),))


def _written(returned: Node | None) -> cst.BaseExpression | None:
    """The one schedule of `[optimizer], [schedule]`, or of a dictionary."""
    match returned:
        case cst.Tuple(elements=[_, cst.Element(value=cst.List(elements=[cst.Element(value=schedule)]))]):
            return schedule
        case cst.Dict(elements=elements):
            for one in elements:
                if isinstance(one, cst.DictElement) and literal_text(one.key) == "lr_scheduler":
                    return one.value
    return None
