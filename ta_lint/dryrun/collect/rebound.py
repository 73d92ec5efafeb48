"""Calls whose tensor takes the place of what was called."""

import ast

from ta_lint.dryrun.collect.places import code, position
from ta_lint.dryrun.stubs.torch.modules import is_module
from ta_lint.dryrun.stubs.torch.tensors import Tensor
from ta_lint.dryrun.values import Native, Object, Place, Value
from ta_lint.events.event import Event
from ta_lint.events.rebound import Rebound


def rebounds_of(events: list[Event]) -> list[Rebound]:
    """Those that a loop comes to a second time, or a call of a function on the same object does."""
    replaced: set[Place] = set()
    found: dict[Place, Rebound] = {}
    for event in events:
        if event.action != "rebind":
            continue
        if isinstance(event.detail["new"], Tensor) and _computes(event.subject):
            replaced.add(event.place)
            if _stays(event):
                found.setdefault(event.place, Rebound(position(event.place), code(event.place), None))
        elif isinstance(event.subject, Tensor) and event.place in replaced and event.passes:
            loop = position(event.passes[-1][0])
            found[event.place] = Rebound(position(event.place), code(event.place), loop)
    return [*found.values()]


def _computes(called: Value) -> bool:
    return isinstance(called, Native) or is_module(called)


def _stays(event: Event) -> bool:
    """Whether an attribute is replaced that a call of the function finds, and has not made itself: the next call finds the tensor."""
    if not isinstance(event.place.node, ast.Attribute) or event.entry is None or not event.functions:
        return False
    made = event.subject.made if isinstance(event.subject, Object) else None
    node = event.functions[-1].node
    is_own = (
        made is not None and made.file == event.place.file and node.lineno <= made.line <= node.end_lineno
    )
    return made is not None and not is_own and all(one.name != "__init__" for one in event.functions)
