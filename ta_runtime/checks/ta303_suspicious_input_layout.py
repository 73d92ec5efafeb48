"""TA303: images with their channels last (NHWC) enter a convolution that reads NCHW."""

from collections.abc import Iterator

from torch import nn

from ta_runtime.facts import Forward, LayerCall, Step, Suspicion

OF_STRUCTURE = True
LEAST_SIDE = 16
"""Below it a feature map may be as small as its channels are many."""
_CHANNELS = (1, 3, 4)


def check_step(step: Step) -> Iterator[Suspicion]:
    for forward in step.telling_forwards:
        call = next((call for call in forward.calls if _is_turned(call, forward)), None)
        if call is not None:
            message = (
                "the convolution reads a side of the image as channels: move the channels to dimension 1"
            )
            evidence = {"shape": str(tuple(call.inputs[0].shape)), "layer": call.layer.name}
            yield Suspicion(forward.place, message, evidence)


def _is_turned(call: LayerCall, forward: Forward) -> bool:
    module = call.module
    if not isinstance(module, nn.Conv2d) or not call.inputs or len(call.inputs[0].shape) != 4:
        return False
    given = call.inputs[0]
    _, height, width, last = given.shape
    if width == last != height:
        return False  # a small square map of many channels, as (8, 256, 4, 4)
    if call.raised and height != module.in_channels == last:
        return True
    # a convolution built for as many channels as an image has rows
    square = module.kernel_size[0] == module.kernel_size[1] > 1
    image = height == width >= LEAST_SIDE and last in _CHANNELS
    raw = any(given is value for value in forward.inputs)
    return raw and square and image and height == module.in_channels
