"""TA150: every label of a micro-batch is ignored, again and again."""

from collections.abc import Iterator

from ta_runtime.facts import Loss, Step, Suspicion
from ta_runtime.probes.places import Place

FEW = 3
"""Micro-batches without a label: one may be the short last one, or hold nothing but long prompts."""
SHARE = 0.05
"""Of those that are looked at."""


def check_step(step: Step) -> Iterator[Suspicion]:
    for place, batches in _micro_batches(step).items():
        empty = sum(not any(loss.labels for loss in batch) for batch in batches)
        found, looks = step.history.tally(("TA150", place), empty, len(batches))
        if empty and found >= FEW and found > SHARE * looks:
            message = "many batches have only ignored labels and teach nothing: check truncation and the prompt mask"
            evidence = {
                "ignored": batches[0][0].options["ignore_index"],
                "batches without a label": found,
                "batches that were looked at": looks,
            }
            yield Suspicion(place, message, evidence)


def _micro_batches(step: Step) -> dict[Place, list[list[Loss]]]:
    """The losses by class of each line, by micro-batch: some code adds up the loss of its parts. A mean is of one by itself."""
    found: dict[Place, dict[tuple[int, int], list[Loss]]] = {}
    for number, loss in enumerate(step.losses):
        if loss.labels is not None:
            part = number if loss.options["reduction"] == "mean" else -1
            found.setdefault(loss.place, {}).setdefault((loss.batch, part), []).append(loss)
    return {place: list(batches.values()) for place, batches in found.items()}
