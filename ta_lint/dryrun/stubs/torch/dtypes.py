"""The dtype of what an operation gives."""

from collections.abc import Callable, Iterable

from ta_lint.dryrun.machine.call import Call
from ta_lint.dryrun.machine.library import stub
from ta_lint.dryrun.machine.machine import Machine
from ta_lint.dryrun.stubs.torch.tensors import Tensor, tensors_in
from ta_lint.dryrun.values import NONE, External, Known, Native, Object, Sequence, Unknown, Value, options

Dtype = Callable[[Call], str | None]
"""The dtype of the result of a call, None if it is not known."""

NAMES = {
    **dict.fromkeys(
        "bfloat16 bool complex128 complex32 complex64 float16 float32 float64 int16 int32 int64 int8 uint8".split(), ""
    ),
    "cdouble": "complex128", "cfloat": "complex64", "double": "float64", "float": "float32", "half": "float16", "int": "int32",
    "long": "int64", "short": "int16",
}  # fmt: skip
"""The dtypes of torch, and what other names mean."""
_FLOATS = frozenset({"float16", "bfloat16", "float32", "float64"})
TYPES = {
    "BFloat16Tensor": "bfloat16", "BoolTensor": "bool", "ByteTensor": "uint8", "CharTensor": "int8", "DoubleTensor": "float64",
    "FloatTensor": "float32", "HalfTensor": "float16", "IntTensor": "int32", "LongTensor": "int64", "ShortTensor": "int16",
}  # fmt: skip
"""The types of tensors by which old code names dtypes."""


NUMPY_FLOAT = "numpy.float64"
"""The type of a number that numpy computes, of which a tensor has another dtype than of Python's."""


def named(value: Value | None) -> str | None:
    """The dtype that a value is, such as `torch.float32`, `float`, `"bfloat16"` or `"torch.LongTensor"`."""
    name = getattr(value, "name", getattr(value, "value", None))
    if not isinstance(name, str):
        return None
    last = name.rpartition(".")[2]
    if isinstance(value, External | Known | Native) and name.startswith("torch."):
        return TYPES.get(last) or (NAMES[last] or last if last in NAMES else None)
    own = NAMES.get(name) or name
    return {"bool": "bool", "float": "float64", "int": "int64"}.get(name, own if own in NAMES else None)


def has_gradient(dtype: str | None) -> bool | None:
    """Whether a tensor of this dtype may have a graph, None if nobody knows."""
    return None if dtype is None else dtype in _FLOATS or dtype.startswith("complex")


def default(machine: Machine) -> str | None:
    """The dtype of new tensors of floating numbers."""
    return machine.modes.get("dtype", "float32")  # type: ignore[no-any-return]


@stub("torch.set_default_dtype", "torch.set_default_tensor_type")
def _set_default(made: Call) -> Value:
    made.machine.state.write(made.machine.modes, "dtype", named(made.argument(0, "d")))
    return NONE


def asked(made: Call, before: str | None) -> str | None:
    """The dtype that `to` and `type` ask for, or that from before."""
    for name, value in [*((None, one) for one in made.args[1:]), *made.kwargs.items()]:
        if isinstance(value, Tensor):
            return value.facts.dtype
        if (found := named(value)) is not None:
            return found
        elsewhere = all(
            isinstance(one, Known)
            or (isinstance(one, Object) and one.cls.name == "torch.device")
            or (isinstance(one, Unknown) and one.type in ("device", "str"))
            for one in options(value)
        )
        if name not in ("device", "non_blocking", "copy", "memory_format") and not elsewhere:
            before = None
    return None if made.loose else before


def unknown(made: Call) -> str | None:
    """Nobody knows."""
    return None


def steady(made: Call) -> bool:
    """Whether nothing but its inputs decides in which precision an operation computes."""
    return made.machine.mode("autocast") is False


def product(made: Call) -> str | None:
    """That of the tensors, if they all have one. Autocast computes it in another precision."""
    return same(made) if steady(made) else None


def of_first(made: Call) -> str | None:
    """That of the first tensor. Autocast computes it in another precision."""
    return first(made) if steady(made) else None


def of_weight(made: Call) -> str | None:
    """That of the second argument."""
    weight = made.given(1, "weight")
    return weight.facts.dtype if isinstance(weight, Tensor) and steady(made) else None


def same(made: Call) -> str | None:
    """That of the tensors, if they all have one."""
    return _common(made, tensors_in(made.values()))


def first(made: Call) -> str | None:
    """That of the first tensor."""
    tensor = next(tensors_in(made.values()), None)
    return None if tensor is None else tensor.facts.dtype


def arithmetic(made: Call) -> str | None:
    """That of the tensors, if no number makes floating numbers of integers."""
    dtype = same(made)
    floating = any(isinstance(one, Known) and isinstance(one.value, float) for one in made.values())
    return dtype if has_gradient(dtype) or (dtype is not None and not floating and _all_known(made)) else None


def floating(made: Call) -> str | None:
    """That of the tensors, if they have floating numbers; of integers it makes some. Autocast computes some in another precision."""
    dtype = same(made)
    return dtype if dtype in ("float32", "float64") else None


def int64(made: Call) -> str | None:
    """Indices and counts."""
    return "int64"


def boolean(made: Call) -> str | None:
    """Verdicts."""
    return "bool"


def summed(made: Call) -> str | None:
    """That of a sum: integers and booleans become `int64`."""
    if made.given(99, "dtype") is not None:
        return named(made.kwargs["dtype"])
    dtype = same(made)
    return dtype if dtype is None or has_gradient(dtype) else "int64"


def _common(made: Call, tensors: Iterable[Tensor]) -> str | None:
    found = {one.facts.dtype for one in tensors}
    return found.pop() if len(found) == 1 and not any(_may_be_tensor(one) for one in made.values()) else None


def _may_be_tensor(value: Value) -> bool:
    return (isinstance(value, Unknown) and value.type is None) or (
        isinstance(value, Sequence) and value.rest is not None and _may_be_tensor(value.rest)
    )


def _all_known(made: Call) -> bool:
    return all(isinstance(one, Tensor | Known) for one in made.values())
