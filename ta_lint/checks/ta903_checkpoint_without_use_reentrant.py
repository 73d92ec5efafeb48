"""TA903: `checkpoint` without `use_reentrant` takes the variant that PyTorch advises against."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.facts import FileFacts, Suspicion
from ta_lint.syntax.edits import ProposedFix, add_argument
from ta_lint.syntax.tree import argument

KEYWORDS = (("checkpoint", "checkpoint_sequential"), "utils")

_CHECKPOINT = "torch.utils.checkpoint.checkpoint"
_SEQUENTIAL = "torch.utils.checkpoint.checkpoint_sequential"

_USE_REENTRANT = 3  # checkpoint_sequential(functions, segments, input, use_reentrant)


def check(module: FileFacts) -> Iterator[Suspicion]:
    for call in module.calls_to(_CHECKPOINT, _SEQUENTIAL):
        function = "checkpoint" if module.qualified(call.func) == _CHECKPOINT else "checkpoint_sequential"
        if module.targets_before(*((1, 11) if function == "checkpoint" else (2, 1))):
            continue  # has no such parameter
        if not _may_say(call, function) and not module.fallbacks.around(call):
            message = (
                f"`{function}` is reentrant by default, which can drop gradients: set `use_reentrant=False`"
            )
            edit = add_argument(call, "use_reentrant=False")
            fix = ProposedFix("use the non-reentrant variant", (edit,)) if edit is not None else None
            yield Suspicion(call, message, fix=fix)


def _may_say(call: cst.Call, function: str) -> bool:
    """Whether a call passes `use_reentrant`, possibly through `**kwargs` or `*args`.

    In `checkpoint(f, *inputs)` the `*inputs` cannot contain it, because it is keyword-only there.
    """
    if argument(call, "use_reentrant", _USE_REENTRANT if function == "checkpoint_sequential" else None):
        return True
    return any(arg.star == "**" or (arg.star and function == "checkpoint_sequential") for arg in call.args)
