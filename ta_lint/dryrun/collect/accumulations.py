"""Backward passes for several batches to a step, and what divides their losses."""

from bisect import bisect_left
from collections.abc import Iterator
from math import isclose
from operator import itemgetter

from ta_lint.core.protocol import Action
from ta_lint.dryrun.collect.places import position
from ta_lint.dryrun.machine.counts import number_of
from ta_lint.dryrun.machine.factors import is_divided_by
from ta_lint.dryrun.stubs.torch.gradients import groups_of
from ta_lint.dryrun.values import NONE, Known, Object, Place, Value, options
from ta_lint.events.accumulations import Accumulation
from ta_lint.events.event import Event

ADAPTIVE = frozenset("Adadelta Adafactor Adagrad Adam AdamW Adamax NAdam RAdam RMSprop Rprop".split())
"""The optimizers of torch that divide each gradient by its size."""
EXACT = 2
"""The last pass of a loop that stands for others: a loop with further ones runs one by one."""
_USES = (Action.STEP, Action.CLEAR, Action.UNKNOWN)


def accumulations_of(events: list[Event]) -> list[Accumulation]:
    """Those whose gradients nothing else changes, and whose losses were certainly divided by their number, or by nothing."""
    if any(event.action == "hook" for event in events):
        return []
    sums = any(event.action == "loss" and event.subject.facts.grows for event in events)
    clips = any(event.action == Action.CLIP for event in events)
    found: dict[Place, Accumulation] = {}
    for step, guard, count, backwards in _accumulated(events):
        optimizers = options(step.subject)
        if number_of(count) == 1 or any(
            is_divided_by(group.fields.get("lr", NONE), count)
            for one in optimizers
            for group in groups_of(one, further=True)
        ):
            continue
        verdicts = [_is_divided(backward, count, sums=sums) for backward in backwards]
        if None in verdicts:
            continue
        backward = next((one for one, by in zip(backwards, verdicts, strict=True) if not by), backwards[0])
        is_whole, before = not all(verdicts), found.get(backward.place)
        found[backward.place] = Accumulation(
            position(backward.place),
            number_of(count),
            whole=(before.whole if before else 0) + step.times * is_whole,
            divided=(before.divided if before else 0) + step.times * (not is_whole),
            is_normalised=not clips and all(_is_adaptive(one) for one in optimizers),
            related=((position(guard), "the step comes once for all of them"),),
        )
    return [*found.values()]


def _accumulated(events: list[Event]) -> Iterator[tuple[Event, Place, Value, list[Event]]]:
    """The steps for several batches, each with the line that decides when it comes, the number of batches and the backward passes."""
    guards: dict[tuple[Place, object], Event] = {}
    bounds: dict[Place, Value] = {}
    concerning = _concerning(events)
    for index, event in enumerate(events):
        if event.action == "cycle":
            guards[event.passes[-1][0], event.detail["waits"]] = event
        elif event.action == "bound":
            bounds[event.detail["loop"]] = event.detail["bound"]
        elif event.action == Action.STEP and not event.by_library:
            guard = guards.get((event.passes[-1][0], event.waits)) if event.passes else None
            own = _of_step(concerning, event)
            now = bisect_left(own, index, key=itemgetter(0))
            if guard is not None:
                backwards = _in_each_pass([one for _, one in own], event, guard)
                place, count = guard.place, guard.detail["cycle"].count
            elif backwards := _in_inner_loop(events, own, now, event):
                place = backwards[0].passes[-1][0]
                count = bounds.get(place, Known(1))
            else:
                backwards = _in_passes_before(own, now, event)
                place, count = event.place, Known(len(backwards))
            if backwards and not _is_rescaled(events[:index], event, backwards[0]):
                yield event, place, count, backwards


def _concerning(events: list[Event]) -> dict[tuple[object, object], list[tuple[int, Event]]]:
    """What computes, uses or clears gradients, or may, with its number, by the entry that does so and the optimizer that holds them."""
    found: dict[tuple[object, object], list[tuple[int, Event]]] = {}
    for index, event in enumerate(events):
        if event.action in (Action.BACKWARD, *_USES):
            for optimizer in event.detail.get("before") or ():
                found.setdefault((event.entry, optimizer), []).append((index, event))
    return found


def _of_step(
    concerning: dict[tuple[object, object], list[tuple[int, Event]]], step: Event
) -> list[tuple[int, Event]]:
    """What of this concerns the gradients that a step uses, in order."""
    several = [concerning.get((step.entry, optimizer), []) for optimizer in step.detail["before"]]
    if len(several) == 1:
        return several[0]
    return sorted({index: one for each in several for index, one in each}.items())


def _in_each_pass(concerned: list[Event], step: Event, guard: Event) -> list[Event]:
    """The backward passes of the passes of a loop that steps every few of them; none where each of them does more than that."""
    loop = step.passes[-1]
    inside = [one for one in concerned if loop in one.passes]
    each = [one for one in inside if one.waits is None]
    clears = any(one.action == Action.CLEAR for one in inside)
    if not clears or any(one.action in _USES for one in each):
        return []
    backwards = [one for one in inside if one.action == Action.BACKWARD]
    return [] if any(one.waits is not None or one.by_library for one in backwards) else backwards


def _in_inner_loop(
    events: list[Event], concerned: list[tuple[int, Event]], now: int, step: Event
) -> list[Event]:
    """The backward passes of a loop that ends before a step, and takes the next batch in each pass."""
    depth = len(step.passes)
    before = (concerned[at][1] for at in range(now - 1, -1, -1))
    last = next((one for one in before if one.action == Action.BACKWARD), None)
    if last is None or len(last.passes) != depth + 1 or last.passes[:depth] != step.passes:
        return []
    loop = last.passes[-1][0]

    def is_inside(one: Event) -> bool:
        return one.passes[:depth] == step.passes and loop in [each for each, _ in one.passes[depth:]]

    inside = [one for _, one in concerned[:now] if is_inside(one)]
    draws = any(one.action == "next" and is_inside(one) for one in events)
    if not draws or any(one.action in _USES or one.waits is not None or one.by_library for one in inside):
        return []
    return [one for one in inside if one.action == Action.BACKWARD and one.passes[-1] == last.passes[-1]]


def _in_passes_before(concerned: list[tuple[int, Event]], now: int, step: Event) -> list[Event]:
    """The backward passes since the last step, of a loop whose passes run one by one, each in a pass of its own; none if a pass has several."""
    is_exact = bool(step.passes) and step.passes[-1][1] > EXACT and step.doubt == 0
    since: list[Event] = []
    for at in range(now - 1, -1, -1) if is_exact else ():
        one = concerned[at][1]
        if one.action != Action.BACKWARD or one.passes[:-1] != step.passes[:-1]:
            break
        since.append(one)
    passes = {one.passes for one in since}
    return since[::-1] if 1 < len(since) == len(passes) and step.passes in passes else []


def _is_rescaled(before: list[Event], step: Event, backward: Event) -> bool:
    """Whether something changes the gradients before a step, or code out of sight may, which gets the model or its parameters then."""
    since = before.index(backward) if backward in before else 0
    return any(
        (event.action == "rescale" and not set(event.detail["of"]).isdisjoint(step.detail["before"]))
        or (event.action == "hand over" and event.waits == step.waits and event.passes == step.passes)
        for event in before[since:]
    )


def _is_divided(backward: Event, count: Value, *, sums: bool) -> bool | None:
    """Whether a loss was divided by the number of batches; None if nobody knows, or it is a sum, which more batches make longer."""
    terms, grows = backward.detail["terms"], backward.subject.facts.grows
    leads = backward.detail["roots"] or backward.detail["perhaps"]
    is_seen = leads or any(term.facts.grows is False for term in terms)
    if grows or (grows is None and (sums or not is_seen)):
        return None
    if any(term.divided for term in terms):
        return None
    number = number_of(count)
    shares = [
        number is not None and term.factor is not None and isclose(term.factor * number, 1) for term in terms
    ]
    return None if any(shares) and not all(shares) else all(shares) and bool(shares)


def _is_adaptive(optimizer: Value) -> bool:
    name = optimizer.cls.name if isinstance(optimizer, Object) else ""
    return name.startswith("torch.optim.") and name.rpartition(".")[2] in ADAPTIVE
