"""TA205: `non_blocking=True` has no effect on a batch that is not in pinned memory.

A run looks at the copies of each step, the source at all of them together.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Protocol

from ta_lint.events.copies import Copy
from ta_lint.events.suspicion import Refutation, Said, Suspicion, Unobserved

if TYPE_CHECKING:
    from ta_lint.core.finding import Site
    from ta_lint.facts import FileFacts
    from ta_lint.syntax.edits import ProposedFix

KEYWORDS = ("non_blocking",)
AROUND = ("DataLoader",)


class HasCopies(Protocol):
    """A step that was looked at, or all that a dry run finds."""

    copies: list[Copy]


def check_step(step: HasCopies) -> Iterator[Said]:
    for copy in step.copies:
        if not copy.non_blocking:
            continue
        if copy.target not in ("", "cuda"):
            yield Unobserved(copy.place, f"the copy goes to {copy.target}, not to a CUDA device")
        elif copy.is_pinned:
            numbers = {"copies from pinned memory": 1}
            yield Refutation(copy.place, "the batch it copies is in pinned memory", numbers)
        elif copy.loader is not None:
            message = "the copy of this batch blocks despite `non_blocking=True`: set `pin_memory=True` on the loader"
            others = tuple((place, "so does this copy") for place in copy.others)
            yield Suspicion(copy.place, message, related=((copy.loader, "the loader is made here"), *others))


def fix(module: "FileFacts", copy: "Site") -> "ProposedFix | None":
    """Pin the batches of the loader, if it is made in this file."""
    from ta_lint.facts.pinning_edits import pin

    return pin(module, copy)
