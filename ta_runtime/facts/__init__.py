"""What was seen of a run, as plain values: the vocabulary that checks are written in.

Observers fill these while the run goes on; the numbers among them arrive from the device a step later, and a check
is only asked once they are all there. A field is None where nothing was measured: unknown means silent.
"""

from ta_lint.events.copies import Copy
from ta_lint.events.frozen import FrozenPart
from ta_lint.events.graph import Average, Backward, GradientReach
from ta_lint.events.loop import (
    Condition,
    Loop,
    LoopHistory,
    ObservedAction,
    Scheduled,
    SchedulerCalls,
    StepPattern,
    Stepped,
    Unit,
)
from ta_lint.events.membership import Membership
from ta_lint.events.mode import Switch
from ta_lint.events.products import Product
from ta_lint.events.residuals import Residual
from ta_lint.events.seeds import Seeding
from ta_lint.events.suspicion import Refutation, Said, Sight, Suspicion, Unobserved
from ta_lint.events.syncs import Sync
from ta_lint.events.underflow import Underflow
from ta_runtime.facts.adapter import AdaptedModel
from ta_runtime.facts.asked import AskedModel, Weight
from ta_runtime.facts.attribute import Attribute
from ta_runtime.facts.average import SlowAverage
from ta_runtime.facts.balance import Balance
from ta_runtime.facts.checkpoint import CheckpointHistory, Loaded, PartialLoad, SavedState
from ta_runtime.facts.compilation import Compilation
from ta_runtime.facts.content import Content
from ta_runtime.facts.expression import Expression
from ta_runtime.facts.failure import FailedLookup, Failure
from ta_runtime.facts.flight import FirstLoss, Flight, Mixing, OneTarget, Overfitting, Unmoved
from ta_runtime.facts.initialisation import Initialisation, PaddingRow
from ta_runtime.facts.key import LoadedKeys
from ta_runtime.facts.language import Language, Markers, Prompts, Rows, SpecialTokens, TokenBatches
from ta_runtime.facts.loader import Batch, Loader
from ta_runtime.facts.loading import Loading
from ta_runtime.facts.mode import Dropping, Evaluated, ModeHistory
from ta_runtime.facts.model import Machine, Model, Optimizer
from ta_runtime.facts.normalisation import Normalisation
from ta_runtime.facts.overlap import Overlap
from ta_runtime.facts.override import Override
from ta_runtime.facts.peers import (
    Collective,
    DataShare,
    DivergedReplicas,
    Drawn,
    Mismatch,
    Read,
    Replica,
    ReplicaState,
    Saved,
    Told,
    Wrapper,
)
from ta_runtime.facts.prepared import Prepared
from ta_runtime.facts.pretrained import Pretrained
from ta_runtime.facts.reward import RewardSpread
from ta_runtime.facts.run import Run
from ta_runtime.facts.sampling import Indices, Pass, SampleHashes, Samples, Seeds, Stream
from ta_runtime.facts.scores import Padding, Scores
from ta_runtime.facts.softmax import Softmax
from ta_runtime.facts.step import (
    IDLE,
    Filters,
    Forward,
    Gradients,
    LayerCall,
    Loss,
    State,
    Step,
    Update,
)
from ta_runtime.facts.target import TargetNetwork
from ta_runtime.facts.timesteps import Timesteps
from ta_runtime.facts.value import Value
from ta_runtime.facts.violation import Violation
from ta_runtime.naming import Layer, Parameter

__all__ = [
    "IDLE",
    "AdaptedModel",
    "AskedModel",
    "Attribute",
    "Average",
    "Backward",
    "Balance",
    "Batch",
    "CheckpointHistory",
    "Collective",
    "Compilation",
    "Condition",
    "Content",
    "Copy",
    "DataShare",
    "DivergedReplicas",
    "Drawn",
    "Dropping",
    "Evaluated",
    "Expression",
    "FailedLookup",
    "Failure",
    "Filters",
    "FirstLoss",
    "Flight",
    "Forward",
    "FrozenPart",
    "GradientReach",
    "Gradients",
    "Indices",
    "Initialisation",
    "Language",
    "Layer",
    "LayerCall",
    "Loaded",
    "LoadedKeys",
    "Loader",
    "Loading",
    "Loop",
    "LoopHistory",
    "Loss",
    "Machine",
    "Markers",
    "Membership",
    "Mismatch",
    "Mixing",
    "ModeHistory",
    "Model",
    "Normalisation",
    "ObservedAction",
    "OneTarget",
    "Optimizer",
    "Overfitting",
    "Overlap",
    "Override",
    "Padding",
    "PaddingRow",
    "Parameter",
    "PartialLoad",
    "Pass",
    "Prepared",
    "Pretrained",
    "Product",
    "Prompts",
    "Read",
    "Refutation",
    "Replica",
    "ReplicaState",
    "Residual",
    "RewardSpread",
    "Rows",
    "Run",
    "Said",
    "SampleHashes",
    "Samples",
    "Saved",
    "SavedState",
    "Scheduled",
    "SchedulerCalls",
    "Scores",
    "Seeding",
    "Seeds",
    "Sight",
    "SlowAverage",
    "Softmax",
    "SpecialTokens",
    "State",
    "Step",
    "StepPattern",
    "Stepped",
    "Stream",
    "Suspicion",
    "Switch",
    "Sync",
    "TargetNetwork",
    "Timesteps",
    "TokenBatches",
    "Told",
    "Underflow",
    "Unit",
    "Unmoved",
    "Unobserved",
    "Update",
    "Value",
    "Violation",
    "Weight",
    "Wrapper",
]
