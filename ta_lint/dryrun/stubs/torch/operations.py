"""What operations on tensors do: to the graph, the shape and the meaning of the numbers. Most of it is a table."""

from dataclasses import replace
from typing import Any

from ta_lint.dryrun.machine.call import Call
from ta_lint.dryrun.machine.library import attribute_of, family, method, new_class, stub, tuple_of
from ta_lint.dryrun.stubs.torch.tensors import (
    FACTS,
    NOTHING,
    TENSOR,
    Cut,
    Facts,
    Tensor,
    computed,
    cut,
    roots_of,
    tensors_in,
)
from ta_lint.dryrun.values import NONE, Known, Native, Object, Sequence, Unknown, Value, joined

# One row an effect: the functions of `torch`, `torch.nn.functional` and methods of tensors that have it.
DETACHED = "detach detach_ data"
READ = "item tolist numpy __float__ __int__ __bool__"
STEPS = """
    argmax argmin argsort argwhere bincount bitwise_and bitwise_or bitwise_not bool byte char eq equal ge gt histc
    int isclose isfinite isin isinf isnan isneginf isposinf le logical_and logical_not logical_or logical_xor long lt multinomial ne nonzero
    one_hot randint_like searchsorted bucketize short signbit count_nonzero any all allclose
    __eq__ __ne__ __lt__ __le__ __gt__ __ge__ __and__ __or__ __invert__ __xor__ is_nonzero
"""
ROUNDED = "ceil floor round trunc fix sign sgn bernoulli poisson heaviside floor_divide unique unique_consecutive __floordiv__ __rfloordiv__"
"""Autograd goes through these, with a gradient of zero."""
PAIRS = "max min topk sort kthvalue mode median nanmedian cummax cummin aminmax"
SAME = """
    clone contiguous to cuda cpu float double half bfloat16 type type_as pin_memory requires_grad_ dropout dropout_ alpha_dropout relu_ clamp
    clip neg __neg__ __pos__ abs __abs__ view_as expand_as reshape_as
"""
FRESH = """
    zeros ones rand randn randint randperm empty full arange linspace logspace eye normal tensor as_tensor from_numpy zeros_like ones_like
    rand_like randn_like empty_like full_like new_zeros new_ones new_full new_empty new_tensor scalar_tensor asarray tril_indices
    triu_indices empty_strided
"""
IN_PLACE = """
    add_ sub_ mul_ div_ copy_ zero_ fill_ clamp_ clip_ lerp_ normal_ uniform_ addcmul_ addcdiv_ masked_fill_ scatter_ scatter_add_ index_add_
    index_copy_ index_fill_ exp_ log_ sqrt_ pow_ neg_ round_ floor_ sigmoid_ tanh_ softmax_ relu_ bernoulli_ random_ exponential_ erfinv_ clamp_min_
    clamp_max_ __iadd__ __isub__ __imul__ __itruediv__ __ipow__ trunc_ squeeze_ unsqueeze_ set_ resize_ map_ add__ abs_ nan_to_num_
"""
OVERWRITES = frozenset("copy_ zero_ fill_ normal_ uniform_ bernoulli_ random_ exponential_ set_".split())
NUMBERS = "size dim numel nelement stride ndimension element_size get_device is_floating_point is_contiguous data_ptr storage_offset is_complex"
QUIET = "register_hook retain_grad register_post_accumulate_grad_hook share_memory_ record_stream"
SCALES = {
    "softmax": "probabilities", "softmin": "probabilities", "sigmoid": "probabilities", "gumbel_softmax": "probabilities",
    "log_softmax": "log-probabilities", "logsigmoid": "log-probabilities",
}  # fmt: skip
REDUCTIONS = frozenset("mean sum prod norm std var logsumexp nanmean nansum amax amin".split())


def _operand(made: Call, index: int = 0) -> Tensor | None:
    value = made.args[index] if index < len(made.args) else made.kwargs.get("input", made.kwargs.get("self"))
    return (
        value if isinstance(value, Tensor) else next(tensors_in([value]), None) if value is not None else None
    )


def _named(names: str, effect: Any) -> None:
    """The effect of methods of tensors, and of the functions of `torch` with the same names."""
    for name in names.split():
        TENSOR.fields[name] = Native(f"torch.Tensor.{name}", effect)
        if not name.startswith("__") and name not in ("data",):
            stub(f"torch.{name}", f"torch.nn.functional.{name}")(effect)


def any_operation(made: Call) -> Value:
    """An operation of which nothing more is known: autograd goes through it."""
    result = computed(made.machine, made.values(), made.place)
    name = made.name
    if name in SCALES:
        dim = made.constant(1, "dim", None)
        first = _operand(made)
        return Tensor(
            replace(
                result.facts,
                scale=(SCALES[name], dim),
                shape=first.facts.shape if first is not None else None,
            ),
            result.made,
        )
    if name in REDUCTIONS and len(made.args) == 1 and "dim" not in made.kwargs:
        return Tensor(replace(result.facts, shape=()), result.made)
    return result


def detached(made: Call) -> Value:
    """The same numbers without a graph."""
    own = _operand(made)
    return Unknown("a detached value") if own is None else cut(own, "detached", made.place)


def read(made: Call) -> Value:
    """Numbers that leave the tensor."""
    own = _operand(made)
    if own is not None:
        made.emit("read", own)
    name = made.name
    return Unknown(
        "numbers of a tensor", "float" if name in ("item", "float") else "int" if name == "int" else "numbers"
    )


def in_steps(made: Call) -> Value:
    """Numbers in steps: indices, booleans, whole numbers, which have no gradient."""
    every = computed(made.machine, made.values(), made.place)
    return cut(every, "in steps", made.place, scale=("indices", None), shape=None)


def rounded(made: Call) -> Value:
    """Numbers in steps that autograd goes through all the same: no gradient but zero comes back."""
    every = computed(made.machine, made.values(), made.place)
    lost = cut(every, "in steps", made.place).facts.cuts
    return Tensor(replace(every.facts, cuts=lost), made.place)


def pair(made: Call) -> Value:
    """Values with their indices; one tensor where no dimension is given, or two tensors are compared."""
    own = computed(made.machine, made.values(), made.place)
    name = made.name
    other = made.given(1, "other")
    if (
        name in ("max", "min", "median")
        and (other is None or isinstance(other, Tensor))
        and "dim" not in made.kwargs
    ):
        return Tensor(replace(own.facts, shape=() if other is None else None), own.made)
    return Object(
        PAIR,
        made.place,
        {"values": own, "indices": cut(own, "in steps", made.place, scale=("indices", None), shape=None)},
    )


PAIR = new_class("torch.return_types")


@method(PAIR, "__iter__")
def _both(made: Call) -> Value:
    own = made.args[0]
    assert isinstance(own, Object)
    return tuple_of(own.fields.values())


@method(PAIR, "__getitem__")
def _one_of_both(made: Call) -> Value:
    own, key = made.args[0], made.constant(1, "key")
    assert isinstance(own, Object)
    parts = list(own.fields.values())
    return parts[key] if isinstance(key, int) and -2 <= key < 2 else joined(parts)


def same(made: Call) -> Value:
    """The same tensor in another dtype, on another device, or negated: shape and meaning stay."""
    own = _operand(made)
    if own is None:
        return Unknown("a tensor") if not made.args else Unknown(getattr(made.args[0], "why", ""))
    result = computed(made.machine, [own], made.place)
    return Tensor(
        replace(result.facts, shape=own.facts.shape, scale=own.facts.scale, dtype=own.facts.dtype), made.place
    )


def fresh(made: Call) -> Value:
    """A new tensor, with a gradient if that is asked for."""
    requires = made.kwargs.get("requires_grad")
    wants = bool(requires.value) if isinstance(requires, Known) else None if requires is not None else False
    cuts: tuple[Cut, ...] = ()
    if made.name in ("tensor", "as_tensor", "new_tensor"):
        roots = frozenset().union(*(roots_of(one) for one in tensors_in(made.args))) or NOTHING
        cuts = (Cut("detached", made.place, roots),) if roots else ()
    return Tensor(Facts(requires=wants, shape=_shape(made), cuts=cuts), made.place)


def _shape(made: Call) -> tuple[Any, ...] | None:
    name = made.name
    if name.endswith("_like"):
        own = _operand(made)
        return own.facts.shape if own is not None else None
    if name not in ("zeros", "ones", "rand", "randn", "empty", "full", "normal"):
        return None
    sizes: list[Value] = list(made.args)
    if len(sizes) >= 1 and isinstance(sizes[0], Sequence):
        if sizes[0].rest is not None:
            return None
        sizes = list(sizes[0].items)
    elif name in ("full", "normal"):
        return None
    return tuple(
        one.value if isinstance(one, Known) and isinstance(one.value, int) else None for one in sizes
    )


def in_place(made: Call) -> Value:
    """The tensor itself changes: it then leads to what is put into it."""
    own = made.args[0] if made.args else None
    if not isinstance(own, Tensor):
        return own if own is not None else NONE
    name = made.name
    made.emit("write", own, by=name)
    recording = made.machine.modes["recording"]
    if recording is False or own.takes_gradient:
        return own
    inputs = list(made.args[1:]) if name in OVERWRITES else list(made.values())
    new = computed(made.machine, inputs, made.place)
    facts = replace(new.facts, shape=own.facts.shape, source=own.facts.source)
    made.machine.state.write(own.fields, FACTS, facts)
    return own


def number(made: Call) -> Value:
    """A number about the tensor."""
    own = _operand(made)
    name = made.name
    if own is not None and own.facts.shape is not None:
        shape = own.facts.shape
        if name in ("dim", "ndimension"):
            return Known(len(shape))
        if name == "size":
            index = made.constant(1, "dim", None)
            if index is None:
                return tuple_of(size_of(one) for one in shape)
            if isinstance(index, int) and -len(shape) <= index < len(shape):
                return size_of(shape[index])
    return (
        tuple_of((), Unknown("a size", "int"))
        if name == "size" and len(made.args) == 1
        else Unknown("a number", "int")
    )


def size_of(size: Any) -> Value:
    """A size as a value."""
    return Known(size) if isinstance(size, int) else Unknown("a size", "int")


def quiet(made: Call) -> Value:
    """Nothing that this analysis is about."""
    return NONE


for _names, _effect in (
    (DETACHED, detached), (READ, read), (STEPS, in_steps), (ROUNDED, rounded), (PAIRS, pair), (SAME, same), (FRESH, fresh), (IN_PLACE, in_place),
    (NUMBERS, number), (QUIET, quiet),
):  # fmt: skip
    _named(_names, _effect)
for _name in "add sub mul truediv pow matmul mod radd rsub rmul rtruediv rpow rmatmul rmod".split():
    TENSOR.fields[f"__{_name}__"] = Native(f"torch.Tensor.__{_name}__", any_operation)


def _function(name: str) -> Value | None:
    """A function of torch that no row names: an operation, if its name is one of a function."""
    last = name.rpartition(".")[2]
    return Native(name, any_operation) if last[:1].islower() and name.count(".") <= 3 else None


for _prefix in ("torch.nn.functional.", "torch.linalg.", "torch.special.", "torch.fft.", "torch.sparse."):
    family(_prefix, _function)
_NOT_OPERATIONS = frozenset("nn optim utils cuda amp autograd distributed distributions jit backends hub onnx compile save load device dtype no_grad inference_mode manual_seed version fx func library overrides testing profiler multiprocessing accelerator mps cpu xpu quantization ao export _C _dynamo finfo iinfo Generator Size sparse nested masked func linalg fft special signal set_grad_enabled is_tensor".split())  # fmt: skip


def _of_torch(name: str) -> Value | None:
    parts = name.split(".")
    if len(parts) != 2 or parts[1] in _NOT_OPERATIONS or not parts[1][:1].islower():
        return None
    if parts[1] in _DTYPES:
        return None
    return Native(name, any_operation)


_DTYPES = frozenset("float float16 float32 float64 half double bfloat16 int int8 int16 int32 int64 long short uint8 bool complex64 complex128 strided sparse_coo channels_last contiguous_format preserve_format".split())  # fmt: skip
family("torch.", _of_torch)


# -- rows of different lengths -----------------------------------------------------------------------

PACKED = new_class("torch.nn.utils.rnn.PackedSequence", bases=(TENSOR,))


@stub("torch.nn.utils.rnn.pack_padded_sequence", "torch.nn.utils.rnn.pack_sequence")
def _packed(made: Call) -> Value:
    return Tensor(computed(made.machine, made.args[:1], made.place).facts, made.place, PACKED)


@attribute_of(PACKED, "data")
def _data_of_packed(made: Call) -> Value:
    return computed(made.machine, made.args, made.place)


@stub("torch.nn.utils.rnn.pad_packed_sequence")
def _padded(made: Call) -> Value:
    return tuple_of(
        [computed(made.machine, made.args[:1], made.place), Tensor(Facts(dtype="int64"), made.place)]
    )


@stub("torch.nn.utils.rnn.pad_sequence", "torch.nn.utils.rnn.unpad_sequence")
def _of_rows(made: Call) -> Value:
    return computed(made.machine, made.args[:1], made.place)


GENERATOR = new_class("torch.Generator", "torch._C.Generator")


@method(GENERATOR, "__init__", "manual_seed", "seed", "set_state", "initial_seed", "get_state")
def _seeded(made: Call) -> Value:
    return made.args[0]


@stub("torch.device")
def _device(made: Call) -> Value:
    return Unknown("a device", "device")
