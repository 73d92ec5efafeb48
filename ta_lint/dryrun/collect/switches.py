"""The lines that put a model into evaluation mode, and the steps that train it in that mode."""

import ast
from functools import cache

from ta_lint.core.protocol import Action
from ta_lint.dryrun.collect.places import position
from ta_lint.dryrun.stubs.torch.gradients import Group, held_by
from ta_lint.dryrun.stubs.torch.layer_modes import depends_on_mode
from ta_lint.dryrun.stubs.torch.modules import ALL_PARAMETERS, below, held, is_guessed, is_module
from ta_lint.dryrun.stubs.torch.tensors import Tensor
from ta_lint.dryrun.stubs.torch.training import OPTIMIZER
from ta_lint.dryrun.values import FALSE, Function, Object, Place, Value, options
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
        self._last: dict[Object, Place] = {}
        """The line that put each model into evaluation mode last: what runs then is evaluated because of that one."""
        self._ran: dict[Pair, tuple[Function, ...]] = {}
        """The function that ran each of them last,"""
        self._running: set[Pair] = set()
        """and those whose last recorded forward pass was in evaluation mode."""
        self._passes: list[tuple[Pair, Event]] = []
        """These passes since the last backward pass."""
        self._trained: set[Object] = set()
        """The outermost modules that autograd has recorded since then, in any mode."""
        self._computed: set[Pair] = set()
        """Those that gradients were computed in, and that no step has followed."""
        self._of: dict[Object, list[Tensor]] = {}
        """The parameters of models, as they are at the end."""
        self._held = frozenset(id(one) for each in optimizers_in(events) for one in held_by(each).parameters)
        """The parameters, by id, that an optimizer of the program certainly holds."""
        entry: Value | None = None
        for event in events:
            if event.entry is not entry:
                entry = event.entry
                self._begin(entry)
            if event.action == Action.EVAL and is_module(event.subject) and not event.by_library:
                self._switch(event)
            elif event.action == Action.FORWARD and self.found:
                self._forward(event)
            elif event.action == Action.BACKWARD and self._running and not event.in_library:
                self._backward(event)
            elif event.action == Action.STEP and self._computed:
                self._step(event)
            elif event.action == Action.CLEAR and self._computed:
                self._clear(event)

    def _begin(self, entry: Value | None) -> None:
        """A function begins that nothing calls: what ran before belongs to another part of the program."""
        if isinstance(entry, Function) and entry.owner is None:
            self._running.clear()
            self._passes.clear()
            self._trained.clear()
            self._computed.clear()

    def _switch(self, event: Event) -> None:
        model = event.subject
        if model not in self._parts:
            self._parts[model] = frozenset(one for _, one, _ in below(model))
        self._calls[model, event.place] = event
        self._last[model] = event.place
        if (model, event.place) not in self.found:
            depending = [one for one in self._parts[model] if _may_depend(one)]
            is_seen = not all(map(is_guessed, depending))
            name = model.cls.name.rpartition(".")[2]
            self.found[model, event.place] = Switch(position(event.place), name, len(depending), is_seen)

    def _forward(self, event: Event) -> None:
        records = event.detail["recording"] is not False
        for pair in [pair for pair in self.found if event.subject in self._parts[pair[0]]]:
            model, place = pair
            off = (
                place in event.detail["evaluating_since"]
                and not _is_before(event, self._calls[pair])
                and not self._is_part(model, event)
            )
            if records:
                self._ran[pair] = event.functions[-1:]
                (self._running.add if off else self._running.discard)(pair)
            own = any(owner in self._parts[model] for owner, _ in event.detail["within"])
            if off and records and not own:  # the loops of a forward pass are no evaluation
                self._passes.append((pair, event))
            elif off and not records and self._last[model] == place:
                self.found[pair].evaluated = True
        if records and not event.detail["within"]:
            self._trained.add(event.subject)

    def _backward(self, event: Event) -> None:
        """What was recorded in a loop that computes no gradients is an evaluation, too, and so is what another pass has left unused."""
        reached = event.detail["roots"] | event.detail["perhaps"]
        for pair in self._running:
            parts = self._parts[pair[0]]
            # an unknown loss is one of the only model, if its own function computes it
            alone = not reached and self._trained <= parts and self._ran[pair] == event.functions[-1:]
            if alone or not reached.isdisjoint(self._parameters(pair[0])):
                self._computed.add(pair)
        now = {one.place for _, one in self._passes if one.passes == event.passes}
        for pair, one in self._passes:
            around = _loops(self._calls[pair])
            loops = _loops(one)
            inside = loops[len(around) :] if loops[: len(around)] == around else []
            is_over = (
                one.passes != event.passes and loops == _loops(event) and one.place not in now and bool(now)
            )
            self.found[pair].evaluated |= is_over or not set(inside) <= set(_loops(event))
        self._passes.clear()
        self._trained.clear()

    def _step(self, event: Event) -> None:
        """A step after gradients were computed in evaluation mode: of this model, or of another one that is trained through it."""
        for pair in self._computed:
            switch = self.found[pair]
            if _moves(event.subject, self._parameters(pair[0]), self._held):
                switch.trained += event.times
                switch.trained_at = switch.trained_at or position(event.place)
            else:
                switch.evaluated = True
        self._computed.clear()

    def _clear(self, event: Event) -> None:
        """Gradients that are cleared before a step were those of an evaluation, as of one that attacks the model."""
        for pair in list(self._computed):
            if _holds(event.subject, self._parameters(pair[0])):
                self._computed.discard(pair)
                self.found[pair].evaluated = True

    def _is_part(self, model: Object, event: Event) -> bool:
        """Whether a model runs as a part of one that is in training mode, as a frozen part does. What only wraps it has no other parameters."""
        own = len(self._parameters(model))
        owners = [owner for owner, training in event.detail["within"] if training != FALSE]
        return any(owner is not model and len(self._parameters(owner)) > own for owner in owners)

    def _parameters(self, model: Object) -> list[Tensor]:
        if model not in self._of:
            self._of[model] = [tensor for _, tensor in held(model).parameters]
        return self._of[model]


def optimizers_in(events: list[Event]) -> set[Object]:
    """The optimizers that are made, or that step."""
    return {
        one
        for event in events
        for one in (options(event.subject) if event.action in ("optimizer", Action.STEP) else ())
        if isinstance(one, Object) and one.cls.is_a(OPTIMIZER)
    }


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


def _may_depend(module: Object) -> bool:
    """Whether a layer does another thing in evaluation mode, or perhaps does."""
    codes = [cls.node for cls in module.cls.mro if cls.node is not None]
    out_of_sight = module.cls.out_of_sight or ALL_PARAMETERS in module.fields
    return out_of_sight or depends_on_mode(module) or any(map(_asks_for_mode, codes))


@cache
def _asks_for_mode(node: ast.AST) -> bool:
    """Whether the code of a class mentions the mode."""
    return any(isinstance(part, ast.Attribute) and part.attr == "training" for part in ast.walk(node))


def _holds(cleared: Value, parameters: list[Tensor]) -> bool:
    """Whether an optimizer or a module certainly holds some of these parameters."""
    given = {id(tensor) for tensor in parameters}
    for one in options(cleared):
        if not isinstance(one, Object):
            continue
        is_optimizer = one.cls.is_a(OPTIMIZER)
        own = held_by(one).parameters if is_optimizer else [tensor for _, tensor in held(one).parameters]
        if not given.isdisjoint(map(id, own)):
            return True
    return False


def _moves(optimizer: Value, parameters: list[Tensor], held_somewhere: frozenset[int]) -> bool:
    """Whether a step moves these parameters of a model, or perhaps does, as no optimizer certainly holds them."""
    if _holds(optimizer, parameters):
        return True
    given = {id(tensor) for tensor in parameters}
    groups = [
        held_by(one) for one in options(optimizer) if isinstance(one, Object) and one.cls.is_a(OPTIMIZER)
    ]
    return given.isdisjoint(held_somewhere) and not all(group.complete for group in groups or [_UNKNOWN])


_UNKNOWN = Group((), complete=False)
"""What an optimizer holds that nobody knows."""
