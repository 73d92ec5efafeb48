"""How many batches `accelerator.accumulate(...)` accumulates: what its `Accelerator` is told."""

from typing import TYPE_CHECKING

import libcst as cst

from ta_lint.facts.torch.preparing import Preparer
from ta_lint.syntax.tree import argument, dotted, spreads

if TYPE_CHECKING:
    from ta_lint.facts.file_facts import FileFacts

_STEPS = ("gradient_accumulation_steps", 3)
# With these, others than the constructor may say it.
_PLUGINS = ("gradient_accumulation_plugin", "deepspeed_plugin", "deepspeed_plugins", "megatron_lm_plugin")


def maker(call: cst.Call, module: "FileFacts") -> cst.Call | None:
    """The `Accelerator(...)` whose `accumulate` a call is."""
    if not isinstance(call.func, cst.Attribute):
        return None
    receiver = call.func.value
    return (
        module.preparing.made(receiver)
        if module.preparing.preparer(receiver) is Preparer.ACCELERATE
        else None
    )


def is_told(made: cst.Call) -> bool:
    """Whether an `Accelerator` gets a number of batches, or perhaps does."""
    given = argument(made, *_STEPS)
    return spreads(made) or given is not None or any(argument(made, name) is not None for name in _PLUGINS)


def is_set_later(module: "FileFacts") -> bool:
    """Whether code sets the number on the object: `accelerator.gradient_accumulation_steps = 4`."""
    return any(
        isinstance(target.target, cst.Attribute)
        and target.target.attr.value in (_STEPS[0], "num_steps")
        and "accel" in (dotted(target.target.value) or "")
        for facts in module.script
        for target in facts.tree.all(cst.AssignTarget)
    )


def is_alone(call: cst.Call, module: "FileFacts") -> bool:
    """Whether each batch of an `accelerator.accumulate(...)` is a step of its own: its `Accelerator` is told no number, or 1."""
    made = maker(call, module)
    if made is None or is_set_later(module):
        return False
    given = argument(made, *_STEPS)
    return not is_told(made) if given is None else module.number(given) == 1
