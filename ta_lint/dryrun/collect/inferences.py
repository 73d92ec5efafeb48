"""The forward passes that train nothing: what becomes of their outputs, and in which mode they run."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from ta_lint.core.protocol import Action
from ta_lint.dryrun.collect.places import position
from ta_lint.dryrun.collect.switches import optimizers_in
from ta_lint.dryrun.collect.uses import uses_of
from ta_lint.dryrun.machine.library import find
from ta_lint.dryrun.stubs.python.iterating import RANGE
from ta_lint.dryrun.stubs.torch.gradients import held_by
from ta_lint.dryrun.stubs.torch.layer_modes import depends_on_mode
from ta_lint.dryrun.stubs.torch.modules import (
    ALL_PARAMETERS,
    HAS_BATCH_NORMS,
    MODULE,
    below,
    children,
    held,
    is_guessed,
    is_module,
)
from ta_lint.dryrun.stubs.torch.outputs import (
    BACK,
    COMPARED,
    GATHERED,
    HANDED_OVER,
    LEFT,
    NUMBERS,
    READ,
    RETURNED,
    SHOWN,
    sources,
)
from ta_lint.dryrun.stubs.torch.tensors import Tensor, tensors_in
from ta_lint.dryrun.values import FALSE, TRUE, Class, Function, Known, Object, Place, Sequence, options
from ta_lint.events.event import Event
from ta_lint.events.inference import Inference

MODES = (Action.TRAIN, Action.EVAL, "mode")
LOADS = (Action.LOAD, "pretrained")
MEASURED = (READ, COMPARED)
LOOKED_AT = {READ, NUMBERS, SHOWN}
"""What becomes of outputs that nothing is computed from but what people see."""


def inferences_of(events: list[Event]) -> list[Inference]:
    """The passes of models, by line and model, but for those that losses come from."""
    return list(_Passes(events).found.values())


def infers(events: list[Event]) -> bool:
    """Whether nothing trains, and nothing computes gradients."""
    return not any(event.action in (Action.BACKWARD, "optimizer", Action.STEP) for event in events)


@dataclass(slots=True)
class _Model:
    """A model that is called."""

    parts: frozenset[Object]
    parameters: frozenset[int]
    dropouts: int
    norms: int
    learns: bool
    """Whether it has parameters that are not frozen."""
    is_seen: bool
    """Whether all its layers are."""
    trained: Event | None = None
    """The last backward pass that came to its parameters."""
    switched: Event | None = None
    """The last event that put it, or a part of it, into a mode."""
    trains: set[Place] = field(default_factory=set)
    """The lines that put it into training mode before such a pass."""
    is_loaded: bool = False
    is_out_of_sight: bool = False
    """Whether other code has got it, which may put it into a mode."""
    is_sampled: bool = False
    """Whether it is called again and again on one input, as is done with a model that is random on purpose."""
    last: tuple[Event, Event | None] | None = None
    """The last pass, and the last backward pass before it."""

    @property
    def is_settled(self) -> bool:
        """Whether something has put it into a mode, or may have."""
        return self.switched is not None or self.is_out_of_sight


class _Passes:
    """The models, followed through the events."""

    def __init__(self, events: list[Event]) -> None:
        self.found: dict[tuple[Place, Object], Inference] = {}
        self._uses = uses_of(events)
        self._infers = not any(event.action in (Action.BACKWARD, Action.STEP) for event in events)
        self._has_gradients = any(event.action == Action.BACKWARD for event in events)
        groups = [*map(held_by, optimizers_in(events))]
        self._held = {id(one) for group in groups for one in group.parameters}
        """The parameters, by id, that optimizers hold."""
        self._may_hold_others = not all(group.complete for group in groups)
        backwards = (event for event in events if event.action == Action.BACKWARD)
        self._training_loops = {loop for event in backwards for loop, _ in event.passes}
        self._unknown_trainings = {
            one.passes[-1][0]
            for one in events
            if one.action == Action.BACKWARD and one.detail["open"] and one.passes
        }
        """The loops that go back from a loss that is not known in whole: each pass that records may be what it is computed from."""
        self._trained_inputs: dict[Place, set[int]] = {}
        passes = [event for event in events if _is_pass(event)]
        inside: dict[Object, dict[Object, None]] = {one.subject: {} for one in passes}
        for event in events:
            if event.action == Action.FORWARD and event.detail["within"]:
                inside.setdefault(event.detail["within"][0][0], {})[event.subject] = None
        self._models = {
            one: _model(one, inside[one]) for one in dict.fromkeys(each.subject for each in passes)
        }
        self._learnt = {
            id(one) for event in events if event.action == Action.BACKWARD for one in event.detail["roots"]
        }
        """The parameters, by id, that gradients go to."""
        self._unknown_losses = {
            one.functions for one in events if one.action == Action.BACKWARD and one.detail["open"]
        }
        """The functions, with those that have called them, that go back from a loss that is not known in whole."""
        known = frozenset[int]().union(*(model.parameters for model in self._models.values()))
        self._freezes_another = any(
            event.action == "freeze" and isinstance(event.subject, Tensor) and id(event.subject) not in known
            for event in events
        )
        """Whether parameters are frozen of a model that is not known, as that of a caller may be."""
        self._broken_off = {event.entry for event in events if event.action == "broken off"}
        self._drop = {event.subject for event in events if event.action == "drop"}
        for event in passes:
            if BACK in self._uses.get(event.detail["call"], ()) and event.passes:
                inputs = self._trained_inputs.setdefault(event.passes[-1][0], set())
                inputs |= {id(one) for one in event.detail["inputs"]}
        self._switched: list[tuple[Inference, _Model, Event | None]] = []
        """The noisy passes and those that are shown, with what has put the model into training mode,"""
        self._loaded: list[tuple[Inference, _Model]] = []
        """and those of models with loaded weights."""
        self._trains_at: dict[Place, set[object]] = {}
        """The lines of passes that gradients go back through, with the functions that call them."""
        self._wasted: dict[tuple[Place, Object], set[object]] = {}
        """The functions that call the passes whose graphs nobody uses."""
        self._wasted_from: dict[tuple[Place, Object], list[tuple[Event, Inference]]] = {}
        self._trains_from: dict[Place, set[Place]] = {}
        """By the line of a pass, the calls of functions on the way to it, where its graph is wasted or gradients go back through it."""
        self._goes_back: set[Place] = set()
        """The calls of functions in which gradients go back through some pass, as an attack on a model needs them."""
        for event in events:
            self._follow(event)
        for at, functions in self._wasted.items():
            if not self._trains_at.get(at[0], set()) <= functions:
                self.found[at].graphs = 0  # a training calls the same function
                self._wasted_by_callers(at)
        for inference, model, switched in self._switched:
            told = None if switched is None or switched.action == Action.EVAL else switched.place
            if model.is_sampled or (told is not None and told not in model.trains):
                inference.noisy = inference.shown = 0  # it is random on purpose, as Monte Carlo dropout is
        for inference, model in self._loaded:
            inference.loaded *= not (model.is_sampled or model.is_settled)

    def _follow(self, event: Event) -> None:
        if event.action == Action.BACKWARD:
            reached = {id(one) for one in event.detail["roots"] | event.detail["perhaps"]}
            self._train(event, reached)
        elif event.action == Action.STEP and self._has_gradients:
            optimizers = [one for one in options(event.subject or FALSE) if isinstance(one, Object)]
            self._train(event, {id(each) for one in optimizers for each in held_by(one).parameters})
        elif event.action in (*MODES, *LOADS, HANDED_OVER) and isinstance(event.subject, Object):
            for one, model in self._models.items():
                if event.subject in model.parts or (
                    is_module(event.subject) and one in _parts(event.subject)
                ):
                    if event.action in MODES:
                        model.switched = event
                    model.is_loaded = model.is_loaded or event.action in LOADS
                    model.is_out_of_sight = model.is_out_of_sight or event.action == HANDED_OVER
        elif _is_pass(event):
            self._pass(event)

    def _train(self, event: Event, parameters: set[int]) -> None:
        for model in self._models.values():
            if not model.parameters.isdisjoint(parameters):
                model.trained = event
                if model.switched is not None and model.switched.action == Action.TRAIN:
                    model.trains.add(model.switched.place)

    def _pass(self, event: Event) -> None:
        model, uses = self._models[event.subject], self._uses.get(event.detail["call"], set())
        model.is_sampled = model.is_sampled or _is_again(event, model)
        model.last = event, model.trained
        if event.in_library:
            return
        if BACK in uses and not self._teaches(event, model):
            self._trains_at.setdefault(event.place, set()).add(_way(event))
            self._trains_from.setdefault(event.place, set()).update(event.detail["called_at"])
            self._goes_back.update(event.detail["called_at"])
            return
        inference = self.found.setdefault((event.place, event.subject), Inference(position(event.place)))
        inference.passes += event.times
        records, training = event.detail["recording"], event.detail["training"]
        inference.unrecorded += event.times * (records is False)
        if training == TRUE:
            self._note_mode(inference, model, event)
            is_quiet = records is False or (records is True and not uses.isdisjoint((READ, COMPARED)))
            is_meant = is_quiet and not _is_wrapped(event, model)
            if is_meant and self._evaluates(event) and self._is_trained(model, event):
                self._switched.append((inference, model, model.switched))
                inference.noisy += event.times
                inference.measured += event.times * (COMPARED in uses or model.is_seen or event.by_library)
            elif records is False and uses and self._is_mistaken(model, event):
                inference.noisy += event.times
                inference.measured += event.times
            elif (
                SHOWN in uses
                and uses <= LOOKED_AT
                and self._is_trained(model, event)
                and not _is_wrapped(event, model)
            ):
                self._switched.append((inference, model, model.switched))
                inference.shown += event.times
            elif is_quiet and model.is_loaded and not model.is_settled:
                self._loaded.append((inference, model))
                inference.loaded += event.times
        if BACK in uses or self._wastes(event, model, uses):
            self._wasted.setdefault((event.place, event.subject), set()).add(_way(event))
            inference.graphs += event.times + self._comes_again(event, model, uses)
            if training == FALSE and model.switched is not None:
                inference.switched = position(model.switched.place)
            if BACK not in uses:
                self._wasted_from.setdefault((event.place, event.subject), []).append((event, inference))

    def _wasted_by_callers(self, at: tuple[Place, Object]) -> None:
        """A function that a training calls too wastes graphs where another one calls it: that call is the place."""
        trains = self._trains_from.get(at[0], set())
        for event, seen in self._wasted_from.get(at, ()):
            own = [one for one in event.detail["called_at"] if one not in trains]
            if own and own[-1] not in self._goes_back and event.detail["training"] == FALSE:
                inference = self.found.setdefault((own[-1], at[1]), Inference(position(own[-1])))
                inference.passes += event.times
                inference.graphs += event.times
                inference.switched = seen.switched

    def _comes_again(self, event: Event, model: _Model, uses: set[str]) -> bool:
        """Whether a pass is more than a look at a shape: a function may be called elsewhere too, the dry run ended in the loop around it, or
        the program loads the model to show what it gives.
        """
        has_broken_off = bool(event.passes) and event.entry in self._broken_off
        is_purpose = self._infers and model.is_loaded and SHOWN in uses
        return bool(event.functions) or has_broken_off or is_purpose

    def _note_mode(self, inference: Inference, model: _Model, event: Event) -> None:
        inference.dropouts = model.dropouts + (event.subject in self._drop)
        inference.norms = model.norms
        inference.trained = None if model.trained is None else position(model.trained.place)
        inference.is_told = not model.is_seen and bool(model.trains)
        inference.is_guessed = is_guessed(event.subject)
        depends = inference.dropouts + inference.norms > 0 or not model.is_seen
        inference.unsettled += event.times * depends
        inference.plain += event.times * (not depends)

    def _is_trained(self, model: _Model, event: Event) -> bool:
        """Whether this entry has trained the model, which only the code in sight has put into a mode."""
        is_known = model.switched is not None or not model.is_out_of_sight
        return is_known and model.trained is not None and model.trained.entry is event.entry

    def _is_mistaken(self, model: _Model, event: Event) -> bool:
        """Whether another model of the same class, which is trained, is put into evaluation mode for a pass of this one, as of its average."""
        classes = {one.cls for one in model.parts}
        return model.trained is None and any(
            other.trained is not None
            and other.trained.entry is event.entry
            and other.switched is not None
            and other.switched.action == Action.EVAL
            and other.switched.subject.cls in classes
            and other.switched.subject not in model.parts
            and other.switched.functions[:1] == event.functions[:1]
            and held(other.switched.subject).parameters
            for other in self._models.values()
        )

    def _evaluates(self, event: Event) -> bool:
        """Whether a pass measures its model: its outputs are compared with something, or read in a loop over data, or a library makes text of
        them. In a loop that trains, it gets another batch than the training, or all the data there is.
        """
        uses = self._uses.get(event.detail["call"], set())
        if event.by_library and uses and uses <= LOOKED_AT:
            return True
        if COMPARED not in uses and not (READ in uses and _goes_over_data(event)):
            return False
        if not self._is_in_training(event):
            return True
        if COMPARED not in uses or self._may_be_trained_on(event):
            return False
        used = self._trained_inputs.get(event.passes[-1][0], set())
        is_own = used.isdisjoint(id(one) for one in event.detail["inputs"])
        return is_own or (not _goes_over_data(event) and event.detail["recording"] is False)

    def _wastes(self, event: Event, model: _Model, uses: set[str]) -> bool:
        """Whether a pass certainly records a graph, for outputs that are read, compared or gathered, and that nobody can go back through."""
        gives = event.detail.get("output")
        learns = model.learns if gives is None else gives.requires is not False
        if not learns or event.detail["recording"] is not True or event.detail["in_sight"] is not True:
            return False
        is_returned = RETURNED in uses or (GATHERED in uses and _is_of_module(event.functions))
        if is_returned and not (_runs_itself(event, model) or (self._infers and _is_ready(event, model))):
            return False
        learnt = not model.parameters.isdisjoint(self._learnt)
        if event.detail["training"] == TRUE:
            if not (learnt or (model.is_loaded and self._infers)) or not uses <= {*LOOKED_AT, COMPARED}:
                return False
        elif event.detail["training"] != FALSE or (LEFT in uses and not learnt and uses.isdisjoint(MEASURED)):
            return False
        is_taken = uses <= LOOKED_AT or (event.detail["training"] == FALSE and not uses.isdisjoint(MEASURED))
        if not uses or (not is_taken and self._goes_back_from_unknown(event)):
            return False
        goes_on = any(
            one.facts.outputs and one.facts.graph.starts for one in tensors_in(event.detail["inputs"])
        )
        is_attacked = any(one is event.subject for one in sources(event.detail["inputs"]))
        is_frozen = event.subject.made is None and not learnt and self._freezes_another
        return not (goes_on or is_attacked or is_frozen)

    def _teaches(self, event: Event, model: _Model) -> bool:
        """Whether gradients go to a model in evaluation mode alone, which no optimizer holds, as to a teacher."""
        return (
            event.detail["training"] == FALSE
            and event.detail["recording"] is True
            and model.learns
            and bool(self._held)
            and not self._may_hold_others
            and model.parameters.isdisjoint(self._held)
            and not any(one.facts.requires is not False for one in tensors_in(event.detail["inputs"]))
        )

    def _goes_back_from_unknown(self, event: Event) -> bool:
        """Whether something goes back from a loss that is not known in whole, where this happens or where that is called."""
        return any(event.functions[: len(one)] == one for one in self._unknown_losses)

    def _may_be_trained_on(self, event: Event) -> bool:
        """Whether the loop around a pass goes back from a loss that may be computed from it."""
        return event.detail["recording"] is not False and event.passes[-1][0] in self._unknown_trainings

    def _is_in_training(self, event: Event) -> bool:
        """Whether gradients are computed in the innermost loop around a pass."""
        return bool(event.passes) and event.passes[-1][0] in self._training_loops


def _goes_over_data(event: Event) -> bool:
    """Whether the innermost loop around something does not just count."""
    over = event.detail["over"]
    counts = isinstance(over, Sequence) and all(isinstance(one, Known) for one in over.every)  # a short range
    return over is not None and not counts and not (isinstance(over, Object) and over.cls is RANGE)


def _way(event: Event) -> object:
    """How a pass is come to: by these functions, from this call."""
    return event.functions, tuple(event.detail["called_at"][-1:])


def _is_again(event: Event, model: _Model) -> bool:
    """Whether a pass does the same as the last one of its model, on the same input, with nothing learned in between."""
    last, trained = model.last or (None, None)
    return (
        last is not None
        and not _goes_over_data(event)
        and last.place == event.place
        and trained is model.trained
        and last.functions == event.functions
        and len(last.passes) == len(event.passes)
        and last.passes[:-1] == event.passes[:-1]
        and [*map(id, last.detail["inputs"])] == [*map(id, event.detail["inputs"])]
    )


def _is_pass(event: Event) -> bool:
    """Whether a whole model runs, and nothing that has no parameters, such as a loss."""
    return (
        event.action == Action.FORWARD
        and not event.detail["within"]
        and (bool(held(event.subject).parameters) or held(event.subject).open)
    )


def _is_wrapped(event: Event, model: _Model) -> bool:
    """Whether all that a model consists of was put into evaluation mode before something was wrapped around it."""
    switched = model.switched
    return (
        switched is not None
        and switched.action == Action.EVAL
        and event.subject is not switched.subject
        and model.parameters == {id(one) for _, one in held(switched.subject).parameters}
    )


def _runs_itself(event: Event, model: _Model) -> bool:
    """Whether a method of a model runs the model, which it has put into evaluation mode: nothing trains through that."""
    switched = model.switched
    return (
        event.subject in event.detail["callers"]
        and switched is not None
        and switched.action == Action.EVAL
        and switched.functions == event.functions
    )


def _is_of_module(functions: tuple[Any, ...]) -> bool:
    """Whether the innermost function is a method of a module: who calls that says whether it records."""
    inner = functions[-1] if functions else None
    return isinstance(inner, Function) and inner.owner is not None and inner.owner.is_a(MODULE)


def _is_ready(event: Event, model: _Model) -> bool:
    """Whether the program has made or loaded a model and put it into evaluation mode, before another function runs it."""
    switched = model.switched
    return (
        switched is not None
        and switched.action == Action.EVAL
        and switched.subject.made is not None
        and switched.functions != event.functions
        and not _is_of_module(event.functions)
    )


def _parts(module: Object) -> frozenset[Object]:
    return frozenset(one for _, one, _ in below(module))


def _model(module: Object, ran: Iterable[Object]) -> _Model:
    """A model, with the layers that certainly are in it, or run in it, whoever holds them."""
    ran, unused = [*ran], _unused(module, {*ran})
    layers = [*dict.fromkeys([*(one for _, one, sure in below(module) if sure and one not in unused), *ran])]
    is_seen = not any(
        one.cls.out_of_sight or ALL_PARAMETERS in one.fields or one.fields.get("incomplete") == TRUE
        for one in layers
    )
    depending = [one for one in layers if depends_on_mode(one)]
    dropouts = [one for one in depending if not _is_norm(one)]
    norms = [one for one in depending if _is_norm(one)] + [
        one for one in layers if HAS_BATCH_NORMS in one.fields
    ]
    own = [one for _, one in held(module).parameters]
    learns = any(one.facts.requires is not False for one in own)
    parameters = frozenset(map(id, own))
    return _Model(_parts(module), parameters, len(dropouts), len(norms), learns, is_seen)


def _unused(module: Object, ran: set[Object]) -> set[Object]:
    """The layers that only other methods use: where all parts with parameters run, `forward` uses no part that does not."""
    parts = [one for _, one, _ in children(module)]
    if not ran or any(one not in ran and held(one).parameters for one in parts):
        return set()
    return {one for part in parts if part not in ran for _, one, _ in below(part)}


def _is_norm(layer: Object) -> bool:
    norms = [
        find(f"torch.nn.modules.{name}") for name in ("batchnorm._BatchNorm", "instancenorm._InstanceNorm")
    ]
    return any(isinstance(one, Class) and layer.cls.is_a(one) for one in norms)
