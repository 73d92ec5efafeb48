"""TA109: a sigmoid or tanh inside a model outputs almost only its limits."""

from collections.abc import Iterator, Sequence

from ta_runtime.facts import LayerCall, Step, Suspicion

SHARE = 0.95
"""Of the outputs within 0.01 of a limit, where the slope is under 4 % (sigmoid) or 2 % (tanh) of the greatest."""
OUTPUTS = 256


def check_step(step: Step) -> Iterator[Suspicion]:
    for forward in step.training_forwards:
        for position, call in enumerate(forward.calls):
            if call.saturated is None or call.saturated < SHARE or not call.training:
                continue
            if call.outputs[0].numel < OUTPUTS or not _feeds(forward.calls[position + 1 :]):
                continue
            layer = call.layer
            message = f"nearly all outputs of {layer} are saturated, so gradients vanish: scale or normalise its inputs"
            evidence = {"saturated outputs": call.saturated, "outputs": call.outputs[0].numel}
            yield Suspicion(layer.place, message, evidence, layer.name)


def _feeds(later: Sequence[LayerCall]) -> bool:
    """Whether a layer with weights comes after: the last sigmoid of a classifier and tanh of a generator may saturate."""
    return any(
        not call.module._modules and any(weight.dim() > 1 for weight in call.module.parameters())
        for call in later
    )
