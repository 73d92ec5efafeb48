"""TA301: a convolution or linear layer gets images whose values still range from 0 to 255."""

from collections.abc import Iterator

from torch import nn

from ta_runtime.facts import LayerCall, Step, Suspicion, Value

LEAST_MAXIMUM = 100.0
"""A batch of 8-bit images, even of dark ones, has a pixel above it; torch-audit's limit of 50 met other things."""
LARGEST_MAXIMUM = 255.0
NOISE = 32.0
"""How far noise carries single pixels over either end: four times a standard deviation of 8, a thirtieth of the range."""
LEAST_SPREAD = 20.0
"""The standard deviation of MNIST as bytes is 79, of CIFAR-10 63, of ImageNet 58 (from the usual constants for 0 to 1)."""
LARGE = 50.0
"""From torch-audit: standardised values are below 10, and those from 0 to 1 below 1."""
_CHANNELS = (1, 3, 4)
_LAYERS = (nn.Conv2d, nn.Conv3d, nn.Linear)


def check_step(step: Step) -> Iterator[Suspicion]:
    for forward in step.training_forwards:
        images = [value for value in forward.inputs if _is_bytes(value)]
        if images and (call := _reader(forward.calls, images)) is not None:
            message = "images with values from 0 to 255 train badly: scale them to 0 to 1 and normalise"
            value = images[0]
            yield Suspicion(
                forward.place,
                message,
                {
                    "minimum": value.minimum or 0.0,
                    "maximum": value.maximum or 0.0,
                    "standard deviation": value.std or 0.0,
                    "layer": call.layer.name,
                },
            )


def check_data(step: Step) -> Iterator[Suspicion]:
    """Other inputs that a layer reads as they are: without a scale, the largest of them rule the gradient."""
    for forward in step.training_forwards:
        large = [
            value
            for value in forward.inputs
            if value.dtype.is_floating_point and (value.maximum or 0.0) > LARGE and not _is_bytes(value)
        ]
        if large and (call := _reader(forward.calls, large)) is not None:
            message = (
                "the values of this input are large, and the largest rule the gradient: standardise them"
            )
            evidence: dict[str, float | str] = {
                "minimum": large[0].minimum or 0.0,
                "maximum": large[0].maximum or 0.0,
                "layer": call.layer.name,
            }
            yield Suspicion(forward.place, message, evidence, is_note=True)


def _is_bytes(value: Value) -> bool:
    """Whether a float input has the shape of images and the range of bytes, a little noise aside.

    Images whose mean was subtracted reach as far below zero as above: their mean is no larger than the depth of the least.
    """
    if (
        value.minimum is None
        or value.maximum is None
        or value.std is None
        or not value.dtype.is_floating_point
    ):
        return False
    shaped = len(value.shape) in (4, 5) and (value.shape[1] in _CHANNELS or value.shape[-1] in _CHANNELS)
    lifted = value.minimum >= 0 or (value.minimum >= -NOISE and (value.mean or 0.0) > -value.minimum)
    noise = NOISE * (value.minimum < 0)
    ranged = lifted and LEAST_MAXIMUM < value.maximum <= LARGEST_MAXIMUM + noise
    return shaped and ranged and value.std > LEAST_SPREAD


def _reader(calls: list[LayerCall], images: list[Value]) -> LayerCall | None:
    """The layer that reads the images unchanged, as a view, or after `nn.Flatten`: other operations may scale them."""
    raw = {id(value) for value in images}
    for call in calls:
        if call.inputs and (id(call.inputs[0]) in raw or id(call.inputs[0].viewed) in raw):
            if isinstance(call.module, _LAYERS):
                return call
            if isinstance(call.module, nn.Flatten):
                raw |= {id(value) for value in call.outputs}
    return None
