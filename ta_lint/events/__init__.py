"""What both observers share before a finding: the actions of a training, the facts of a run, and what a check says of them."""

from ta_lint.events.run import Run

__all__ = ["Run"]
