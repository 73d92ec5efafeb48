"""TA621: a learning rate schedule is built, but nothing ever steps it."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.facts import FileFacts, Suspicion

KEYWORDS = (("lr_scheduler", "*schedule*"),)

_SCHEDULES = regex(
    r"torch\.optim\.lr_scheduler\.(?!LRScheduler|_LRScheduler)\w+|transformers\.(\w+\.)*get_\w*schedule\w*"
)

# What code reads of a schedule that it does not step.
_READ = frozenset(
    "base_lrs get_last_lr get_lr last_epoch load_state_dict optimizer print_lr state_dict total_steps".split()
)


def check(module: FileFacts) -> Iterator[Suspicion]:
    if module.is_test or not module.is_nearby(".step(", "backward("):  # no training to be seen
        return
    for call, _ in module.calls_matching(_SCHEDULES):
        if isinstance(module.tree.parent[call], cst.Expr):
            continue  # made for its effect on the rate, or to see whether it raises
        uses = module.whereabouts.uses(call)
        if uses is not None and uses.keys() <= _READ:
            yield Suspicion(call, "the schedule is never stepped, so the learning rate never changes")
