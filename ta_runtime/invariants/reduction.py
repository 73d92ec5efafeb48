"""Leaves out what follows from other invariants, so that the set stays small enough to be read."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from ta_runtime.invariants.invariant import Invariant
from ta_runtime.invariants.sequence import FORWARD

_THERE = {"cover": "after", "lead": "then"}
"""The templates of order, and their terms for what is called between two of `call`."""


def reduced(invariants: Iterable[Invariant]) -> list[Invariant]:
    """Those that do not follow from others, in their order."""
    everything = list(invariants)
    kept = {each.id for each in _in_order([each for each in everything if each.template in _THERE])}
    return [each for each in everything if each.template not in _THERE or each.id in kept]


class _Need(NamedTuple):
    """One of order: between two calls of `call`, `there` is called."""

    there: str
    call: str
    where: frozenset[tuple[str, str]]
    invariant: Invariant


def _in_order(invariants: Sequence[Invariant]) -> Iterator[Invariant]:
    """What a loop calls in turn needs each other in all pairs. Kept are, in the order of their first calls, the needs of each
    for the one before, and of the first for the last."""
    needs = [
        _Need(
            str(each.terms[_THERE[each.template]]),
            str(each.terms["call"]),
            frozenset(each.where.items()),
            each,
        )
        for each in invariants
    ]
    place: dict[str, int] = defaultdict(
        int
    )  # how many come before it: the covers of a loop are a total order
    for need in needs:
        place[need.call] += need.invariant.template == "cover"
    # least wanted first: what leads back by few places, then what covers many
    needs.sort(key=lambda need: _distance(need, place))
    kept = list(needs)
    for need in needs:
        others = [each for each in kept if each is not need]
        if _leads(need, others):
            kept = others
    yield from (need.invariant for need in kept)


def _distance(need: _Need, place: Mapping[str, int]) -> tuple[bool, int, str]:
    distance = place[need.call] - place[need.there]
    return need.invariant.template == "cover", -distance, need.invariant.id


def _leads(need: _Need, others: Iterable[_Need]) -> bool:
    """Whether other needs, one after the other, say the same. What is told of every step does not rely on modules, whose calls
    are not."""
    reads_modules = need.there.startswith(FORWARD) or need.call.startswith(FORWARD)
    onward: dict[str, list[str]] = defaultdict(list)
    for each in others:
        if each.where <= need.where and (reads_modules or not each.call.startswith(FORWARD)):
            onward[each.there].append(each.call)
    reached, ahead = set[str](), [need.there]
    while ahead:
        for call in onward[ahead.pop()]:
            if call == need.call:
                return True
            if call not in reached:
                reached.add(call)
                ahead.append(call)
    return False
