"""Facts about one parsed file. Checks query them and never traverse."""

from ta_lint.facts.loops.clearing import Clearing
from ta_lint.facts.loops.loops import StepCall, TrainingLoop
from ta_lint.facts.module import Module, Suspicion
from ta_lint.facts.values.kinds import Kind

__all__ = ["Clearing", "Kind", "Module", "StepCall", "Suspicion", "TrainingLoop"]
