"""Facts about one parsed file. Checks query them and never traverse."""

from ta_lint.facts.file_facts import FileFacts, Suspicion
from ta_lint.facts.loops.loops import StepCall, TrainingLoop
from ta_lint.facts.values.kinds import Kind

__all__ = ["FileFacts", "Kind", "StepCall", "Suspicion", "TrainingLoop"]
