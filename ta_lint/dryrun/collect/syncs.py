"""The lines that read, in each step of a training, a value that is computed from a model, where something is on an accelerator."""

from ta_lint.core.protocol import Action
from ta_lint.dryrun.collect.places import position
from ta_lint.dryrun.stubs.torch.tensors import Tensor
from ta_lint.dryrun.values import Value
from ta_lint.events.event import Event
from ta_lint.events.syncs import Sync


def syncs_of(events: list[Event]) -> list[Sync]:
    """The lines that wait for the device in each pass of a loop that steps in each."""
    if not any(event.action == "accelerate" for event in events):
        return []
    loops = {event.passes[-1][0] for event in events if event.action == Action.STEP and event.passes}
    found: dict[tuple[str, int], Sync] = {}
    for event in events:
        if event.action != "read" or not event.in_each_pass or not _is_of_model(event.subject):
            continue
        loop, number = event.passes[-1]
        if loop in loops and not event.by_library:
            at = event.place.file, event.place.line
            sync = found.setdefault(at, Sync(position(event.place)))
            sync.steps += event.times
            sync.on_device += event.times
            sync.again += event.times if number else 0
    return [*found.values()]


def _is_of_model(value: Value) -> bool:
    """Whether a tensor is computed from parameters, and not a batch as its loader gives it, which is in main memory."""
    facts = value.facts if isinstance(value, Tensor) else None
    return facts is not None and bool(facts.roots or facts.perhaps or facts.cuts or facts.open)
