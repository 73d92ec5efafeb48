"""The layers of `torch.nn`: their parameters, and what they do to shapes. A layer is one row."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ta_lint.dryrun.machine.call import Call
from ta_lint.dryrun.machine.library import family, method, new_class, stub
from ta_lint.dryrun.stubs.torch.modules import MODULE, held
from ta_lint.dryrun.stubs.torch.tensors import PARAMETER, Facts, Shape, Tensor, computed
from ta_lint.dryrun.values import FALSE, NONE, Choice, Class, Known, Object, Value

Sizes = dict[str, Any]
"""The arguments of a layer that are constants; `...` where one is not known."""


@dataclass(frozen=True, slots=True)
class Layer:
    """A layer: the names of its arguments, its parameters with their shapes, and the shape of its output."""

    arguments: str
    parameters: Callable[[Sizes], dict[str, Shape]]
    output: Callable[[Shape, Sizes], Shape | None]


def _none(sizes: Sizes) -> dict[str, Shape]:
    return {}


def _same(shape: Shape, sizes: Sizes) -> Shape | None:
    return shape


def _unknown(shape: Shape, sizes: Sizes) -> Shape | None:
    return None


def _last(name: str) -> Callable[[Shape, Sizes], Shape | None]:
    def output(shape: Shape, sizes: Sizes) -> Shape | None:
        return (*shape[:-1], _size(sizes[name])) if shape else None

    return output


def _size(value: Any) -> int | None:
    return value if isinstance(value, int) else None


def _linear(sizes: Sizes) -> dict[str, Shape]:
    weight = {"weight": (_size(sizes["out_features"]), _size(sizes["in_features"]))}
    return weight | ({"bias": (_size(sizes["out_features"]),)} if sizes["bias"] is not False else {})


def _convolution(sizes: Sizes) -> dict[str, Shape]:
    weight: dict[str, Shape] = {"weight": (_size(sizes["out_channels"]), None)}
    return weight | ({"bias": (_size(sizes["out_channels"]),)} if sizes["bias"] is not False else {})


def _norm(first: str) -> Callable[[Sizes], dict[str, Shape]]:
    def parameters(sizes: Sizes) -> dict[str, Shape]:
        on = sizes.get("affine", sizes.get("elementwise_affine", True))
        size = (_size(sizes[first]),)
        return (
            {} if on is False else {"weight": size} | ({} if sizes.get("bias") is False else {"bias": size})
        )

    return parameters


def _channels(dimensions: int) -> Callable[[Shape, Sizes], Shape | None]:
    def output(shape: Shape, sizes: Sizes) -> Shape | None:
        if len(shape) not in (dimensions + 1, dimensions + 2):
            return None
        spatial = [_convolved(size, sizes) for size in shape[-dimensions:]]
        return (*shape[: len(shape) - dimensions - 1], _size(sizes["out_channels"]), *spatial)

    return output


def _convolved(size: Any, sizes: Sizes) -> int | None:
    kernel, stride, padding, dilation = (
        sizes[name] for name in ("kernel_size", "stride", "padding", "dilation")
    )
    if not all(isinstance(one, int) for one in (size, kernel, stride, padding, dilation)):
        return size if padding == "same" and isinstance(size, int) else None
    return int((size + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1)


def _flattened(shape: Shape, sizes: Sizes) -> Shape | None:
    start, end = sizes["start_dim"], sizes["end_dim"]
    if not isinstance(start, int) or end != -1 or start >= len(shape):
        return None
    product: int | None = 1
    for size in shape[start:]:
        product = product * size if isinstance(size, int) and product is not None else None
    return (*shape[:start], product)


_CONVOLUTION = "in_channels out_channels kernel_size stride=1 padding=0 dilation=1 groups=1 bias=True"
_TRANSPOSED = (
    "in_channels out_channels kernel_size stride=1 padding=0 output_padding=0 groups=1 bias=True dilation=1"
)
_BATCH_NORM = "num_features eps=0 momentum=0 affine=True track_running_stats=True"
LAYERS = {
    "Linear": Layer("in_features out_features bias=True", _linear, _last("out_features")),
    "Bilinear": Layer(
        "in1_features in2_features out_features bias=True",
        lambda sizes: _linear(sizes | {"in_features": ...}),
        _unknown,
    ),
    "Embedding": Layer(
        "num_embeddings embedding_dim padding_idx=None",
        lambda sizes: {"weight": (_size(sizes["num_embeddings"]), _size(sizes["embedding_dim"]))},
        lambda shape, sizes: (*shape, _size(sizes["embedding_dim"])),
    ),
    "EmbeddingBag": Layer("num_embeddings embedding_dim", lambda sizes: {"weight": (None, None)}, _unknown),
    **{f"Conv{n}d": Layer(_CONVOLUTION, _convolution, _channels(n)) for n in (1, 2, 3)},
    **{f"ConvTranspose{n}d": Layer(_TRANSPOSED, _convolution, _unknown) for n in (1, 2, 3)},
    **{f"BatchNorm{n}d": Layer(_BATCH_NORM, _norm("num_features"), _same) for n in (1, 2, 3)},
    **{
        f"InstanceNorm{n}d": Layer(
            _BATCH_NORM.replace("affine=True", "affine=False"), _norm("num_features"), _same
        )
        for n in (1, 2, 3)
    },
    "SyncBatchNorm": Layer(_BATCH_NORM, _norm("num_features"), _same),
    "LayerNorm": Layer(
        "normalized_shape eps=0 elementwise_affine=True bias=True", _norm("normalized_shape"), _same
    ),
    "RMSNorm": Layer(
        "normalized_shape eps=0 elementwise_affine=True bias=False", _norm("normalized_shape"), _same
    ),
    "GroupNorm": Layer("num_groups num_channels eps=0 affine=True", _norm("num_channels"), _same),
    "PReLU": Layer("num_parameters=1", lambda sizes: {"weight": (_size(sizes["num_parameters"]),)}, _same),
    "Flatten": Layer("start_dim=1 end_dim=-1", _none, _flattened),
    **{
        name: Layer("dim=None", _none, _same)
        for name in "ReLU ReLU6 LeakyReLU GELU SiLU ELU SELU CELU Tanh Sigmoid Softmax LogSoftmax LogSigmoid Softplus Softsign Hardswish "
        "Hardsigmoid Hardtanh Mish Dropout Dropout1d Dropout2d Dropout3d AlphaDropout Identity Softmin Softmax2d Tanhshrink Threshold".split()
    },
    **{
        name: Layer("output_size=None", _none, _unknown)
        for name in "MaxPool1d MaxPool2d MaxPool3d AvgPool1d AvgPool2d AvgPool3d AdaptiveAvgPool1d AdaptiveAvgPool2d AdaptiveAvgPool3d "
        "AdaptiveMaxPool1d AdaptiveMaxPool2d Upsample PixelShuffle PixelUnshuffle Unflatten ZeroPad2d ReflectionPad1d ReflectionPad2d "
        "ReplicationPad2d ConstantPad2d Fold Unfold GLU CosineSimilarity PairwiseDistance LocalResponseNorm MaxUnpool2d UpsamplingNearest2d "
        "UpsamplingBilinear2d ConstantPad1d LPPool2d ChannelShuffle".split()
    },
}
_SCALES = {
    "Softmax": "probabilities", "Softmin": "probabilities", "Sigmoid": "probabilities", "LogSoftmax": "log-probabilities",
    "LogSigmoid": "log-probabilities", "Linear": "logits", "Conv1d": "logits", "Conv2d": "logits",
}  # fmt: skip


def _arguments(layer: Layer, made: Call) -> Sizes:
    sizes: Sizes = {}
    for index, one in enumerate(layer.arguments.split(), 1):
        name, _, default = one.partition("=")
        known = {"True": True, "False": False, "None": None}.get(
            default, int(default) if default.lstrip("-").isdigit() else ...
        )
        sizes[name] = made.constant(index, name, known)
    return sizes


def own_parameters(layer: Object) -> list[Value]:
    """What a layer computes with: its parameters and buffers, and those that its weight is computed from."""
    inner = layer.fields.get("parametrizations")
    beyond = [one for _, one in held(inner).parameters] if isinstance(inner, Object) else []
    return [*(value for value in layer.fields.values() if isinstance(value, Tensor | Choice)), *beyond]


def _define(name: str, layer: Layer) -> Class:
    cls = new_class(f"torch.nn.{name}", bases=(MODULE,))

    def init(made: Call) -> Value:
        own = made.args[0]
        assert isinstance(own, Object)
        sizes = _arguments(layer, made)
        own.fields["sizes"] = sizes
        if name in ("Softmax", "LogSoftmax"):
            own.fields["dim"] = made.argument(1, "dim")
        for parameter, shape in layer.parameters(sizes).items():
            made.machine.state.write(
                own.fields, parameter, Tensor(Facts(requires=True, shape=shape), made.place, PARAMETER)
            )
        for argument, size in sizes.items():
            if argument not in own.fields and size is not ...:
                own.fields[argument] = Known(size)
        return NONE

    def forward(made: Call) -> Value:
        own = made.args[0]
        assert isinstance(own, Object)
        parameters = own_parameters(own)
        first = made.args[1] if len(made.args) > 1 else next(iter(made.kwargs.values()), None)
        shape = first.facts.shape if isinstance(first, Tensor) else None
        sizes = own.fields.get("sizes")
        output = layer.output(shape, sizes) if shape is not None and sizes is not None else None
        dim = own.fields.get("dim")
        scale = (_SCALES[name], dim.value if isinstance(dim, Known) else None) if name in _SCALES else None
        return computed(
            made.machine,
            [*parameters, *made.args[1:], *made.kwargs.values()],
            made.place,
            shape=output,
            scale=scale,
        )

    method(cls, "__init__")(init)
    method(cls, "forward")(forward)
    return cls


for _name, _layer in LAYERS.items():
    _define(_name, _layer)


def _any_layer(name: str) -> Value | None:
    """A layer that no row describes has parameters of its own."""
    last = name.rpartition(".")[2]
    if name.count(".") != 2 or not last[:1].isupper():
        return None
    cls = new_class(name, bases=(MODULE,))

    def init(made: Call) -> Value:
        own = made.args[0]
        assert isinstance(own, Object)
        own.fields["parameters of its own"] = Tensor(Facts(requires=True), made.place, PARAMETER)
        own.fields["incomplete"] = FALSE
        return NONE

    def forward(made: Call) -> Value:
        own = made.args[0]
        assert isinstance(own, Object)
        parameters = own_parameters(own)
        return computed(made.machine, [*parameters, *made.args[1:], *made.kwargs.values()], made.place)

    method(cls, "__init__")(init)
    method(cls, "forward")(forward)
    return cls


family("torch.nn.", _any_layer)

LOSSES = {
    "CrossEntropyLoss": "cross_entropy", "NLLLoss": "nll_loss", "MSELoss": "mse_loss", "L1Loss": "l1_loss", "SmoothL1Loss": "smooth_l1_loss",
    "HuberLoss": "huber_loss", "BCELoss": "binary_cross_entropy", "BCEWithLogitsLoss": "binary_cross_entropy_with_logits",
    "KLDivLoss": "kl_div", "CTCLoss": "ctc_loss", "HingeEmbeddingLoss": "hinge_embedding_loss", "MarginRankingLoss": "margin_ranking_loss",
    "CosineEmbeddingLoss": "cosine_embedding_loss", "TripletMarginLoss": "triplet_margin_loss", "PoissonNLLLoss": "poisson_nll_loss",
    "GaussianNLLLoss": "gaussian_nll_loss", "MultiLabelSoftMarginLoss": "multilabel_soft_margin_loss", "MultiMarginLoss": "multi_margin_loss",
    "SoftMarginLoss": "soft_margin_loss", "TripletMarginWithDistanceLoss": "triplet_margin_with_distance_loss",
    "MultiLabelMarginLoss": "multilabel_margin_loss",
}  # fmt: skip
"""The classes of losses, and the function that each calls."""


def _loss(function: str) -> Callable[[Call], Value]:
    def compute(made: Call) -> Value:
        reduced = made.constant(99, "reduction", "mean")
        result = computed(
            made.machine,
            made.values(),
            made.place,
            shape=() if reduced in ("mean", "sum", "batchmean") else None,
        )
        made.emit("loss", result, by=function, input=made.given(0, "input"), target=made.given(1, "target"))
        return result

    return compute


def _loss_class(name: str, function: str) -> None:
    cls = new_class(f"torch.nn.{name}", bases=(MODULE,))

    def init(made: Call) -> Value:
        own = made.args[0]
        assert isinstance(own, Object)
        own.fields["reduction"] = made.argument(99, "reduction", "mean")
        return NONE

    def forward(made: Call) -> Value:
        own = made.args[0]
        assert isinstance(own, Object)
        inner = Call(
            made.machine,
            made.node,
            made.args[1:],
            {**made.kwargs, "reduction": own.fields.get("reduction", NONE)},
            made.loose,
        )
        return _loss(function)(inner)

    method(cls, "__init__")(init)
    method(cls, "forward")(forward)


for _name, _function in LOSSES.items():
    _loss_class(_name, _function)
    stub(f"torch.nn.functional.{_function}")(_loss(_function))
