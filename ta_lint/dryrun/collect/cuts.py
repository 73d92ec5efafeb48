"""Loops that train on fewer batches than a loader has: up to a literal number, or up to one that is rounded down."""

import ast
from collections.abc import Iterator

from ta_lint.core.protocol import Action
from ta_lint.dryrun.collect.places import position
from ta_lint.dryrun.machine.counts import Length
from ta_lint.dryrun.stubs.torch.data import LOADER
from ta_lint.dryrun.stubs.torch.samplers import has_own_sampler
from ta_lint.dryrun.values import FALSE, Known, Object, Place
from ta_lint.events import place
from ta_lint.events.cuts import A_FEW, Cut
from ta_lint.events.event import Event


def cuts_of(events: list[Event]) -> list[Cut]:
    """The loops that certainly leave out batches of a loader, in each epoch or in all of the training."""
    steps = [event for event in events if event.action == Action.STEP]
    trained = {loop for step in steps for loop, _ in step.passes}
    found = [*_at_a_limit(events, steps), *_at_a_bound(events, trained)]
    return [*{cut.place: cut for cut in found}.values()]


def _at_a_limit(events: list[Event], steps: list[Event]) -> Iterator[Cut]:
    """Loops over a loader that stop at a literal number. One that is tried out once, before another trains, is none."""
    lengths: dict[Object, int | None] = {}
    for index, event in enumerate(events):
        if event.action == Action.EPOCH:
            lengths[event.subject] = event.detail["length"]
        if (
            event.action != "limit"
            or event.by_library
            or event.subject not in lengths
            or event.detail["limit"] > A_FEW
        ):
            continue
        length = lengths[event.subject]
        loop = _loop_of(event, events[index:])
        own = [step for step in steps if any(one == loop for one, _ in step.passes)]
        outer = [one for one, _ in event.passes if one != loop]
        is_all = event.entry is None and len(own) == len(steps)
        if (
            loop is not None
            and own
            and (outer or is_all)
            and not (length and length <= event.detail["limit"])
        ):
            yield Cut(position(event.place), _head(loop), event.detail["limit"], recurs=True, length=length)


def _loop_of(limit: Event, later: list[Event]) -> Place | None:
    """The loop that a limit is for: the one that it stands in, or the one that goes over a limited loader, and steps first."""
    depth = len(limit.passes)
    if isinstance(limit.place.node, ast.Compare):
        first = limit
        depth -= 1
    else:
        first = next((one for one in later if one.action == Action.STEP and len(one.passes) > depth), limit)
    loops: list[Place] = [loop for loop, _ in first.passes]
    return loops[depth] if first.passes[:depth] == limit.passes[:depth] and depth < len(loops) else None


def _at_a_bound(events: list[Event], trained: set[Place]) -> Iterator[Cut]:
    """Loops up to the number of batches that is one too small, or rounded down."""
    loaders = [event.subject for event in events if event.action == "loader"]
    begun: dict[Object, Event] = {}
    for event in events:
        bound = event.detail.get("bound")
        if event.action == Action.EPOCH:
            begun[event.detail["iterator"]] = event
        elif event.action == "bound" and event.detail["loop"] in trained and isinstance(bound, Length):
            if _leaves_out(bound, loaders) and not event.by_library:
                yield Cut(position(event.place), position(event.place), recurs=True)
        elif event.action == Action.BATCH and isinstance(bound, Known) and event.passes[-1][0] in trained:
            first = begun[event.detail["iterator"]]
            length = first.detail["length"]
            if (
                first.passes == event.passes[:-1]
                and first.passes
                and length is not None
                and bound.value == length - 1
            ):
                head = _head(event.passes[-1][0])
                yield Cut(head, head, recurs=True, batches=bound.value, length=length)


def _leaves_out(bound: Length, loaders: list[Object]) -> bool:
    """Whether it is one less than the batches of a loader, or as many whole ones as there are of a data set that a loader gives all of."""
    measured = bound.measured
    if bound.by is None:
        return bound.less == 1 and isinstance(measured, Object) and measured.cls.is_a(LOADER)
    return any(
        one.fields.get("dataset") is measured
        and one.fields.get("batch_size", Known(1)) == bound.by
        and one.fields.get("drop_last", FALSE) == FALSE
        and not has_own_sampler(one)
        for one in loaders
    )


def _head(loop: Place) -> place.Place:
    node = loop.node
    head = (
        node.iter
        if isinstance(node, ast.For | ast.AsyncFor)
        else node.test
        if isinstance(node, ast.While)
        else node
    )
    return position(Place(loop.file, head))
