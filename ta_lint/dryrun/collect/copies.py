"""The copies of batches to a device that do not block, of loaders that pin no memory."""

from ta_lint.dryrun.collect.places import position
from ta_lint.dryrun.stubs.torch.costs import is_elsewhere
from ta_lint.dryrun.values import Object, Place
from ta_lint.events.copies import Copy
from ta_lint.events.event import Event


def copies_of(events: list[Event]) -> list[Copy]:
    """The first copy of each loader, with its others; none at a place that also copies what may be pinned."""
    copies = [event for event in events if event.action == "batch copy" and not event.by_library]
    pinned = {
        event.place
        for event in copies
        if not event.detail["is_unpinned"] or is_elsewhere(event.detail["loader"])
    }
    places: dict[Object, list[Place]] = {}
    targets: dict[Place, str] = {}
    for event in copies:
        found = places.setdefault(event.detail["loader"], [])
        if event.place not in found and event.place not in pinned and event.detail["target"] in ("", "cuda"):
            found.append(event.place)
            targets[event.place] = event.detail["target"]
    return [
        Copy(
            position(at[0]), targets[at[0]], non_blocking=True, loader=position(loader.made or at[0]),
            others=tuple(map(position, at[1:])),
        )
        for loader, at in places.items()
        if at
    ]  # fmt: skip
