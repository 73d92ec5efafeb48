"""TA160: prompts lack the special token that opens each training row of their model."""

from collections import Counter
from collections.abc import Iterator

from ta_runtime.facts import Prompts, Run, Suspicion

FEW = 8
"""Rows of training that tell how rows open."""


def check_progress(run: Run) -> Iterator[Suspicion]:
    for prompts in run.language.prompts:
        rows, openers = _openers(run, prompts)
        lacking = [marker for marker in openers if not prompts.markers.holding[marker]]
        if prompts.markers.rows and lacking:
            marker = lacking[
                -1
            ]  # the begin token has a low id, and comes first; the marker of a turn says more
            yield Suspicion(
                prompts.place,
                f"prompts lack `{marker}`, with which every training row begins: apply the same chat template",
                {
                    "prompts": prompts.markers.rows,
                    "training rows": rows,
                    "markers that are missing": len(lacking),
                },
            )


def _openers(run: Run, prompts: Prompts) -> tuple[int, list[str]]:
    """How many rows the models of some prompts were trained on, and the markers that open all of them."""
    trained = [
        batches.markers
        for batches in run.language.batches
        if batches.markers.rows and prompts.markers.models <= batches.markers.models
    ]
    rows = sum(markers.rows for markers in trained)
    opened = sum((markers.holding for markers in trained), Counter[str]())
    return rows, [marker for marker, times in opened.items() if times == rows >= FEW]
