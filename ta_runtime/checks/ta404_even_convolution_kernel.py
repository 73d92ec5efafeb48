"""TA404: an even kernel, padded equally on both sides, shifts its output and makes it one larger."""

import re
from collections import defaultdict
from collections.abc import Iterator

from torch import nn

from ta_runtime.facts import AskedModel, Model, Refutation, Said, Suspicion
from ta_runtime.probes.places import Place

_Convolution = nn.Conv1d | nn.Conv2d | nn.Conv3d
_CROPS = re.compile(r"same_?pad|crop|chomp|trim|cut", re.IGNORECASE)


def check_model(model: Model) -> Iterator[Said]:
    places: dict[Place, list[str]] = defaultdict(list)
    kinds: dict[Place, _Convolution] = {}
    for layer in model.own_layers:
        if not isinstance(layer.module, _Convolution):
            continue
        if _grows_by_one(layer.module) and not _is_cropped(layer.name, layer.module, model.module):
            places[layer.place].append(layer.name)
            kinds.setdefault(layer.place, layer.module)
        else:
            kernel, padding = str(layer.module.kernel_size), str(layer.module.padding)
            because = f"kernel {kernel} with padding {padding} does not enlarge the output"
            yield Refutation(layer.place, because, {"kernel": kernel, "padding": padding})
    for place, names in places.items():
        kind, sizes = type(kinds[place]).__name__, "x".join(map(str, kinds[place].kernel_size))
        message = f"this `{kind}` pads an even kernel equally, which shifts and enlarges the output: use an odd kernel"
        yield Suspicion(place, message, {"layers": len(names), "first": names[0], "kernel": sizes})


def check_static(asked: AskedModel) -> Iterator[Suspicion]:
    """Any other even kernel that moves one position at a time: its output lies between the positions of its input."""
    for layer in asked.model.own_layers:
        module = layer.module
        if isinstance(module, _Convolution) and not _grows_by_one(module) and _is_between(module):
            message = (
                "an even kernel has no middle, so its output is shifted by half a position: prefer an odd one"
            )
            kernel = "x".join(map(str, module.kernel_size))
            yield Suspicion(layer.place, message, {"kernel": kernel}, layer.name, is_note=True)


def _is_between(convolution: _Convolution) -> bool:
    """Whether an even kernel moves one position at a time. One that is padded by all its reach looks back on purpose."""
    kernels, strides, dilations = convolution.kernel_size, convolution.stride, convolution.dilation
    padding = (0,) * len(kernels) if isinstance(convolution.padding, str) else convolution.padding
    return any(
        kernel % 2 == 0 and stride == 1 and pad < dilation * (kernel - 1)
        for kernel, stride, pad, dilation in zip(kernels, strides, padding, dilations, strict=True)
    )


def _is_cropped(name: str, convolution: _Convolution, model: nn.Module) -> bool:
    """Whether the layer behind a convolution cuts its surplus off, by the name of its class: `SamePadLayer`, `Chomp1d`."""
    siblings = list(model.get_submodule(name.rpartition(".")[0]).children())
    behind = siblings[siblings.index(convolution) + 1 :][:1] if name else []
    return any(_CROPS.search(type(layer).__name__) for layer in behind)


def _grows_by_one(convolution: _Convolution) -> bool:
    """Whether its padding was to keep the size, as `kernel_size // 2` does for odd kernels, and makes it one larger.

    A padding of the whole reach, `dilation * (kernel_size - 1)`, is for causal convolutions, which cut the end off.
    """
    if isinstance(convolution.padding, str):
        return False
    axes = zip(
        convolution.kernel_size, convolution.stride, convolution.padding, convolution.dilation, strict=True
    )
    return any(
        kernel % 2 == 0
        and stride == 1
        and 2 * padding == dilation * (kernel - 1) + 1
        and padding < dilation * (kernel - 1)
        for kernel, stride, padding, dilation in axes
    )
