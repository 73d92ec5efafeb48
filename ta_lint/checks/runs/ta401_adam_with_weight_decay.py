"""TA401: `Adam(weight_decay=...)` adds L2 to the gradient; `AdamW` decays the weights."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ta_lint.events.decay import HasGroups
from ta_lint.events.suspicion import Refutation, Said, Suspicion

if TYPE_CHECKING:
    from ta_lint.core.finding import Site
    from ta_lint.facts import FileFacts
    from ta_lint.syntax.edits import ProposedFix

KEYWORDS = ("Adam",)

OF_ADAMW = 1e-2
"""Recipes give `AdamW` at least this much; less has always been the L2 of `Adam`, and hardly changes the weights."""


def check_optimizer(optimizer: HasGroups) -> Iterator[Said]:
    if optimizer.torch_class != "Adam":
        return
    if decays := [group.decay for group in optimizer.decays if group.decay and group.is_decoupled is False]:
        message = (
            "`Adam` scales the decay by the adaptive step: use `AdamW`, which decays all weights equally"
        )
        is_note = max(map(abs, decays)) < OF_ADAMW
        yield Suspicion(optimizer.place, message, {"weight_decay": max(decays)}, is_note=is_note)
    else:
        decoupled = sum(bool(group.is_decoupled) for group in optimizer.decays)
        numbers = {"groups": len(optimizer.decays), "with L2": 0, "decoupled": decoupled}
        because = f"no group of {len(optimizer.decays)} has a weight decay that is L2"
        yield Refutation(optimizer.place, because, numbers)


def fix(module: "FileFacts", optimizer: "Site") -> "ProposedFix | None":
    """`AdamW` in its place: the parameters are the same, in the same order."""
    from ta_lint.facts.other_class import other_class

    return other_class(module, optimizer, "torch.optim.AdamW")
