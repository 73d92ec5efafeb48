"""TA311: `shuffle=True` together with a sampler, which decides the order itself: `DataLoader` raises."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ta_lint.events.run import Run
from ta_lint.events.suspicion import Said, Suspicion

if TYPE_CHECKING:
    from ta_lint.core.finding import Site
    from ta_lint.facts import FileFacts
    from ta_lint.syntax.edits import ProposedFix

KEYWORDS = ("DataLoader",)
AROUND = (("sampler", "batch_sampler", "*Sampler"),)


def check_run(run: Run) -> Iterator[Said]:
    for loader in run.loaders:
        if loader.shuffled_beside:
            message = f"`shuffle=True` with `{loader.shuffled_beside}` raises: leave out `shuffle`, as the sampler sets the order"
            yield Suspicion(loader.place, message)


def fix(module: "FileFacts", loader: "Site") -> "ProposedFix | None":
    """Leave the order to the sampler."""
    from ta_lint.facts.sampler_edits import without_shuffle

    return without_shuffle(module, loader)
