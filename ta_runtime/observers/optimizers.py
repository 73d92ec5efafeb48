"""Sees every `optimizer.step()`: the gradients it uses, and on audited steps what it does to the parameters.

By torch's global step hooks, the one instrument that is always on. It sees accumulated, reduced, unscaled and clipped
gradients under plain loops, AMP, accumulation, DDP and FSDP2, needs no change of any object, and survives copies,
pickling and schedulers.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.distributed.tensor import DTensor

from ta_runtime.facts import Gradients, Optimizer, State, Update
from ta_runtime.measure.kinds import alike, local, measurable
from ta_runtime.measure.norms import row_norms
from ta_runtime.observers import filters, states
from ta_runtime.probes.listener import Listener
from ta_runtime.probes.patching import Call, End
from ta_runtime.probes.places import NOWHERE, Place, here
from ta_runtime.probes.registers import BUILT
from ta_runtime.probes.steps import StepCall

if TYPE_CHECKING:
    from ta_runtime.observers.context import Context
    from ta_runtime.observers.window import Window

SAMPLE = 4096
"""Elements of a parameter that are kept over an audited step, to see what it changed."""

_PLAIN = {Tensor}
_STRIDED = {torch.strided}
_PARAMETERS = itemgetter("params")
_LEARNS, _GRADIENT, _LAYOUT = attrgetter("requires_grad"), attrgetter("grad"), attrgetter("layout")
_RIDERS = 16  # loss values of one step that are read: of more micro-batches, the first


@dataclass(slots=True)
class _Sample:
    """Elements of parameters before a step: those of one shape, dtype and device stacked, with their indices."""

    updates: list[Update]
    groups: list[tuple[list[int], Tensor]]


class Optimizers(Listener):
    """Watches the optimizers of a session."""

    def __init__(self, session: "Context") -> None:
        self._session = session
        self.place = NOWHERE
        """Where an optimizer steps now, or did last."""
        self.by_scaler = False
        """Whether a gradient scaler makes a step now."""
        self.closer: set[int] = set()
        """Parameters, by id, of which a sample did not change: audited steps compare them whole."""

    def facts(self, optimizer: torch.optim.Optimizer) -> Optimizer:
        """The facts of an optimizer. Built before the session, it stands on the line that steps it."""
        if (place := BUILT.get(optimizer)) is None:
            place = here()
            BUILT.add(optimizer, place)
        session = self._session
        return Optimizer(  # not kept: it would keep the optimizer
            optimizer, place, session.names, session.history.of(optimizer)
        )

    def step(self, call: Call) -> End:
        assert isinstance(call, StepCall)
        session = self._session
        optimizer: torch.optim.Optimizer = call.args[0]
        if not session.watches(optimizer):
            return self._forget
        self.place = here()
        window = session.window_for(optimizer)
        session.tell("before_step", optimizer, window)
        if not session.looks_at(window):
            return self._ended
        if not call.has_closure:
            self._measure(optimizer, window)
        if window.thorough:
            return partial(self._ended, sample=self._sampled(optimizer))
        return self._ended

    def _forget(self, call: Call) -> None:
        """The losses and the clipping were for the step of another."""
        self._session.window.forget()

    def _ended(self, call: Call, sample: _Sample | None = None) -> None:
        assert isinstance(call, StepCall)
        session = self._session
        optimizer, window = call.args[0], session.window
        if session.looks_at(window):
            if call.has_closure:  # forward and backward ran inside the step
                self._measure(optimizer, window)
            if sample is not None and window.step is not None:
                with torch.no_grad():
                    after = self._compare(sample, window)
                    states.measure(self.facts(optimizer), window, after)
                    if session.wants_filters:
                        filters.measure(optimizer, window)
        session.stepped(optimizer)

    def scaler_step(self, call: Call) -> End | None:
        if not call.args[0].is_enabled():
            return None
        self.by_scaler = True
        return self._left_scaler

    def _left_scaler(self, call: Call) -> None:
        self.by_scaler = False

    def skip(self, call: Call) -> None:
        """A scaler that finds an overflow does not call the optimizer."""
        self._session.skipped(call.given(1, "optimizer"))

    # -- gradients --------------------------------------------------------------------------------------------

    def stepped_by_hand(
        self,
        stand_in: torch.optim.Optimizer,
        place: Place,
        gradients: Sequence[Tensor | None] | None,
        window: "Window",
    ) -> None:
        """A backward pass ends a step without an optimizer. `gradients` are those that no parameter holds."""
        self.place = place
        if self._session.looks_at(window):
            self._measure(stand_in, window, gradients)

    @torch.no_grad()
    def _measure(
        self,
        optimizer: torch.optim.Optimizer,
        window: "Window",
        given: Sequence[Tensor | None] | None = None,
    ) -> None:
        audited = window.step is not None
        parameters = chain.from_iterable(map(_PARAMETERS, optimizer.param_groups))
        tensors = list(filter(_LEARNS, parameters))
        gradients: list[Any] = list(map(_GRADIENT, tensors)) if given is None else list(given)
        indices: Sequence[int] = range(len(tensors))
        plain = (
            set(map(type, gradients)) == _PLAIN
            and set(map(_LAYOUT, gradients)) == _STRIDED
            and not gradients[0].is_meta
        )
        if plain:
            measured = gradients
            present = [True] * len(gradients)
        else:
            present = [gradient is not None for gradient in gradients]
            dense = [None if gradient is None else _dense(gradient, audited) for gradient in gradients]
            indices = [index for index, gradient in enumerate(dense) if gradient is not None]
            measured = [dense[index] for index in indices]
        facts = Gradients(
            step=window.index,
            optimizer=self.facts(optimizer),
            place=self.place,
            tensors=tensors,
            present=present,
            loss_place=window.loss_place,
            backwards=window.backwards,
            sharded=not plain and any(isinstance(parameter, DTensor) for parameter in tensors),
            learning_rate=_rate(optimizer),
        )
        window.gradients.append(facts)
        self._read(facts, optimizer, measured, indices, window)

    def _read(
        self,
        facts: Gradients,
        optimizer: torch.optim.Optimizer,
        measured: list[Tensor],
        indices: Sequence[int],
        window: "Window",
    ) -> None:
        """Send the numbers off: the norms, and beside them the few scalars that belong to the step."""
        losses = window.losses[:_RIDERS]
        scale = getattr(optimizer, "grad_scale", None)  # a fused optimizer unscales by itself
        overflow = getattr(optimizer, "found_inf", None)
        named = [("clipped", window.clipped), ("scale", scale), ("overflow", overflow)]
        extras = [*(("loss", loss) for loss in losses), *((name, t) for name, t in named if t is not None)]
        names = [name for name, _ in extras]  # all that is kept: the loss would keep its graph
        window.losses = []
        window.clipped = None
        window.backwards = 0
        window.loss_place = None
        count = len(facts.tensors)

        def deliver(values: list[float]) -> None:
            taken = len(indices)
            beside: dict[str, list[float]] = {}
            for name, value in zip(names, values[taken:], strict=True):
                beside.setdefault(name, []).append(value)
            norms = values[:taken]
            divisor = beside.get("scale", [1.0])[0]
            if divisor != 1.0:
                norms = [norm / divisor for norm in norms]
            facts.total = math.hypot(*norms) if norms else None
            if taken == count:
                facts.norms = norms
            else:
                facts.norms = [None] * count
                for index, value in zip(indices, norms, strict=True):
                    facts.norms[index] = value
            if "loss" in beside:
                facts.loss = sum(beside["loss"]) / len(beside["loss"])
            if "clipped" in beside:
                facts.before_clipping = beside["clipped"][0]
            if beside.get("overflow", [0.0])[0]:
                facts.skipped = True

        window.readings.norms(measured, deliver, beside=[tensor for _, tensor in extras])

    # -- updates ----------------------------------------------------------------------------------------------

    @torch.no_grad()
    def _sampled(self, optimizer: torch.optim.Optimizer) -> _Sample:
        facts = self.facts(optimizer)
        updates: list[Update] = []
        views: list[Tensor] = []
        for group in optimizer.param_groups:
            rate = float(group["lr"]) if isinstance(group.get("lr"), (int, float)) else math.nan
            for parameter in group["params"]:
                values = local(parameter)
                if not measurable(values):
                    continue
                exact = values.numel() <= SAMPLE or id(parameter) in self.closer
                updates.append(Update(parameter, facts, exact, parameter.grad is not None, rate))
                views.append(values if exact else _sample(values))
        groups = [(indices, torch.stack([views[index] for index in indices])) for indices in alike(views)]
        return _Sample(updates, groups)

    def _compare(self, sample: _Sample, window: "Window") -> dict[int, State]:
        """The change of each parameter, by differences of its sample in the parameter's own dtype.

        Returns what the step made of those that are compared whole, by the ids of their tensors.
        """
        assert window.step is not None
        compared: list[int] = []
        counted: list[Update] = []
        norms: list[Tensor] = []
        counts: list[Tensor] = []
        takers: list[tuple[str, list[Update] | list[State]]] = []
        after: dict[int, State] = {}
        for indices, before in sample.groups:
            indices, before, now = self._comparable(sample, indices, before)
            if not now:
                continue
            updates = [sample.updates[index] for index in indices]
            changes = torch.stack(now)
            norms.append(row_norms(before))
            takers.append(("weight", updates))
            if all(update.exact for update in updates):
                norms.append(row_norms(changes))  # the weights themselves, until `before` is taken from them
                states = [State(update.tensor, update.optimizer) for update in updates]
                after |= {id(state.tensor): state for state in states}
                takers.append(("norm", states))
            changes.sub_(before)
            norms.append(row_norms(changes))
            takers.append(("change", updates))
            compared += indices
            if before.dtype.itemsize == 2 or any(id(update.tensor) in self.closer for update in updates):
                counts.append(row_norms(changes, order=0.0) / max(before.shape[1:].numel(), 1))
                counted += updates

        def deliver_changed(values: list[float]) -> None:
            for update, share in zip(counted, values, strict=True):
                if update.tensor.dtype.itemsize == 2 or id(update.tensor) in self.closer:
                    update.changed = share

        if norms:
            window.readings.vectors(norms, partial(_hand_out, takers))
        if counts:
            window.readings.vectors(counts, deliver_changed)
        window.step.updates += [sample.updates[index] for index in sorted(compared)]
        return after

    def _comparable(
        self, sample: _Sample, indices: list[int], before: Tensor
    ) -> tuple[list[int], Tensor, list[Tensor]]:
        """Of the tensors of a group, those that the step changed in place: their indices, and values before and now."""
        now = [self._now(sample.updates[index]) for index in indices]
        kept = [number for number, value in enumerate(now) if _like(value, before)]
        if len(kept) == len(now):
            return indices, before, now
        return [indices[number] for number in kept], before[kept], [now[number] for number in kept]

    def _now(self, update: Update) -> Tensor:
        values = local(update.tensor)
        return values if update.exact else _sample(values)


def _hand_out(takers: list[tuple[str, list[Update] | list[State]]], values: list[float]) -> None:
    """Give values, in their order, to the fields of the entries that they were measured for."""
    rest = iter(values)
    for field, entries in takers:
        for entry in entries:
            setattr(entry, field, next(rest))


def _rate(optimizer: torch.optim.Optimizer) -> float | None:
    """The learning rate of the first group. One on a device is not waited for."""
    rate = optimizer.param_groups[0].get("lr")
    if isinstance(rate, Tensor):
        return float(rate) if rate.device.type == "cpu" and type(rate) is Tensor else None
    return float(rate) if isinstance(rate, (int, float)) else None


def _like(value: Tensor, stacked: Tensor) -> bool:
    return (
        value.shape == stacked.shape[1:] and value.dtype is stacked.dtype and value.device == stacked.device
    )


def _sample(values: Tensor) -> Tensor:
    """An even sample of about SAMPLE elements."""
    flat = values.view(-1) if values.is_contiguous() else values.reshape(-1)
    return flat[:: max(1, values.numel() // SAMPLE)]


def _dense(gradient: Tensor, audited: bool) -> Tensor | None:
    """What of a gradient can be measured; None for what cannot. Sparse ones are summed up, on audited steps alone."""
    gradient = local(gradient)
    if gradient.layout is torch.sparse_coo:
        return gradient.coalesce().values() if audited else None
    return gradient if measurable(gradient) else None
