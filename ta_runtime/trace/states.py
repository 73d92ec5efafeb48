"""Tells what parameters, buffers and gradients hold around a step: one look at all of them, with a digest of each."""

import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from ta_runtime.measure.memory import address
from ta_runtime.probes import construction
from ta_runtime.probes.compile import captured
from ta_runtime.probes.registers import Register
from ta_runtime.trace.choice import Choice
from ta_runtime.trace.course import REQUIRES_GRAD, TRAINING, Course, Open
from ta_runtime.trace.event import Event, Flag
from ta_runtime.trace.layers import LayerNames
from ta_runtime.trace.numbers import number_of_zeros, numbers

Optimizer = torch.optim.Optimizer
Key = tuple[str, str]

CHANGED, UNSEEN, NONE, ZERO = (int(flag) for flag in (Flag.CHANGED, Flag.UNSEEN, Flag.NONE, Flag.ZERO))

_RENEWED = 32
"""Looks at a model after which it is asked again which parts it has; what takes the place of a part is seen at once."""

_new = tuple.__new__


class Slot(NamedTuple):
    """Where a model holds a parameter or buffer: kind, class of the module and path; and the keys by which it is known."""

    name: str
    subject: str
    module: "weakref.ref[nn.Module] | None"
    attribute: str
    key: Key
    gradient: Key | None
    is_told: bool
    """Whether its content is; of its gradient, if there is a key for it."""


Place = tuple[Slot, int, Tensor]
"""A slot, flags, and what it holds now."""
_Found = tuple[Mapping[int, Tensor], list[Place]]


class States:
    """Looks at the states around the steps that are WHOLE, of the kinds and classes that are wanted."""

    def __init__(self, course: Course, layers: LayerNames, choice: Choice) -> None:
        self._course, self._layers, self._wanted = course, layers, choice.tells
        self._is_on = any(map(choice.of, ("parameter", "buffer", "gradient")))
        self._last: dict[Key, int] = {}  # digests
        self._versions: dict[Key, tuple[int, int, int]] = {}  # of the parameters with these digests
        self._modules: dict[Key, weakref.ref[nn.Module]] = {}  # what these keys are of
        self._taken: set[Key] = set()  # those that are of another module than before, until they are told
        self._slots: Register[tuple[list[Slot], int]] = Register()  # of models, until they are asked again
        self._strangers: set[int] = set()  # parameters for which a model was looked for
        self._looks = 0
        self._around: dict[int, _Found] = {}  # of the optimizers that step now
        self._told: set[int] = set()  # models of which was told in this step what no optimizer holds

    @property
    def _looks_now(self) -> bool:
        return self._is_on and bool(self._course.whole) and not captured()

    def turn(self) -> None:
        """A step is over."""
        self._told.clear()
        self._around.clear()

    def before_step(self, step: Open, optimizer: Optimizer) -> None:
        """Tell the gradients that an optimizer is about to use, and remember its parameters as they are."""
        if self._looks_now:
            self._looks += 1
            with torch._C.DisableTorchFunction():
                held, places = self._found(optimizer)
                is_first = id(optimizer) not in self._around
                self._around[id(optimizer)] = held, places
                self._tell_gradients(step, places)
                if is_first:  # a closure may be called at several points of one step
                    self._remember(places)

    def after_step(self, step: Open, optimizer: Optimizer) -> None:
        """Tell what it has made of the parameters; and what else its models hold, once in a step."""
        if self._looks_now:
            with torch._C.DisableTorchFunction():
                around = self._around.pop(id(optimizer), None)
                held, places = self._found(optimizer) if around is None else around
                self._tell_contents(step, [*places, *self._others(held)])

    def cleared(self, clearing: Open, parameters: Iterable[Tensor]) -> None:
        """Tell what `zero_grad` leaves of gradients."""
        if self._looks_now:
            with torch._C.DisableTorchFunction():
                self._tell_gradients(
                    clearing, self._places({id(parameter): parameter for parameter in parameters})
                )

    # -- where they are ---------------------------------------------------------------------------------------

    def _found(self, optimizer: Optimizer) -> _Found:
        held = construction.held(optimizer)
        return held, self._places(held)

    def _places(self, held: Mapping[int, Tensor]) -> list[Place]:
        """These parameters, at each place where a model has them; then those that are in no model that was seen."""
        found = [
            place
            for model in self._layers.models()
            for place in self._held_by(model)
            if id(place[2]) in held and place[0].gradient is not None
        ]
        rest = held.keys() - {id(tensor) for _, _, tensor in found}
        if rest:
            if not rest <= self._strangers:
                self._strangers |= rest
                if self._layers.find(rest):
                    return self._places(held)
            for number, key in enumerate(key for key in held if key in rest):
                slot = self._slot("parameter", "", f"parameter {number}", None, "")
                found.append((slot, REQUIRES_GRAD if held[key].requires_grad else 0, held[key]))
        return found

    def _others(self, held: Mapping[int, Tensor]) -> Iterator[Place]:
        """What no optimizer holds of the models of these parameters: buffers, and what is frozen."""
        anywhere: Mapping[int, Tensor] | None = None
        for model in self._layers.models():
            if id(model) not in self._told:
                found = list(self._held_by(model))
                if any(id(tensor) in held for _, _, tensor in found):
                    self._told.add(id(model))
                    rest = [place for place in found if id(place[2]) not in held]
                    if rest and anywhere is None:
                        anywhere = construction.held()
                    yield from (place for place in rest if id(place[2]) not in (anywhere or ()))

    def _held_by(self, model: nn.Module) -> Iterator[Place]:
        """What a model holds now, one that is tied at each of its places."""
        slots, until = self._slots.get(model) or ([], -1)
        if until < self._looks:
            slots = list(self._ask(model))
            self._slots.add(model, (slots, self._looks + _RENEWED))
        for slot in slots:
            module = slot.module() if slot.module is not None else None
            if module is not None:
                inside = module._buffers if slot.key[0] == "buffer" else module._parameters
                if (tensor := inside.get(slot.attribute)) is not None:
                    flags = REQUIRES_GRAD if tensor.requires_grad else 0
                    yield slot, flags | TRAINING if module.training else flags, tensor

    def _ask(self, model: nn.Module) -> Iterator[Slot]:
        for module in model.modules():
            layer = self._layers.of(module)
            for kind, tensors in (("parameter", module._parameters), ("buffer", module._buffers)):
                for name in tensors:
                    subject = f"{layer.subject}.{name}" if layer.subject else name
                    slot = self._slot(kind, layer.name, subject, layer.module, name)
                    self._met(slot, module)
                    yield slot

    def _met(self, slot: Slot, module: nn.Module) -> None:
        """Of a module that has the name of one before, as the next model of a sweep has, nothing was seen."""
        key = slot.key
        before = self._modules.get(key)
        if before is None or before() is not module:
            self._modules[key] = weakref.ref(module)
            if before is not None:
                self._last.pop(key, None)
                self._last.pop(slot.gradient or key, None)
                self._taken.add(key)

    def _slot(
        self, kind: str, name: str, subject: str, module: "weakref.ref[nn.Module] | None", attribute: str
    ) -> Slot:
        gradient = ("gradient", subject) if kind == "parameter" else None
        return Slot(name, subject, module, attribute, (kind, subject), gradient, self._wanted(kind, name))

    # -- what they hold ---------------------------------------------------------------------------------------

    def _remember(self, places: Sequence[Place]) -> None:
        """So that what a step changes is told from what was changed before it.

        What the counter of in-place changes says to be as it was is not read again: a change by way of `.data` then counts as
        one of the step.
        """
        news = [place for place in places if place[0].is_told and self._is_new(place[0].key, place[2])]
        for (slot, _, _), digest in zip(news, numbers([tensor for *_, tensor in news]), strict=True):
            if digest is not None:
                self._last[slot.key] = digest

    def _is_new(self, key: Key, tensor: Tensor) -> bool:
        if key in self._taken:  # it is told as what nothing was seen of
            return False
        return key not in self._last or self._versions.get(key) != _version(tensor)

    def _tell_gradients(self, parent: Open, places: Sequence[Place]) -> None:
        wanted = self._wanted
        found = [place for place in places if wanted("gradient", place[0].name)]
        gradients = [parameter.grad for _, _, parameter in found]
        self._tell(
            parent,
            [
                (slot.gradient or slot.key, slot, flags, gradient)
                for (slot, flags, _), gradient in zip(found, gradients, strict=True)
            ],
        )

    def _tell_contents(self, parent: Open, places: Iterable[Place]) -> None:
        found = [place for place in places if place[0].is_told]
        self._tell(parent, [(slot.key, slot, flags, tensor) for slot, flags, tensor in found])
        for slot, _, tensor in found:
            self._versions[slot.key] = _version(tensor)
        if self._taken:
            self._taken -= {slot.key for slot, *_ in found}

    def _tell(self, parent: Open, states: Sequence[tuple[Key, Slot, int, Tensor | None]]) -> None:
        course, last, whole = self._course, self._last, self._course.whole
        result_of, sink = course.signatures.result, course.sink
        digests = numbers([tensor for *_, tensor in states])
        step, phase, around, file, line = parent.step, parent.phase, parent.seq, parent.file, parent.line
        seq = course.seq
        course.seq = seq + 2 * len(states)
        for (key, slot, flags, tensor), digest in zip(states, digests, strict=True):
            dtype, shape = result_of(tensor)
            before = last.get(key)
            if tensor is None:
                flags |= NONE | UNSEEN
            elif digest is None or before is None:
                flags |= UNSEEN
            elif digest != before:
                flags |= CHANGED
            if digest is not None and tensor is not None:
                last[key] = digest
                if key is slot.gradient and digest == number_of_zeros(tensor):
                    flags |= ZERO
            sink(
                _new(
                    Event,
                    (
                        step, phase, seq, seq + 1, around, key[0], slot.name, slot.subject, "", dtype, shape, "", digest,
                        None, flags | whole, file, line,
                    ),
                )
            )  # fmt: skip
            seq += 2


def _version(tensor: Tensor) -> tuple[int, int, int]:
    """What tells a tensor from another, and from what it was before it was written to."""
    version = -1 if tensor.is_inference() else tensor._version
    return id(tensor), version, address(tensor)
