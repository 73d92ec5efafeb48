"""What gathers numbers of batches from epoch to epoch, and is used in each: sums, lists and metrics."""

import ast

from ta_lint.dryrun.collect.batch_means import counts_of, is_running, places_of, what_is_divided
from ta_lint.dryrun.collect.places import code, position
from ta_lint.dryrun.machine.counts import Length
from ta_lint.dryrun.values import Known, Object, Place, Sequence, Value
from ta_lint.events.event import Event
from ta_lint.events.metric import Gathered, TorchMetric


def gathered_of(events: list[Event]) -> list[Gathered]:
    """The sums and lists, by the place that uses them."""
    return list(dict.fromkeys([*_sums(events), *_lists(events)]))


def _sums(events: list[Event]) -> list[Gathered]:
    again = {one.detail["at"] for one in events if one.action == "divided again"}
    found = []
    for event in events:
        if event.action != "average" or event.detail["total"].spans is None or event.detail["at"] in again:
            continue
        total, at = event.detail["total"], event.detail["at"]
        in_epoch = total.spans in [loop for loop, _ in event.passes] and not is_running(event, total)
        places, by = places_of(total, events), event.detail["by"]
        if not in_epoch or not places:
            continue
        if total.held is not None and by is None:
            found.append(Gathered(position(at), _list_at(places[0]), position(places[0]), is_list=True))
        elif _is_size(by, total.batch.over, events):
            found.append(Gathered(position(at), what_is_divided(at), position(places[0])))
    return found


def _is_size(divisor: Value | None, over: Value, events: list[Event]) -> bool:
    """Whether a number is how many batches or samples an epoch has."""
    if isinstance(divisor, Length):
        return not isinstance(divisor.measured, Sequence)
    return isinstance(divisor, Known) and divisor.value in counts_of(over, events)


def _lists(events: list[Event]) -> list[Gathered]:
    repeating = {loop for one in events if one.action == "optimizer" for loop, _ in one.passes}
    emptied = {id(one.subject) for one in events if one.action == "empty"}
    filled = [one for one in events if one.action == "append" and len(one.passes) > 1]
    found = []
    for event in events:
        if event.action != "gone over" or id(event.subject) in emptied:
            continue
        added = [one for one in filled if one.subject is event.subject]
        if any(loop not in repeating for loop in _epochs(event, added)):
            node = getattr(event.place.node, "iter", event.place.node)
            used = Place(event.place.file, node)
            found.append(
                Gathered(position(used), _list_at(added[0].place), position(added[0].place), is_list=True)
            )
    return found


def _list_at(place: Place) -> str:
    """The list to which something is added here: `seen` of `seen.append(x)`."""
    node = place.node
    held = node.func.value if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else node
    return code(Place(place.file, getattr(held, "target", held)))


def _epochs(event: Event, added: list[Event]) -> list[Place]:
    """The loops around those over batches that add to a list in several of their passes, where this happens once for all batches."""
    around = dict(event.passes)
    found = {
        (depth, loop): {
            one.passes[depth][1]
            for one in added
            if one.passes[depth : depth + 1] and one.passes[depth][0] == loop
        }
        for added_one in added
        for depth, (loop, _) in enumerate(added_one.passes[:-1])
        if around.get(loop) and added_one.passes[depth + 1][0] not in around
    }
    return [loop for (_, loop), numbers in found.items() if len(numbers) > 1]


def metrics_of(events: list[Event]) -> list[TorchMetric]:
    """The metrics of torchmetrics."""
    found: dict[Object, TorchMetric] = {}
    unknown = {
        one.subject
        for one in events
        if one.action == "hand over" or (one.action == "metric" and one.detail["how"] == "other")
    }
    for event in events:
        if event.action != "metric" or event.subject in unknown:
            continue
        metric = event.subject
        one = found.setdefault(
            metric,
            TorchMetric(
                position(metric.made or event.place), metric.cls.name.rpartition(".")[2], event.detail["name"]
            ),
        )
        if event.detail["how"] == "reset":
            one.resets += event.times
            one.added.clear()
        elif event.detail["how"] == "update":
            one.updates += 1
        elif one.updates > one.computed_at:
            settled = any(number for _, number in event.passes)
            one.added += [one.updates - one.computed_at] * (2 if settled else 1)
            one.computed_at = one.updates
    return list(found.values())
