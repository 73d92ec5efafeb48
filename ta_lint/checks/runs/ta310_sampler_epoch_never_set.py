"""TA310: a `DistributedSampler` without `set_epoch` shuffles every epoch in the same way."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ta_lint.events.run import Run
from ta_lint.events.suspicion import Refutation, Said, Suspicion, Unobserved

if TYPE_CHECKING:
    from ta_lint.core.finding import Site
    from ta_lint.facts import FileFacts
    from ta_lint.syntax.edits import ProposedFix

KEYWORDS = ("DataLoader",)
AROUND = ("DistributedSampler", ("*backward", "step"))


def check_progress(run: Run) -> Iterator[Said]:
    for loader in run.loaders:
        shuffled = [each.shuffled_by for each in loader.training_passes if each.shuffled_by is not None]
        orders = set(shuffled)
        if loader.shuffled_beside:  # it raises
            continue
        if len(shuffled) < 2 or (loader.samples is not None and loader.samples < 2):
            if shuffled:
                yield Unobserved(loader.place, "fewer than two epochs began")
        elif len(orders) == 1:
            message = "the `DistributedSampler` of this loader shuffles every epoch the same way: call `set_epoch(epoch)`"
            yield Suspicion(loader.place, message, {"epochs": len(shuffled)})
        else:
            because = f"{len(shuffled)} epochs have {len(orders)} orders"
            yield Refutation(loader.place, because, {"epochs": len(shuffled), "orders": len(orders)})


def check_run(run: Run) -> Iterator[Suspicion]:
    for loader in run.loaders:
        if loader.ranks_apart or (loader.seeded_by_rank and loader.training_passes):
            message = "ranks train on the same samples: give each sampler the same seed and call `set_epoch`"
            listed = ",".join(map(str, loader.ranks_apart)) or "all"
            yield Suspicion(
                loader.place, message, {"passes": len(loader.passes), "ranks": listed}, variant="ranks"
            )


def fix(module: "FileFacts", loader: "Site") -> "ProposedFix | None":
    """Tell the sampler the epoch, at the start of each."""
    from ta_lint.facts.sampler_edits import set_epoch

    return set_epoch(module, loader)
