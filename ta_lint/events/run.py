"""What happened in a run, as checks read it: of a program that trained, or of a dry run of it."""

from dataclasses import dataclass, field

from ta_lint.events.decay import HasGroups
from ta_lint.events.frozen import FrozenPart
from ta_lint.events.graph import Average, Backward, GradientReach
from ta_lint.events.loop import Loop
from ta_lint.events.membership import Membership
from ta_lint.events.mode import Switch


@dataclass(slots=True)
class Run:
    """What both observers see of a run."""

    loop: Loop = field(default_factory=Loop)
    switches: list[Switch] = field(default_factory=list)
    """The lines that put models into evaluation mode."""
    backwards: list[Backward] = field(default_factory=list)
    reaches: list[GradientReach] = field(default_factory=list)
    averages: list[Average] = field(default_factory=list)
    memberships: list[Membership] = field(default_factory=list)
    frozen_parts: list[FrozenPart] = field(default_factory=list)
    optimizers: list[HasGroups] = field(default_factory=list)
    """Those that a dry run builds; a run has each looked at by itself, as soon as it steps."""
    over: bool = True
    """Whether it has ended: what it has not done by now it never does."""
    broke_off: bool = False
    """Whether it ended by an exception, or a part of a dry run did or took too long: what it has not done by now it might have done."""
