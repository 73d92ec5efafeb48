"""What lives from pass to pass and holds the graphs of more and more passes."""

import ast
from collections.abc import Iterator
from typing import Any

from ta_lint.dryrun.machine.frame import Pass
from ta_lint.dryrun.machine.machine import Machine
from ta_lint.dryrun.state import Changes
from ta_lint.dryrun.stubs.torch.graphs import Graph, Start, Starts
from ta_lint.dryrun.stubs.torch.tensors import FACTS, PLAIN, Facts, ModelCall, Tensor, tensors_in
from ta_lint.dryrun.values import Place, Sequence, Table, Unknown, Value
from ta_lint.events.event import Event


def seen(machine: Machine, now: Pass) -> None:
    """Record what has grown in this pass, which is not the first: totals that are computed from themselves, and lists."""
    events = machine.events[now.events :]
    stepped = any(one.action == "step" for one in events)
    totals = _totals(machine, now, events)
    for place, new, of_outputs in [*totals, *((*one, True) for one in _lists(machine, now, events))]:
        machine.emit(
            "growth", place.node, at=place, starts=frozenset(new), of_outputs=of_outputs, freed=any(one.is_freed for one in new),
            used=any(one.is_used for one in new), stepped=stepped,
        )  # fmt: skip


def _totals(machine: Machine, now: Pass, events: list[Event]) -> Iterator[tuple[Place, list[Start], bool]]:
    """What a name, an attribute or an entry holds whose graph contains the one that it held before, and more; with the starts of that, and
    whether it is computed from outputs of models."""
    changes = list(machine.state.changes(now.mark).values())
    entered = [one.detail["starts"] for one in events if one.action == "backward"]
    grown = [
        (store, key, new, more)
        for store, key, old, new in changes
        if (more := _more(_graph(old), _graph(new), now, entered))
    ]
    if not grown:
        return
    before = [machine.state.changes(one.start) for one in machine.passes]
    elsewhere = {
        id(tensor.fields)
        for store, key, old, new in changes
        for tensor in (old, new)
        if isinstance(tensor, Tensor) and (new is not tensor or _is_unknown(before, store, key))
    }
    for store, key, new, more in grown:
        if key is FACTS and id(store) not in elsewhere:
            yield from ((place, more, bool(_outputs(new))) for place in _written(events, store))
        elif key is not FACTS and new.made is not None and not _is_unknown(before, store, key):
            yield new.made, more, bool(_outputs(new))


def _more(before: Graph, after: Graph, now: Pass, entered: list[Starts]) -> list[Start]:
    """What a pass has added to a graph that contains the one before. A state that backward passes go through again is no total."""
    of_calls = isinstance(now.loop.node, ast.FunctionDef)  # what a function keeps from call to call
    earlier = {
        one
        for one in before.starts & after.contains
        if one.is_before(now) or (of_calls and not one.is_in(now))
    }
    if before == after or not earlier or any(not earlier.isdisjoint(one) for one in entered):
        return []
    return [one for one in after.starts if one.is_in(now)]


def _is_unknown(before: list[Changes], store: dict[Any, Any], key: Any) -> bool:
    """Whether nobody knows what was there before one of the loops: it may be an object that keeps what it likes."""
    at = id(store), key
    return any(isinstance(one[at][2], Unknown) for one in before if at in one)


def _written(events: list[Event], store: object) -> Iterator[Place]:
    """Where a tensor has got a graph in place."""
    for event in events:
        if (
            event.action == "write"
            and getattr(event.subject, "fields", None) is store
            and event.detail.get("graph")
        ):
            yield event.place


def _graph(value: object) -> Graph:
    return _facts(value).graph


def _outputs(value: object) -> tuple[ModelCall, ...]:
    return _facts(value).outputs


def _facts(value: object) -> Facts:
    """Those of a tensor, or of the first one in a list."""
    if isinstance(value, Sequence):
        value = next((one for one in value.every if isinstance(one, Tensor)), None)
    facts = value.facts if isinstance(value, Tensor) else value
    return facts if isinstance(facts, Facts) else PLAIN


def _lists(machine: Machine, now: Pass, events: list[Event]) -> Iterator[tuple[Place, list[Start]]]:
    """Where a list gets a tensor with a graph that has got one there in an earlier pass, and that nothing has emptied since."""
    earlier = machine.events[now.began : now.events]
    added = [one for one in events if one.action == "append" and _starts_in(one.detail["value"])]
    for event in added:
        more = [one for one in _starts_in(event.detail["value"]) if one.is_in(now)]
        receivers = {one.subject for one in added if one.place == event.place and one.passes == event.passes}
        before = [one for one in earlier if one.action == "append" and one.place == event.place]
        if (
            _holds(event.subject, more)
            and len(receivers) == 1
            and any(one.subject is event.subject for one in before)
            and not any(one.action == "empty" and one.subject is event.subject for one in [*earlier, *events])
        ):
            yield event.place, more


def _holds(container: Value | None, starts: list[Start]) -> bool:
    """Whether a container holds tensors with these graphs on the path that leads on, or some that nobody tells apart."""
    many = isinstance(container, Sequence | Table) and container.rest is not None
    return bool(starts) and (many or not _starts_in(container).isdisjoint(starts))


def _starts_in(value: Value | None) -> set[Start]:
    """Where the graphs start that a value holds: of one of several values that a model gives, its own."""
    graphs = [one.facts.graph for one in tensors_in([value])] if value is not None else []
    return {start for graph in graphs for start in ([graph.part] if graph.part is not None else graph.starts)}
