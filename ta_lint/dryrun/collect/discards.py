"""Statements that drop what a tensor operation gives, but for those that only try it or wait for it."""

from ta_lint.core.protocol import Action
from ta_lint.dryrun.collect.places import position
from ta_lint.dryrun.values import BY_NAME, Object
from ta_lint.events.discards import Discard
from ta_lint.events.event import Event


def discards_of(events: list[Event]) -> list[Discard]:
    """Those of the program, by place. A copy to the CPU in a function that asks for the time waits for the device."""
    timed = {(event.entry, event.functions) for event in events if event.action == "clock"}
    tensors = {id(one) for event in events if _is_layer(event) for one in event.detail["inputs"]}
    found: dict[object, Discard] = {}
    for event in events:
        if event.action != "discard" or event.by_library or event.detail["is_tried"]:
            continue
        is_guessed = isinstance(event.subject, Object) and BY_NAME in event.subject.fields
        waits = event.detail["waits"] and (event.entry, event.functions) in timed
        if not waits and (not is_guessed or id(event.subject) in tensors):
            found.setdefault(
                event.place, Discard(position(event.place), event.detail["code"], event.detail["of"])
            )
    return [*found.values()]


def _is_layer(event: Event) -> bool:
    """Whether a layer of torch runs, which takes tensors alone."""
    return event.action == Action.FORWARD and event.subject.cls.name.startswith("torch.nn.")
