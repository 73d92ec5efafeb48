"""Groups violations, so that what one fault breaks is one finding: of one call, module or line in one step.

The most specific invariant comes first: one about a tensor or a module before one about another call, and that before one
about the order of calls. The others are attached to it.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import groupby

from ta_runtime import facts
from ta_runtime.invariants.file import says
from ta_runtime.invariants.invariant import Invariant
from ta_runtime.invariants.shipped import shipped
from ta_runtime.invariants.template import BrokenInvariant
from ta_runtime.probes.places import NOWHERE, Place
from ta_runtime.trace.event import Event

_STATES = ("parameter", "buffer", "gradient")
_NAMED = 5
"""Invariants that are named one by one as not seen."""
_OF_ORDER = ("lead", "cover", "period")


def breaches(violations: Iterable[BrokenInvariant]) -> Iterator[facts.Violation]:
    """One fact for each group of violations of a step, as checks are asked about them; in order of step and event."""
    groups: dict[tuple[int, int, str, str], list[BrokenInvariant]] = defaultdict(list)
    for violation in violations:
        event = violation.event
        groups[event.step, violation.rank, _subject(event), _line(event)].append(violation)
    for (step, rank, subject, _), group in groups.items():
        first, *others = sorted(group, key=_generality)
        yield facts.Violation(
            place(first.event),
            first.message,
            first.invariant.id,
            says(first.invariant),
            subject,
            step,
            rank,
            first.evidence,
            tuple(dict.fromkeys((place(other.event), other.message) for other in others)),
        )


def by_step(violations: Iterable[BrokenInvariant]) -> Iterator[facts.Violation]:
    """The same of those of many steps, which come in order; one step is kept at a time."""
    for _, of_step in groupby(violations, lambda violation: violation.event.step):
        yield from breaches(of_step)


def unseen(invariants: Iterable[Invariant]) -> list[str]:
    """The invariants about what did not happen, as the ends of sentences.

    Those that come with ta-runtime are about every loop there is, and are left out.
    """
    general = {each.id for each in shipped()}
    learned = [each for each in invariants if each.id not in general]
    named = [f"whether {says(each)} ({each.id})" for each in learned[:_NAMED]]
    if len(learned) > _NAMED:
        named.append(f"what {len(learned) - _NAMED} more invariants are about")
    return named


def place(event: Event) -> Place:
    """The user's line behind an event."""
    return Place(event.file, event.line) if event.file else NOWHERE


def _subject(event: Event) -> str:
    """The call or module that a finding is about; of tensors, as many come with one step, their kind."""
    if event.kind in _STATES:
        return f"{event.kind}s"
    return event.subject if event.kind == "module" and event.subject else event.name


def _line(event: Event) -> str:
    return f"{event.file}:{event.line}"


def _generality(violation: BrokenInvariant) -> tuple[int, int, str]:
    """The least is the most specific; of equals the one that was seen to hold more often."""
    invariant, kind = violation.invariant, violation.event.kind
    level = 2 if invariant.template in _OF_ORDER else 0 if kind in (*_STATES, "module") else 1
    return level, -invariant.holds, invariant.id
