"""TA103: a trainable parameter of a layer that runs has never had a gradient other than exactly zero."""

from collections.abc import Iterator

from ta_runtime.facts import Flight, Gradients, Layer, Step, Suspicion, Update
from ta_runtime.facts.history import LONGEST_SILENCE

LEAST = LONGEST_SILENCE
"""Steps without any other gradient.

Layers behind a zero initialisation (LoRA, residual branches, ControlNet) get theirs after one step for each zero layer on
the way, a learning rate that warms up from zero included: measured, after 2 steps at most.
"""
UNDERFLOW = 1e-12
"""A norm beside it this small says that the zero is one of float32: the squares of 1e-19 and less are zero."""


def check_step(step: Step) -> Iterator[Suspicion]:
    for gradients in step.gradients:
        silence = gradients.optimizer.history.silence
        if silence.steps >= LEAST and gradients.total == 0.0 and _is_cut_off(gradients):
            message = (
                "no weight trains, as all gradients are zero: look for a dead layer or a constant loss term"
            )
            evidence: dict[str, float | int | str] = {"steps": silence.steps, "loss": gradients.loss or 0.0}
            yield Suspicion(gradients.loss_place or gradients.place, message, evidence)
        if not silence.zero or silence.steps < LEAST or not gradients.total or gradients.sharded:
            continue  # of a sharded parameter this rank may hold nothing
        never = [
            index for index in _zero(gradients) if silence.zero.get(id(gradients.tensors[index]), 0) >= LEAST
        ]
        if not never or any(norm is not None and 0.0 < norm < UNDERFLOW for norm in gradients.norms):
            continue
        called = _called(step)
        for index in reversed(never):  # the one nearest to the loss
            parameter = gradients.parameter(index)
            if parameter.layer is None or id(parameter.layer.module) not in called:
                continue
            if gradients.tensors[index].dim() == 1 and _others_have(gradients, parameter.layer):
                continue  # a loss of differences, as of a WGAN's critic, cancels a bias: the layer is trained
            message = f"`{parameter.name}` never trains, as its gradient is zero at every step: look for a factor of 0 or a dead layer"
            evidence = {"steps with a zero gradient": silence.steps, "parameters without another": len(never)}
            yield Suspicion(parameter.place, message, evidence, parameter.name)
            break


def check_trial(step: Step) -> Iterator[Suspicion]:
    """Not where a parameter other than a bias begins at zero: what is behind it gets its gradient later. A layer of which
    nothing comes is TA105's.
    """
    if any(call.dead == 1.0 for forward in step.training_forwards for call in forward.calls):
        return
    called = _called(step)
    opened = {
        id(update.tensor): update.weight is None or (update.weight == 0.0 and not _is_bias(update))
        for update in step.updates
    }
    for gradients in step.gradients:
        if (
            not gradients.total
            or gradients.sharded
            or any(opened.get(id(tensor), True) for tensor in gradients.tensors)
        ):
            continue
        zero = [
            parameter
            for index in _zero(gradients)
            if (parameter := gradients.parameter(index)).layer is not None
            and id(parameter.layer.module) in called
            and not (gradients.tensors[index].dim() == 1 and _others_have(gradients, parameter.layer))
        ]
        if zero:
            last = zero[-1]  # the one nearest to the loss
            message = (
                f"`{last.name}` has a gradient of zero in this trial: look for a factor of 0 or a dead layer"
            )
            yield Suspicion(last.place, message, {"parameters without another": len(zero)}, last.name)


def check_flight(flight: Flight) -> Iterator[Suspicion]:
    """The steps of a copy of the model; one that has nothing to learn any more gets zeros."""
    learns = flight.overfitting is not None and flight.overfitting.lowest > flight.overfitting.floor
    never = [weight for weight in flight.unmoved if weight.steps >= LEAST]
    if never and learns:
        last = never[-1]  # the one nearest to the loss
        evidence = {"steps with a zero gradient": last.steps, "parameters without another": len(never)}
        yield Suspicion(
            last.place,
            f"`{last.name}` never trains, as its gradient is zero at every step: look for a factor of 0 or a dead layer",
            evidence,
            last.name,
        )


def _is_cut_off(gradients: Gradients) -> bool:
    """Whether no parameter ever had a gradient other than zero while the loss took several values, none of them zero."""
    silence = gradients.optimizer.history.silence
    losses = gradients.optimizer.history.losses
    if losses.count < LEAST or losses.lowest == losses.highest or losses.lowest <= 0.0 <= losses.highest:
        return False
    always = [silence.zero.get(id(tensor), 0) >= LEAST for tensor in gradients.tensors if tensor.numel()]
    return bool(always) and all(always) and not gradients.sharded


def _zero(gradients: Gradients) -> Iterator[int]:
    return (
        index
        for index, norm in enumerate(gradients.norms)
        if norm == 0.0 and gradients.tensors[index].numel()
    )


def _others_have(gradients: Gradients, layer: Layer) -> bool:
    """Whether another parameter of the layer itself has a gradient."""
    own = {id(tensor) for tensor in layer.module.parameters(recurse=False)}
    return any(
        norm for tensor, norm in zip(gradients.tensors, gradients.norms, strict=False) if id(tensor) in own
    )


def _called(step: Step) -> set[int]:
    """The modules, by id, that something passed through; not experts that no token was routed to."""
    return {
        id(call.module)
        for forward in step.training_forwards
        for call in forward.calls
        if all(value.numel for value in call.outputs)
    }


def _is_bias(update: Update) -> bool:
    return update.tensor.dim() == 1 and update.parameter.name.endswith("bias")
