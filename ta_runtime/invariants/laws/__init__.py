"""Laws: what holds of every training loop, whatever it trains, so that it need not be learned.

One class for each, over the events of one rank; `templates.law` finds them here by their names in `shipped.json`.
"""

from ta_runtime.invariants.laws.calls import (
    AttentionKeepsAll,
    AutocastLowers,
    ScheduleFollows,
    UnscaledBeforeClip,
)
from ta_runtime.invariants.laws.law import Breach, Law
from ta_runtime.invariants.laws.ranks import ReplicasStayEqual, SameCollectives
from ta_runtime.invariants.laws.states import DtypeStays, StatisticsRest, TiedStayTied
from ta_runtime.invariants.laws.steps import (
    ClearedGradients,
    FoundGradient,
    FrozenRests,
    HeldTrained,
    MovedAtLast,
)

LAWS: dict[str, type[Law]] = {
    law.name: law
    for law in (
        HeldTrained,
        FoundGradient,
        MovedAtLast,
        FrozenRests,
        ClearedGradients,
        DtypeStays,
        TiedStayTied,
        StatisticsRest,
        AutocastLowers,
        AttentionKeepsAll,
        UnscaledBeforeClip,
        ScheduleFollows,
        ReplicasStayEqual,
        SameCollectives,
    )
}
"""By their names."""

__all__ = ["LAWS", "Breach", "Law"]
