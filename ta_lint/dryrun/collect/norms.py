"""The calls of models whose batch norms get few values."""

from dataclasses import replace

from ta_lint.core.protocol import Action
from ta_lint.dryrun.collect.places import position
from ta_lint.dryrun.values import Place
from ta_lint.events.event import Event
from ta_lint.events.norms import Normed


def normed_of(events: list[Event]) -> list[Normed]:
    """Those after which gradients are computed in the same pass; a call of which not all is known is none."""
    found: dict[Place, Normed | None] = {}
    calls: dict[int, tuple[Event, Normed | None]] = {}
    call: Event | None = None
    for event in events:
        if event.action == "forward" and not event.detail["within"]:
            call = event
        elif event.action == "norm" and call is not None:
            _count(calls, call, event)
        elif event.action in (Action.BACKWARD, Action.STEP):
            for number, (model, fewest) in [*calls.items()]:
                if model.entry is event.entry and model.passes == event.passes[: len(model.passes)]:
                    del calls[number]
                    _most(found, model.place, fewest)
    return [one for one in found.values() if one is not None]


def _count(calls: "dict[int, tuple[Event, Normed | None]]", call: Event, norm: Event) -> None:
    """A norm of a call counts if it gets fewer values than those before it; of some that are not known, nothing is said."""
    values, loader = norm.detail["values"], norm.detail["loader"]
    _, fewest = calls.get(id(call), (call, None))
    if values is None or (fewest is not None and fewest.values <= values):
        calls.setdefault(id(call), (call, fewest))
        return
    made = None if loader is None or loader.made is None else position(loader.made)
    calls[id(call)] = call, Normed(position(call.place), values, made)


def _most(found: dict[Place, Normed | None], place: Place, now: Normed | None) -> None:
    """Of several calls at one place, the one with the most values."""
    before = found.get(place, now)
    if now is None or before is None:
        found[place] = None
    else:
        found[place] = replace(max(before, now, key=lambda one: one.values))
