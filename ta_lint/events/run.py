"""What happened in a run, as checks read it: of a program that trained, or of a dry run of it."""

from dataclasses import dataclass, field

from ta_lint.events.loop import Loop
from ta_lint.events.membership import Membership


@dataclass(slots=True)
class Run:
    """What both observers see of a run."""

    loop: Loop = field(default_factory=Loop)
    memberships: list[Membership] = field(default_factory=list)
    broke_off: bool = False
    """Whether it ended by an exception: what it has not done by now it might have done."""
