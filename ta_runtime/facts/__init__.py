"""What was seen of a run, as plain values: the vocabulary that checks are written in.

Observers fill these while the run goes on; the numbers among them arrive from the device a step later, and a check
is only asked once they are all there. A field is None where nothing was measured: unknown means silent.
"""

from ta_runtime.facts.loader import Batch, Loader
from ta_runtime.facts.model import Layer, Machine, Model, Optimizer, Parameter
from ta_runtime.facts.run import Run
from ta_runtime.facts.step import Call, Copy, Filters, Forward, Gradients, Loss, State, Step, Update, Value
from ta_runtime.facts.suspicion import Refutation, Suspicion

__all__ = [
    "Batch",
    "Call",
    "Copy",
    "Filters",
    "Forward",
    "Gradients",
    "Layer",
    "Loader",
    "Loss",
    "Machine",
    "Model",
    "Optimizer",
    "Parameter",
    "Refutation",
    "Run",
    "State",
    "Step",
    "Suspicion",
    "Update",
    "Value",
]
