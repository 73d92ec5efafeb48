"""The folder of a run: what was measured, digested and found, to be looked at and compared later."""

from ta_runtime.runs.reader import Run
from ta_runtime.runs.writer import RunWriter

__all__ = ["Run", "RunWriter"]
