"""What happened in a run, as checks read it: of a program that trained, or of a dry run of it."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from ta_lint.events.accumulations import Accumulation
from ta_lint.events.batch_mean import BatchMean
from ta_lint.events.compared import Compared
from ta_lint.events.containers import PlainContainer
from ta_lint.events.copies import Copy
from ta_lint.events.cuts import Cut
from ta_lint.events.decay import HasGroups
from ta_lint.events.discards import Discard
from ta_lint.events.flag import Flag, RateSet
from ta_lint.events.frozen import FrozenPart
from ta_lint.events.graph import Average, Backward, Carried, Converted, GradientReach, Retained, UnderAutocast
from ta_lint.events.growth import Growth
from ta_lint.events.half_updates import HalfUpdate
from ta_lint.events.inference import Inference
from ta_lint.events.kept import Kept
from ta_lint.events.last_batch import LastBatch
from ta_lint.events.layers import (
    AlwaysDropped,
    Cancelled,
    LeafChanged,
    PaddingFilled,
    ParameterLost,
    UsedUp,
    Window,
)
from ta_lint.events.leftovers import Leftover
from ta_lint.events.loaders import Loader
from ta_lint.events.loop import Loop
from ta_lint.events.membership import Membership
from ta_lint.events.metric import Gathered, TorchMetric
from ta_lint.events.mode import Switch
from ta_lint.events.norms import Normed
from ta_lint.events.outdated import Outdated
from ta_lint.events.overlaps import Overlap, Refolded
from ta_lint.events.products import Product
from ta_lint.events.rebound import Rebound
from ta_lint.events.residuals import Residual
from ta_lint.events.resumption import Misread, Resumption
from ta_lint.events.scored import ClippedScores, Scored
from ta_lint.events.seeds import Seeding
from ta_lint.events.summands import MixedSum, Sum
from ta_lint.events.syncs import Sync
from ta_lint.events.wrapping import Bypassed, MovedAfterWrap, Rewrapped


@dataclass(slots=True)
class Run:
    """What both observers see of a run."""

    loop: Loop = field(default_factory=Loop)
    switches: list[Switch] = field(default_factory=list)
    """The lines that put models into evaluation mode."""
    inferences: list[Inference] = field(default_factory=list)
    infers: bool = False
    """Whether no optimizer was built so far; in a dry run, and whether nothing computes gradients."""
    backwards: list[Backward] = field(default_factory=list)
    reaches: list[GradientReach] = field(default_factory=list)
    retained: list[Retained] = field(default_factory=list)
    carried: list[Carried] = field(default_factory=list)
    converted: list[Converted] = field(default_factory=list)
    under_autocast: list[UnderAutocast] = field(default_factory=list)
    averages: list[Average] = field(default_factory=list)
    growths: list[Growth] = field(default_factory=list)
    """What keeps more and more graphs alive, as a dry run sees it."""
    batch_means: list[BatchMean] = field(default_factory=list)
    last_batches: list[LastBatch] = field(default_factory=list)
    gathered: list[Gathered] = field(default_factory=list)
    metrics: list[TorchMetric] = field(default_factory=list)
    sums: list[Sum] = field(default_factory=list)
    mixed_sums: list[MixedSum] = field(default_factory=list)
    memberships: list[Membership] = field(default_factory=list)
    outdated: list[Outdated] = field(default_factory=list)
    frozen_parts: list[FrozenPart] = field(default_factory=list)
    flags: list[Flag] = field(default_factory=list)
    rebounds: list[Rebound] = field(default_factory=list)
    rates: list[RateSet] = field(default_factory=list)
    """A run does not look for these."""
    optimizers: list[HasGroups] = field(default_factory=list)
    """Those that a dry run builds; a run has each looked at by itself, as soon as it steps."""
    loaders: Sequence[Loader] = ()
    """In order of first use."""
    leaks: list[Overlap] = field(default_factory=list)
    refolded: list[Refolded] = field(default_factory=list)
    """Those of a dry run; a run compares the samples."""
    cuts: list[Cut] = field(default_factory=list)
    leftovers: list[Leftover] = field(default_factory=list)
    accumulations: list[Accumulation] = field(default_factory=list)
    copies: list[Copy] = field(default_factory=list)
    discards: list[Discard] = field(default_factory=list)
    clipped_scores: list[ClippedScores] = field(default_factory=list)
    residuals: list[Residual] = field(default_factory=list)
    products: list[Product] = field(default_factory=list)
    """Those of a dry run; a run has those of each step."""
    plain_containers: list[PlainContainer] = field(default_factory=list)
    """The same."""
    compared: list[Compared] = field(default_factory=list)
    """The same."""
    normed: list[Normed] = field(default_factory=list)
    """Those of a dry run; a run looks at the calls of each layer."""
    half_updates: list[HalfUpdate] = field(default_factory=list)
    """The same."""
    windows: list[Window] = field(default_factory=list)
    always_dropped: list[AlwaysDropped] = field(default_factory=list)
    leaf_changes: list[LeafChanged] = field(default_factory=list)
    paddings_filled: list[PaddingFilled] = field(default_factory=list)
    parameters_lost: list[ParameterLost] = field(default_factory=list)
    used_up: list[UsedUp] = field(default_factory=list)
    cancelled: list[Cancelled] = field(default_factory=list)
    scored: list[Scored] = field(default_factory=list)
    """Of a dry run."""
    seedings: list[Seeding] = field(default_factory=list)
    syncs: list[Sync] = field(default_factory=list)
    """The lines that read values of tensors; of a dry run those that certainly do in each step."""
    resumptions: list[Resumption] = field(default_factory=list)
    kept: list[Kept] = field(default_factory=list)
    misread: list[Misread] = field(default_factory=list)
    """Of a dry run: a run that loads what is not there ends there."""
    rewrapped: list[Rewrapped] = field(default_factory=list)
    moved_after_wrap: list[MovedAfterWrap] = field(default_factory=list)
    bypassed: list[Bypassed] = field(default_factory=list)
    """These three of a dry run alone."""
    over: bool = True
    """Whether it has ended: what it has not done by now it never does."""
    broke_off: bool = False
    """Whether it ended by an exception, or a part of a dry run did or took too long: what it has not done by now it might have done."""
