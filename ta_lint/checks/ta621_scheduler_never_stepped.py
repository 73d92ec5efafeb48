"""TA621: a learning rate schedule is built, but nothing ever steps it."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.facts import FileFacts, Suspicion
from ta_lint.syntax.tree import argument

KEYWORDS = (("lr_scheduler", "*schedule*"),)

_SCHEDULES = regex(
    r"torch\.optim\.lr_scheduler\.(?!LRScheduler|_LRScheduler)\w+|transformers\.(\w+\.)*get_\w*schedule\w*"
)

# What code reads of a schedule that it does not step.
_READ = frozenset(
    "base_lrs get_last_lr get_lr last_epoch load_state_dict optimizer print_lr state_dict total_steps".split()
)


def check(module: FileFacts) -> Iterator[Suspicion]:
    if not module.is_nearby(".step(", "backward("):  # no training to be seen
        return
    for call, _ in module.calls_matching(_SCHEDULES):
        if isinstance(module.tree.parent[call], cst.Expr):
            continue  # made for its effect on the rate, or to see whether it raises
        uses = module.whereabouts.uses(call)
        if uses is not None and uses.keys() <= _READ and not _is_for_others(call, module):
            yield Suspicion(
                call, "the schedule is never stepped, so the learning rate never changes: call its `step()`"
            )


def _is_for_others(schedule: cst.Call, module: FileFacts) -> bool:
    """Whether nothing steps its optimizer either: a file of settings, whose objects code that is not shown takes up."""
    optimizer = argument(schedule, "optimizer", 0)
    made = module.kinds.construction(optimizer) if optimizer is not None else None
    uses = module.whereabouts.uses(made) if made is not None else None
    return uses is not None and "step" not in uses
