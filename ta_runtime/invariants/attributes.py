"""What a precondition can ask of an event; `invariant.ATTRIBUTES` are the names."""

from collections.abc import Callable, Mapping

from ta_runtime.trace.event import Event, Flag

NAMED = frozenset({"module", "parameter", "buffer", "gradient"})
"""The kinds whose name is the class of a module."""

_AUTOCAST, _REQUIRES_GRAD = (
    int(Flag.AUTOCAST),
    int(Flag.REQUIRES_GRAD),
)  # a `Flag` costs more than all else here

_OF: dict[str, Callable[[Event, int], str]] = {
    "phase": lambda event, rank: event.phase,
    "rank": lambda event, rank: "other" if rank else "first",
    "class": lambda event, rank: event.name if event.kind in NAMED else "",
    "autocast": lambda event, rank: _word(event, _AUTOCAST),
    "requires_grad": lambda event, rank: _word(event, _REQUIRES_GRAD),
}


def meets(where: Mapping[str, str], event: Event, rank: int) -> bool:
    """Whether all conditions of an invariant are met."""
    return not where or all(_OF[name](event, rank) == value for name, value in where.items())


def _word(event: Event, flag: int) -> str:
    return "yes" if event.flags & flag else "no"
