"""The losses that compare number by number, and the differences that are averaged or summed as one."""

from ta_lint.dryrun.collect.places import position
from ta_lint.dryrun.stubs.torch.pairs import shape_of
from ta_lint.dryrun.values import Place
from ta_lint.events.compared import ELEMENTWISE, REFUSING, Compared, are_pairs
from ta_lint.events.event import Event


def compared_of(events: list[Event]) -> list[Compared]:
    """What each of them compares: of one that gets several pairs of shapes, a pair that is no mistake, if there is one."""
    found: dict[Place, Compared] = {}
    for event in events:
        for place, one in _compared(event):
            before = found.get(place)
            if before is None or are_pairs(before.given, before.target):
                found[place] = one
    return [*found.values()]


def _compared(event: Event) -> list[tuple[Place, Compared]]:
    detail = event.detail
    if event.action == "compared":
        one = Compared(position(detail["at"]), detail["how"], detail["given"], detail["target"])
        return [(detail["at"], one)]
    if event.action != "loss" or detail["by"] not in ELEMENTWISE | REFUSING:
        return []
    given, target = shape_of(detail["input"]), shape_of(detail["target"])
    return [(event.place, Compared(position(event.place), detail["by"], given or (), target or ()))]
