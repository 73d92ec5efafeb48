"""The lines that put a model into evaluation mode, and the steps that train it in that mode."""

import ast
from functools import cache

from ta_lint.core.protocol import Action
from ta_lint.dryrun.collect.places import position
from ta_lint.dryrun.stubs.torch.gradients import held_by
from ta_lint.dryrun.stubs.torch.layer_modes import depends_on_mode
from ta_lint.dryrun.stubs.torch.modules import ALL_PARAMETERS, below, held, is_module
from ta_lint.dryrun.stubs.torch.tensors import Tensor
from ta_lint.dryrun.stubs.torch.training import OPTIMIZER
from ta_lint.dryrun.values import FALSE, Object, Place, Value, options
from ta_lint.events.event import Event
from ta_lint.events.mode import Switch

Pair = tuple[Object, Place]
"""A model, and a line that puts it into evaluation mode."""


def switches_of(events: list[Event]) -> list[Switch]:
    """The lines that call `eval()` on a model, with what happens after that."""
    return list(_Followed(events).found.values())


class _Followed:
    """The models that were put into evaluation mode, followed through the events."""

    def __init__(self, events: list[Event]) -> None:
        self.found: dict[Pair, Switch] = {}
        self._parts: dict[Object, frozenset[Object]] = {}
        """Of each of these models, itself and all modules below it."""
        self._calls: dict[Pair, Event] = {}
        """Their last calls of `eval()`."""
        self._running: set[Pair] = set()
        """Those whose last recorded forward pass was in evaluation mode."""
        self._passes: list[tuple[Pair, list[Place]]] = []
        """The loops around each of these passes since the last backward pass."""
        self._computed: set[Pair] = set()
        """Those that gradients were computed in, and that no step has followed."""
        for event in events:
            if event.action == Action.EVAL and is_module(event.subject) and not event.by_library:
                self._switch(event)
            elif event.action == Action.FORWARD and self.found:
                self._forward(event)
            elif event.action == Action.BACKWARD and self._running and not event.in_library:
                self._backward(event)
            elif event.action == Action.STEP and self._computed:
                self._step(event)

    def _switch(self, event: Event) -> None:
        model = event.subject
        if model not in self._parts:
            self._parts[model] = frozenset(one for _, one, _ in below(model))
        self._calls[model, event.place] = event
        if (model, event.place) not in self.found:
            layers = sum(map(_may_depend, self._parts[model]))
            name = model.cls.name.rpartition(".")[2]
            self.found[model, event.place] = Switch(position(event.place), name, layers)

    def _forward(self, event: Event) -> None:
        records = event.detail["recording"] is not False
        for pair in [pair for pair in self.found if event.subject in self._parts[pair[0]]]:
            model, place = pair
            off = (
                place in event.detail["evaluating_since"]
                and not _is_before(event, self._calls[pair])
                and not _is_part(model, event)
            )
            if records:
                (self._running.add if off else self._running.discard)(pair)
            if off and records:
                self._passes.append((pair, _loops(event)))
            elif off:
                self.found[pair].evaluated = True

    def _backward(self, event: Event) -> None:
        """What was recorded in a loop that computes no gradients is an evaluation, too."""
        reached = event.detail["roots"] | event.detail["perhaps"]
        self._computed |= {pair for pair in self._running if not reached.isdisjoint(_held(pair[0]))}
        for pair, loops in self._passes:
            around = _loops(self._calls[pair])
            inside = loops[len(around) :] if loops[: len(around)] == around else []
            self.found[pair].evaluated |= not set(inside) <= set(_loops(event))
        self._passes.clear()

    def _step(self, event: Event) -> None:
        """A step after gradients were computed in evaluation mode: of this model, or of another one that is trained through it."""
        for pair in self._computed:
            switch = self.found[pair]
            if _moves(event.subject, pair[0]):
                switch.trained += event.times
                switch.trained_at = switch.trained_at or position(event.place)
            else:
                switch.evaluated = True
        self._computed.clear()


def _loops(event: Event) -> list[Place]:
    """The loops around it, the outermost first."""
    return [loop for loop, _ in event.passes]


def _is_before(event: Event, call: Event) -> bool:
    """Whether something happens in another pass of a loop than a call that is made in one pass, perhaps the last, and so before that."""
    if not call.some_pass:
        return False
    depth = len(call.passes)
    now = event.passes[:depth]
    return now != call.passes and now[:-1] == call.passes[:-1] and _loops(event)[:depth] == _loops(call)


def _is_part(model: Object, event: Event) -> bool:
    """Whether a model runs as a part of one that is in training mode, as a frozen part does. What only wraps it has no other parameters."""
    own = len(_held(model))
    owners = [owner for owner, training in event.detail["within"] if training != FALSE]
    return any(owner is not model and len(_held(owner)) > own for owner in owners)


def _held(model: Object) -> list[Tensor]:
    return [tensor for _, tensor in held(model).parameters]


def _may_depend(module: Object) -> bool:
    """Whether a layer does another thing in evaluation mode, or perhaps does."""
    codes = [cls.node for cls in module.cls.mro if cls.node is not None]
    out_of_sight = module.cls.out_of_sight or ALL_PARAMETERS in module.fields
    return out_of_sight or depends_on_mode(module) or any(map(_asks_for_mode, codes))


@cache
def _asks_for_mode(node: ast.AST) -> bool:
    """Whether the code of a class mentions the mode."""
    return any(isinstance(part, ast.Attribute) and part.attr == "training" for part in ast.walk(node))


def _moves(optimizer: Value, model: Object) -> bool:
    """Whether a step moves parameters of a model, or perhaps does."""
    given = {id(tensor) for tensor in _held(model)}
    groups = [
        held_by(one) for one in options(optimizer) if isinstance(one, Object) and one.cls.is_a(OPTIMIZER)
    ]
    return not groups or any(
        not group.complete or any(id(one) in given for one in group.parameters) for group in groups
    )
