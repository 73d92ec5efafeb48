"""The layers of `torch.nn`: their parameters, and what they do to shapes. A layer is one row."""

import ast
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

from ta_lint.dryrun.machine.call import Call
from ta_lint.dryrun.machine.library import COMPUTED, define, family, method, new_class, tuple_of
from ta_lint.dryrun.machine.objects import attribute
from ta_lint.dryrun.stubs.torch import dtypes
from ta_lint.dryrun.stubs.torch.activations import activation_of, applied, scored
from ta_lint.dryrun.stubs.torch.conversions import without
from ta_lint.dryrun.stubs.torch.modules import MODULE
from ta_lint.dryrun.stubs.torch.norms import counted
from ta_lint.dryrun.stubs.torch.pairs import ROWS, ending
from ta_lint.dryrun.stubs.torch.rows import as_indices
from ta_lint.dryrun.stubs.torch.tensors import PARAMETER, Facts, Shape, Tensor, computed, tensors_in
from ta_lint.dryrun.values import FALSE, NONE, TRUE, Choice, Class, Known, Object, Sequence, Unknown, Value

Sizes = dict[str, Any]
"""The arguments of a layer that are constants; `...` where one is not known."""


Parameters = dict[str, Shape | None]
"""The parameters of a layer by their names, with their shapes."""


@dataclass(frozen=True, slots=True)
class Layer:
    """A layer: the names of its arguments, its parameters with their shapes, and the shape of its output."""

    arguments: str
    parameters: Callable[[Sizes], Parameters]
    output: Callable[[Shape, Sizes], Shape | None]


def _none(sizes: Sizes) -> Parameters:
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


def _at(value: Any, index: int) -> int | None:
    """The size in one dimension of what may be one number for all."""
    return _size(value[index] if isinstance(value, tuple) and index < len(value) else value)


def _linear(sizes: Sizes) -> Parameters:
    weight: Parameters = {"weight": (_size(sizes["out_features"]), _size(sizes["in_features"]))}
    return weight | ({"bias": (_size(sizes["out_features"]),)} if sizes["bias"] is not False else {})


def _bilinear(sizes: Sizes) -> Parameters:
    out, *inner = (_size(sizes[name]) for name in ("out_features", "in1_features", "in2_features"))
    weight: Parameters = {"weight": (out, *inner)}
    return weight | ({"bias": (out,)} if sizes["bias"] is not False else {})


def _convolution(dimensions: int, *, transposed: bool = False) -> Callable[[Sizes], Parameters]:
    def parameters(sizes: Sizes) -> Parameters:
        out, into, groups = (_size(sizes.get(name)) for name in ("out_channels", "in_channels", "groups"))
        first, second = (into, out) if transposed else (out, into)
        each = second // groups if second is not None and groups else None
        kernel = [_at(sizes["kernel_size"], index) for index in range(dimensions)]
        weight: Parameters = {"weight": (first, each, *kernel)}
        return weight | ({"bias": (out,)} if sizes["bias"] is not False else {})

    return parameters


def _norm(first: str) -> Callable[[Sizes], Parameters]:
    def parameters(sizes: Sizes) -> Parameters:
        on = sizes.get("affine", sizes.get("elementwise_affine", True))
        given = sizes.get(first, ...)
        size = (
            given
            if isinstance(given, tuple)
            else None
            if given is ... and first == "normalized_shape"
            else (_size(given),)
        )
        return (
            {} if on is False else {"weight": size} | ({} if sizes.get("bias") is False else {"bias": size})
        )

    return parameters


def _spatial(
    dimensions: int, each: Callable[[int, Sizes, int], int | None], channels: str = ""
) -> Callable[[Shape, Sizes], Shape | None]:
    """The last dimensions become what `each` makes of one, and the channels before them what an argument says."""

    def output(shape: Shape, sizes: Sizes) -> Shape | None:
        if len(shape) not in (dimensions + 1, dimensions + 2):
            return None
        front = shape[: len(shape) - dimensions]
        if channels:
            front = (*front[:-1], _size(sizes[channels]))
        spatial = [
            each(size, sizes, index) if isinstance(size, int) else None
            for index, size in enumerate(shape[-dimensions:])
        ]
        return (*front, *spatial)

    return output


def _convolved(size: int, sizes: Sizes, index: int) -> int | None:
    if sizes["padding"] == "same":
        return size
    kernel, stride, padding, dilation = (
        _at(sizes[name], index) for name in ("kernel_size", "stride", "padding", "dilation")
    )
    if kernel is None or not stride or padding is None or dilation is None:
        return None
    return (size + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1


def _transposed(size: int, sizes: Sizes, index: int) -> int | None:
    kernel, stride, padding, dilation, added = (
        _at(sizes[name], index) for name in ("kernel_size", "stride", "padding", "dilation", "output_padding")
    )
    if kernel is None or stride is None or padding is None or dilation is None or added is None:
        return None
    return (size - 1) * stride - 2 * padding + dilation * (kernel - 1) + added + 1


def _pooled(size: int, sizes: Sizes, index: int) -> int | None:
    """Of a window that moves by its own size, if nothing else is said."""
    stride = sizes["kernel_size"] if sizes["stride"] is None else sizes["stride"]
    rounds = sizes["ceil_mode"] is False
    return _convolved(size, {"dilation": 1} | sizes | {"stride": stride}, index) if rounds else None


def _adapted(size: int, sizes: Sizes, index: int) -> int | None:
    return _at(sizes["output_size"], index)


def _halved(shape: Shape, sizes: Sizes) -> Shape | None:
    dim = sizes["dim"]
    if dim != -1 or not shape or not isinstance(shape[-1], int):
        return None
    return (*shape[:-1], shape[-1] // 2)


def _flattened(shape: Shape, sizes: Sizes) -> Shape | None:
    start, end = sizes["start_dim"], sizes["end_dim"]
    if not isinstance(start, int) or end != -1 or start >= len(shape):
        return None
    product: int | None = 1
    for size in shape[start:]:
        product = product * size if isinstance(size, int) and product is not None else None
    return (*shape[:start], product)


_CONVOLUTION = "in_channels out_channels kernel_size stride=1 padding=0 dilation=1 groups=1 bias=True"
_AVERAGE_POOL = "kernel_size stride=None padding=0 ceil_mode=False"
_MAX_POOL = "kernel_size stride=None padding=0 dilation=1 return_indices=False ceil_mode=False"
_TRANSPOSED = (
    "in_channels out_channels kernel_size stride=1 padding=0 output_padding=0 groups=1 bias=True dilation=1"
)
_BATCH_NORM = "num_features eps=1e-05 momentum=0.1 affine=True track_running_stats=True"
DROPOUTS = frozenset("AlphaDropout Dropout Dropout1d Dropout2d Dropout3d FeatureAlphaDropout".split())
LAYERS = {
    "Linear": Layer("in_features out_features bias=True", _linear, _last("out_features")),
    "Bilinear": Layer(
        "in1_features in2_features out_features bias=True",
        _bilinear,
        _unknown,
    ),
    "Embedding": Layer(
        "num_embeddings embedding_dim padding_idx=None",
        lambda sizes: {"weight": (_size(sizes["num_embeddings"]), _size(sizes["embedding_dim"]))},
        lambda shape, sizes: (*shape, _size(sizes["embedding_dim"])),
    ),
    "EmbeddingBag": Layer("num_embeddings embedding_dim", lambda sizes: {"weight": (None, None)}, _unknown),
    **{
        f"Conv{n}d": Layer(_CONVOLUTION, _convolution(n), _spatial(n, _convolved, "out_channels"))
        for n in (1, 2, 3)
    },
    **{
        f"ConvTranspose{n}d": Layer(
            _TRANSPOSED, _convolution(n, transposed=True), _spatial(n, _transposed, "out_channels")
        )
        for n in (1, 2, 3)
    },
    **{f"BatchNorm{n}d": Layer(_BATCH_NORM, _norm("num_features"), _same) for n in (1, 2, 3)},
    **{
        f"InstanceNorm{n}d": Layer(_BATCH_NORM.replace("=True", "=False"), _norm("num_features"), _same)
        for n in (1, 2, 3)
    },
    "LazyLinear": Layer(
        "out_features bias=True", lambda sizes: _linear(sizes | {"in_features": ...}), _last("out_features")
    ),
    **{
        f"LazyConv{n}d": Layer(
            _CONVOLUTION.removeprefix("in_channels "),
            _convolution(n),
            _spatial(n, _convolved, "out_channels"),
        )
        for n in (1, 2, 3)
    },
    **{
        f"LazyConvTranspose{n}d": Layer(
            _TRANSPOSED.removeprefix("in_channels "),
            _convolution(n, transposed=True),
            _spatial(n, _transposed, "out_channels"),
        )
        for n in (1, 2, 3)
    },
    **{
        f"LazyBatchNorm{n}d": Layer(_BATCH_NORM.removeprefix("num_features "), _norm(""), _same)
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
    **{f"AdaptiveAvgPool{n}d": Layer("output_size", _none, _spatial(n, _adapted)) for n in (1, 2, 3)},
    **{
        f"AdaptiveMaxPool{n}d": Layer("output_size return_indices=False", _none, _spatial(n, _adapted))
        for n in (1, 2, 3)
    },
    **{f"AvgPool{n}d": Layer(_AVERAGE_POOL, _none, _spatial(n, _pooled)) for n in (1, 2, 3)},
    **{f"MaxPool{n}d": Layer(_MAX_POOL, _none, _spatial(n, _pooled)) for n in (1, 2, 3)},
    "GLU": Layer("dim=-1", _none, _halved),
    "Flatten": Layer("start_dim=1 end_dim=-1", _none, _flattened),
    **{name: Layer("p=0.5", _none, _same) for name in DROPOUTS},
    **{
        name: Layer("dim=None", _none, _same)
        for name in "CELU ELU GELU Hardshrink Hardsigmoid Hardswish "
        "Hardtanh Identity LeakyReLU LogSigmoid LogSoftmax Mish RReLU ReLU ReLU6 SELU SiLU Sigmoid Softmax Softmax2d Softmin Softplus "
        "Softshrink Softsign Tanh Tanhshrink Threshold".split()
    },
    **{
        name: Layer("output_size=None", _none, _unknown)
        for name in ""
        "ChannelShuffle CircularPad1d CircularPad2d CircularPad3d ConstantPad1d ConstantPad2d ConstantPad3d "
        "CosineSimilarity CrossMapLRN2d Fold FractionalMaxPool2d FractionalMaxPool3d LPPool1d LPPool2d LPPool3d LocalResponseNorm "
        "MaxUnpool1d MaxUnpool2d MaxUnpool3d PairwiseDistance PixelShuffle PixelUnshuffle ReflectionPad1d "
        "ReflectionPad2d ReflectionPad3d ReplicationPad1d ReplicationPad2d ReplicationPad3d Unflatten Unfold Upsample UpsamplingBilinear2d "
        "UpsamplingNearest2d ZeroPad1d ZeroPad2d ZeroPad3d".split()
    },
}
_SCALES = {
    "Softmax": "probabilities", "Softmin": "probabilities", "Sigmoid": "probabilities", "LogSoftmax": "log-probabilities",
    "LogSigmoid": "log-probabilities", "Linear": "logits", "Conv1d": "logits", "Conv2d": "logits",
}  # fmt: skip


_KEEPING = {"Flatten": "flatten", "Unflatten": "unflatten", **dict.fromkeys(DROPOUTS, "dropout")}
"""The functions of layers that keep the numbers, or some of them."""


def _arguments(layer: Layer, made: Call) -> Sizes:
    sizes: Sizes = {}
    for index, one in enumerate(layer.arguments.split(), 1):
        name, _, default = one.partition("=")
        known = ast.literal_eval(default) if default else ...
        sizes[name] = _plain(made.argument(index, name, known))
    return sizes


def _plain(value: Value) -> Any:
    """A constant, a tuple of constants, or `...`."""
    if isinstance(value, Sequence) and value.rest is None:
        parts = tuple(one.value if isinstance(one, Known) else None for one in value.items)
        return parts if all(isinstance(one, int) for one in parts) else ...
    return value.value if isinstance(value, Known) else ...


def _shaped(
    name: str, layer: Layer, sizes: Sizes, first: Value | None
) -> tuple[Shape | None, tuple[int, int | None] | None]:
    """The shape of what a layer gives, and how that ends where nobody knows it."""
    if isinstance(first, Tensor) and first.facts.shape is not None:
        return layer.output(first.facts.shape, sizes), None
    given = ending(first)
    return (None, None) if given is None else _of_batch(name, layer, sizes, given)


def _of_batch(
    name: str, layer: Layer, sizes: Sizes, given: tuple[int, int | None]
) -> tuple[Shape | None, tuple[int, int | None] | None]:
    """The shape of what a layer gives for a batch of samples of which only this is known, and how it ends."""
    least, _ = given
    if layer.output is _same:
        return None, given
    if name in ("Linear", "LazyLinear"):
        return None, (max(least, 2), _size(sizes["out_features"]))
    if name == "Embedding":
        return None, (least + 1, _size(sizes["embedding_dim"]))
    if name == "Flatten" and sizes["end_dim"] == -1 and sizes["start_dim"] in (0, 1):
        return (ROWS, None)[-sizes["start_dim"] - 1 :], None
    if "Conv" in name:
        return (ROWS, _size(sizes["out_channels"]), *[None] * int(name[-2])), None
    return None, None


def _names(layer: Layer, sizes: Sizes) -> Collection[str]:
    """The names of the parameters that a layer computes with, also of those that it was made without and may have got since."""
    return layer.parameters({name: size is False or size for name, size in sizes.items()})


def _used(made: Call, own: Object, names: Collection[str] | None = None) -> list[Value]:
    """The parameters that a layer computes with, by their names where these are known, and what it computes from others."""
    computed_ = [
        attribute(made.machine, own, name, made.node)
        for name, value in own.fields.items()
        if isinstance(value, Object) and value.cls is COMPUTED
    ]
    parts = {
        part
        for value in own.fields.values()
        if isinstance(value, Object) and value.cls is COMPUTED
        for part in value.fields["parts"].value
    }
    given = [
        value
        for name, value in own.fields.items()
        if isinstance(value, Tensor | Choice)
        and not (computed_ and name.startswith("parametrizations."))
        and (names is None or name in names or name in parts)
    ]
    return [*computed_, *given]


def _dtype(made: Call, name: str, parameters: list[Value]) -> str | None:
    """The dtype of what a layer gives: that of its parameters, which its input has to have."""
    if not dtypes.steady(made):
        return None
    given, own = ({one.facts.dtype for one in tensors_in(some)} for some in (made.args[1:], parameters))
    kinds = own if own and "Norm" not in name else own | (given or {None})  # a norm takes another dtype too
    return kinds.pop() if len(kinds) == 1 else None


_BASES = {
    "batchnorm._BatchNorm": "BatchNorm1d BatchNorm2d BatchNorm3d SyncBatchNorm",
    "conv._ConvNd": "Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d",
    "dropout._DropoutNd": "AlphaDropout Dropout Dropout1d Dropout2d Dropout3d FeatureAlphaDropout",
    "instancenorm._InstanceNorm": "InstanceNorm1d InstanceNorm2d InstanceNorm3d",
}
"""The classes below `torch.nn.modules` that layers have in common, which programs ask for by `isinstance`."""
_BASE_OF = {
    layer: base
    for name, layers in _BASES.items()
    for base in [new_class(f"torch.nn.modules.{name}", bases=(MODULE,))]
    for layer in layers.split()
}


def _take(made: Call, name: str, given: Value | None) -> None:
    """What some layers tell of their input: a softmax of its scores, a norm of the layer whose bias it subtracts."""
    if name == "LogSoftmax":
        scored(made, given)
    elif "BatchNorm" in name or "InstanceNorm" in name:
        before = activation_of(given)
        if before is not None and before.layer is not None:
            made.emit("normalised", before.layer, by=made.own())
        if name.startswith("BatchNorm"):
            counted(made, made.own(), given)


def _define(name: str, layer: Layer) -> Class:
    cls = new_class(f"torch.nn.{name}", bases=(_BASE_OF.get(name, MODULE),))

    def init(made: Call) -> Value:
        own = made.own()
        sizes = _arguments(layer, made)
        own.fields["sizes"] = sizes
        if "kernel_size" in sizes:
            made.emit("convolution", own, kind=name, sizes=sizes)
        if name in ("Softmax", "LogSoftmax"):
            own.fields["dim"] = made.argument(1, "dim")
        asked = made.kwargs.get("dtype", NONE)
        dtype = None if made.loose else dtypes.default(made.machine) if asked == NONE else dtypes.named(asked)
        for parameter, shape in layer.parameters(sizes).items():
            made.machine.state.write(
                own.fields,
                parameter,
                Tensor(Facts(requires=True, shape=shape, dtype=dtype), made.place, PARAMETER),
            )
        for argument, size in sizes.items():
            if argument not in own.fields and size is not ... and not isinstance(size, tuple):
                own.fields[argument] = Known(size)
        return NONE

    def forward(made: Call) -> Value:
        own = made.own()
        sizes = own.fields.get("sizes")
        parameters = _used(made, own, None if sizes is None else _names(layer, sizes))
        first = made.args[1] if len(made.args) > 1 else next(iter(made.kwargs.values()), None)
        output, ends = (None, None) if sizes is None else _shaped(name, layer, sizes, first)
        dim = own.fields.get("dim")
        scale = (_SCALES[name], dim.value if isinstance(dim, Known) else None) if name in _SCALES else None
        inputs = [*parameters, *made.args[1:], *made.kwargs.values()]
        if name == "Identity" and first is not None:
            return first
        _take(made, name, first)
        result = computed(
            made.machine,
            inputs,
            made.place,
            shape=output,
            ends=ends,
            scale=scale,
            dtype=_dtype(made, name, parameters),
            differs=False,
        )
        result = applied(made, name, _KEEPING.get(name, ""), first, result)
        if name in DROPOUTS:
            training = own.fields.get("training", TRUE)
            known = training.value if isinstance(training, Known) else ...
            return without(made, first, (sizes or {}).get("p", ...), known, result)
        places = (sizes or {}).get("return_indices", False)
        if places is not False:
            return (
                tuple_of([result, as_indices(made, result)])
                if places is True
                else Unknown("what a pool gives")
            )
        return result

    method(cls, "__init__")(init)
    method(cls, "forward")(forward)
    method(cls, "reset_parameters")(_reset)
    return cls


def _reset(made: Call) -> Value:
    made.emit("reset", made.args[0])
    return NONE


_CLASSES = {name: _define(name, layer) for name, layer in LAYERS.items()}
for _room in ("quantization", "ao.quantization"):
    define(_CLASSES["Identity"], f"torch.{_room}.QuantStub", f"torch.{_room}.DeQuantStub")
SYNCHRONISED = _CLASSES["SyncBatchNorm"]


def _any_layer(name: str) -> Value | None:
    """A layer that no row describes has parameters of its own."""
    last = name.rpartition(".")[2]
    if name.count(".") != 2 or not last[:1].isupper():
        return None
    cls = new_class(name, bases=(MODULE,))

    def init(made: Call) -> Value:
        own = made.own()
        own.fields["parameters of its own"] = Tensor(Facts(requires=True), made.place, PARAMETER)
        own.fields["incomplete"] = FALSE
        return NONE

    def forward(made: Call) -> Value:
        own = made.own()
        return computed(made.machine, [*_used(made, own), *made.args[1:], *made.kwargs.values()], made.place)

    method(cls, "__init__")(init)
    method(cls, "forward")(forward)
    method(cls, "reset_parameters")(_reset)
    return cls


family("torch.nn.", _any_layer, of_last_resort=True)
