"""The rows of layers say what torch's layers are: their parameters with shapes, and the shape of what they give."""

from pathlib import Path
from typing import Any

import pytest
import torch

from ta_lint.dryrun.dryrun import dry_run
from ta_lint.dryrun.machine.library import find
from ta_lint.dryrun.stubs.torch.layers import LAYERS
from ta_lint.dryrun.stubs.torch.losses import LOSSES
from ta_lint.dryrun.stubs.torch.tensors import PARAMETER, Tensor
from ta_lint.dryrun.values import Class, Native, Value

# What the layers are made with, and the shape of what they get; `(2, 3)` if a layer is not here, and no arguments.
MADE = """
    3, 4 | (2, 3): Linear
    3, 4, bias=False | (5, 2, 3): Linear
    3, 3, 4 | (2, 3) (2, 3): Bilinear
    5, 4 | i(2, 3): Embedding EmbeddingBag
    3, 4, 2 | (2, 3, 5): Conv1d ConvTranspose1d
    3, 4, 3, 2, 1 | (2, 3, 9): Conv1d ConvTranspose1d
    3, 4, 2, bias=False | (2, 3, 5, 5): Conv2d ConvTranspose2d
    3, 4, 3, padding="same" | (2, 3, 5, 5): Conv2d
    4, 4, 3, groups=2, padding=1, dilation=2 | (2, 4, 9, 9): Conv2d
    3, 4, (3, 1) | (2, 3, 5, 5): Conv2d
    3, 4, 2 | (2, 3, 5, 5, 5): Conv3d ConvTranspose3d
    4 | (2, 3): LazyLinear
    4, 2 | (2, 3, 5): LazyConv1d LazyConvTranspose1d
    4, 2 | (2, 3, 5, 5): LazyConv2d LazyConvTranspose2d
    4, 2 | (2, 3, 5, 5, 5): LazyConv3d LazyConvTranspose3d
    | (2, 3, 4, 4): LazyBatchNorm2d
    | (2, 3, 4, 4, 4): LazyBatchNorm3d
    3 | (2, 3): BatchNorm1d PReLU
    3, affine=False | (2, 3): BatchNorm1d
    3 | (2, 3, 4, 4): BatchNorm2d InstanceNorm2d
    3, affine=True | (2, 3, 4, 4): InstanceNorm2d
    3 | (2, 3, 4): InstanceNorm1d
    3 | (2, 3, 4, 4, 4): BatchNorm3d InstanceNorm3d
    3 | - : SyncBatchNorm
    3 | (2, 3): LayerNorm RMSNorm
    (4, 3) | (2, 4, 3): LayerNorm RMSNorm
    3, bias=False | (2, 3): LayerNorm
    3, elementwise_affine=False | (2, 3): LayerNorm RMSNorm
    3, 6 | (2, 6, 4): GroupNorm
    | (2, 3, 4, 5): Flatten Softmax2d
    2 | (2, 3, 4, 5): Flatten
    1, 2 | (2, 3, 4, 5): Flatten
    1 | (2, 3): Softmax LogSoftmax Softmin
    0.1, 2.0 | (2, 3): Threshold
    0.5 | (2, 3, 4): Dropout1d
    0.5 | (2, 3, 4, 4): Dropout2d FeatureAlphaDropout
    0.5 | (2, 3, 4, 4, 4): Dropout3d
    2 | (2, 4, 8): AdaptiveAvgPool1d AdaptiveMaxPool1d AvgPool1d MaxPool1d
    2 | (2, 4, 8, 8): AdaptiveAvgPool2d AdaptiveMaxPool2d AvgPool2d MaxPool2d ChannelShuffle PixelShuffle PixelUnshuffle LocalResponseNorm
    2 | (2, 4, 8, 8): CrossMapLRN2d ZeroPad2d ReflectionPad2d ReplicationPad2d CircularPad2d Unfold UpsamplingNearest2d UpsamplingBilinear2d
    None, 2 | (2, 4, 8, 8): Upsample
    2 | (2, 4, 8, 8, 8): AdaptiveAvgPool3d AdaptiveMaxPool3d AvgPool3d MaxPool3d CircularPad3d ReflectionPad3d ReplicationPad3d ZeroPad3d
    2 | (2, 4, 8): CircularPad1d ReflectionPad1d ReplicationPad1d ZeroPad1d
    1, 0.5 | (2, 4, 8): ConstantPad1d
    1, 0.5 | (2, 4, 8, 8): ConstantPad2d
    1, 0.5 | (2, 4, 8, 8, 8): ConstantPad3d
    (2, 1) | (2, 4, 8, 8): AdaptiveAvgPool2d AdaptiveMaxPool2d
    (None, 2) | (2, 4, 8, 8): AdaptiveAvgPool2d
    3, 2, 1 | (2, 4, 7, 8): AvgPool2d MaxPool2d
    (3, 2), (2, 1) | (2, 4, 7, 8): AvgPool2d MaxPool2d
    3, ceil_mode=True | (2, 4, 7, 8): AvgPool2d MaxPool2d
    3, 1, 0, 2 | (4, 7, 8): MaxPool2d
    2, return_indices=False | (4, 7): MaxPool1d
    3, 4, (3, 2), (2, 1), (1, 0), bias=False | (2, 3, 5, 7): Conv2d ConvTranspose2d
    3, 4, 3, stride=2, padding=1, output_padding=1 | (2, 3, 5, 7): ConvTranspose2d
    6, 4, 3, 1, 0, 0, 2 | (2, 6, 5, 7): ConvTranspose2d
    2, 2 | (2, 4, 8): LPPool1d
    2, 2 | (2, 4, 8, 8): LPPool2d
    2, 2 | (2, 4, 8, 8, 8): LPPool3d
    2, 2 | (2, 4, 8, 8): FractionalMaxPool2d
    2, 2 | (2, 4, 8, 8, 8): FractionalMaxPool3d
    2 | - : MaxUnpool1d MaxUnpool2d MaxUnpool3d
    (4, 4), (2, 2) | (1, 12, 9): Fold
    1, (2, 2) | (2, 4): Unflatten
    | (2, 4): GLU
    1 | (2, 4, 3): GLU
    | (2, 3) (2, 3): CosineSimilarity PairwiseDistance
"""


def made() -> list[tuple[str, str, str]]:
    """The name of each layer, its arguments and the shapes of its inputs."""
    found = []
    for line in MADE.strip().splitlines():
        given, _, names = line.rpartition(":")
        arguments, _, shapes = given.partition("|")
        found += [(name, arguments.strip(), shapes.strip()) for name in names.split()]
    listed = {name for name, _, _ in found}
    return found + [(name, "", "(2, 3)") for name in sorted(LAYERS) if name not in listed]


def inputs_of(shapes: str) -> list[str]:
    """The expressions of inputs with these shapes; after `i` of whole numbers."""
    parts = [] if shapes == "-" else shapes.replace(") ", ")|").split("|")
    return [
        f"torch.zeros({one[1:]}).long()" if one.startswith("i") else f"torch.rand({one})" for one in parts
    ]


@pytest.mark.parametrize(("name", "arguments", "shapes"), made())
def test_a_layer_is_what_its_row_says(tmp_path: Path, name: str, arguments: str, shapes: str) -> None:
    inputs = inputs_of(shapes)
    code = f"import torch\nlayer = torch.nn.{name}({arguments})\n"
    code += f"result = layer({', '.join(inputs)})\n" if inputs else ""
    script = tmp_path / "layer.py"
    script.write_text(code)
    real: dict[str, Any] = {}
    exec(code, real)  # noqa: S102 - it is written above
    machine = dry_run(str(script))
    said = machine.program.module(machine, str(script), "__main__").fields
    parameters = {
        key: value.facts.shape
        for key, value in said["layer"].fields.items()
        if isinstance(value, Tensor) and value.cls is PARAMETER
    }
    wanted = {key: tuple(value.shape) for key, value in real["layer"].named_parameters()}
    assert parameters.keys() == wanted.keys()
    for key, shape in parameters.items():
        assert shape is None or fits(shape, wanted[key]), (key, shape, wanted[key])
    if inputs:
        result, facts = real["result"], said["result"].facts
        assert facts.shape is None or fits(facts.shape, tuple(result.shape)), (facts.shape, result.shape)
        assert bool(facts.roots) == result.requires_grad


def test_a_pool_that_gives_the_places_gives_two_tensors(tmp_path: Path) -> None:
    script = tmp_path / "layer.py"
    script.write_text(
        "import torch\nvalues, places = torch.nn.MaxPool1d(2, return_indices=True)(torch.rand(2, 3, 4))\n"
    )
    machine = dry_run(str(script))
    said = machine.program.module(machine, str(script), "__main__").fields
    assert said["values"].facts.shape == (2, 3, 2)
    assert said["places"].facts.dtype == "int64"


def fits(said: tuple[Any, ...], real: tuple[int, ...]) -> bool:
    """Whether a shape claims no size that is not so."""
    return len(said) == len(real) and all(
        one is None or one == size for one, size in zip(said, real, strict=True)
    )


GUESSED = {"AdaptiveLogSoftmaxWithLoss", "Container", "LinearCrossEntropyLoss", "NLLLoss2d", "RNNCellBase"}


def test_each_layer_of_torch_is_described() -> None:
    every = [
        name
        for name, one in vars(torch.nn).items()
        if isinstance(one, type) and issubclass(one, torch.nn.Module)
    ]
    guessed = {name for name in every if not name.startswith("Lazy") and is_guessed(find(f"torch.nn.{name}"))}
    assert guessed <= GUESSED
    assert set(LOSSES) <= set(every)


def is_guessed(found: Value) -> bool:
    """Whether a layer has parameters of which nobody knows."""
    init = found.find("__init__") if isinstance(found, Class) else None
    return isinstance(init, Native) and "_any_layer" in init.run.__qualname__
