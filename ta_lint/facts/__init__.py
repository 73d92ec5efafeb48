"""Facts about one parsed file. Checks query them and never traverse."""

from ta_lint.facts.clearing import Clearing
from ta_lint.facts.kinds import Kind
from ta_lint.facts.loops import Step, TrainingLoop
from ta_lint.facts.module import Module, Suspicion

__all__ = ["Clearing", "Kind", "Module", "Step", "Suspicion", "TrainingLoop"]
