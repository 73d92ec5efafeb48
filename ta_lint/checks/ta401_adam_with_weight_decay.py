"""TA401: `Adam(weight_decay=...)` adds L2 to the gradient; `AdamW` decays the weights."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.facts import FileFacts, Suspicion
from ta_lint.syntax.edits import ProposedFix, replace
from ta_lint.syntax.tree import argument, spreads

KEYWORDS = ("Adam",)

_WEIGHT_DECAY = 4  # Adam(params, lr, betas, eps, weight_decay, ...)

# Recipes give `AdamW` at least this much; less has always been the L2 of `Adam`, and hardly changes the weights.
_OF_ADAMW = 1e-2


def check(module: FileFacts) -> Iterator[Suspicion]:
    for call in module.calls_to("torch.optim.Adam"):
        if spreads(call) or argument(call, "decoupled_weight_decay") is not None:
            continue
        decay = argument(call, "weight_decay", _WEIGHT_DECAY)
        if decay is not None and (value := module.number(decay)):
            message = (
                f"`Adam` with `weight_decay={value:g}` scales the decay by the adaptive step: use `AdamW`"
            )
            yield Suspicion(call, message, fix=_with_adamw(call, module), is_note=abs(value) < _OF_ADAMW)


def _with_adamw(call: cst.Call, module: FileFacts) -> ProposedFix | None:
    """The parameters are the same, in the same order."""
    imported = isinstance(call.func, cst.Name) and module.spellings.bound("torch.optim", call) is None
    if imported and not module.names.is_bound("AdamW"):
        return ProposedFix("use `AdamW`", (replace(call.func, "AdamW"),), ("from torch.optim import AdamW",))
    spelled = module.spelled("torch.optim.AdamW", at=call)
    return (
        ProposedFix("use `AdamW`", (replace(call.func, spelled[0]),), spelled[1])
        if spelled is not None
        else None
    )
