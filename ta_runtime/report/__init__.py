"""Runs as one page of HTML that needs nothing else: what they computed, step by step, and what is wrong with them."""

from ta_runtime.report import overlay, page
from ta_runtime.runs import Run

__all__ = ["html"]


def html(run: Run, *others: Run) -> str:
    """The page of a run; of several, one that lays their timelines over one another.

    Raises:
        UsageError: a file of a run is damaged.
    """
    return overlay.html([run, *others]) if others else page.html(run)
