"""The lines that put a model into evaluation mode, and the steps that train it in that mode."""

import ast
from functools import cache

from ta_lint.core.protocol import Action
from ta_lint.dryrun.collect.places import position
from ta_lint.dryrun.stubs.torch.gradients import held_by
from ta_lint.dryrun.stubs.torch.layers import depends_on_mode
from ta_lint.dryrun.stubs.torch.modules import DISTANT, below, held, is_module
from ta_lint.dryrun.stubs.torch.training import OPTIMIZER
from ta_lint.dryrun.values import Object, Place, Value, options
from ta_lint.events.event import Event
from ta_lint.events.mode import Switch

Off = frozenset[tuple[Object, Place]]
"""Models in evaluation mode, each with the line that put it there."""


def switches_of(events: list[Event]) -> list[Switch]:
    """The lines that call `eval()` on a model, as far as the model runs after that."""
    found: dict[tuple[Object, Place], Switch] = {}
    running: dict[Object, Off] = {}
    """For each model, what its last recorded forward pass has run in."""
    pending: set[tuple[Object, Place]] = set()
    """Those that gradients were computed in, and that no step has followed."""
    for event in events:
        if event.action == Action.EVAL and is_module(event.subject):
            if not event.some_pass:
                found.setdefault((event.subject, event.place), _switch(event))
        elif event.action == Action.FORWARD:
            off = frozenset((one, place) for one, place in found if place in event.detail["evaluating_since"])
            if event.detail["recording"] is False:
                for one in off:
                    found[one].evaluated = True
            elif not event.detail["inside"]:
                running[event.subject] = off
        elif event.action == Action.BACKWARD:
            pending |= {
                (one, place)
                for model, off in running.items()
                if not event.detail["roots"].isdisjoint(tensor for _, tensor in held(model).parameters)
                for one, place in off
            }
        elif event.action == Action.STEP:
            for one in [one for one in pending if _moves(event.subject, one[0])]:
                pending.discard(one)
                found[one].trained += event.times
                found[one].trained_at = found[one].trained_at or position(event.place)
    return list(found.values())


def _switch(event: Event) -> Switch:
    model = event.subject
    layers = sum(_may_depend(one) for _, one, _ in below(model))
    return Switch(position(event.place), model.cls.name.rpartition(".")[2], layers)


def _may_depend(module: Object) -> bool:
    """Whether a layer does another thing in evaluation mode, or perhaps does."""
    codes = [cls.node for cls in module.cls.mro if cls.node is not None]
    out_of_sight = module.cls.out_of_sight or module.cls.is_a(DISTANT)
    return out_of_sight or depends_on_mode(module) or any(map(_asks_for_mode, codes))


@cache
def _asks_for_mode(node: ast.AST) -> bool:
    """Whether the code of a class mentions the mode."""
    return any(isinstance(part, ast.Attribute) and part.attr == "training" for part in ast.walk(node))


def _moves(optimizer: Value, model: Object) -> bool:
    """Whether a step moves parameters of a model, or perhaps does."""
    given = {id(tensor) for _, tensor in held(model).parameters}
    groups = [
        held_by(one) for one in options(optimizer) if isinstance(one, Object) and one.cls.is_a(OPTIMIZER)
    ]
    return not groups or any(
        not group.complete or any(id(one) in given for one in group.parameters) for group in groups
    )
