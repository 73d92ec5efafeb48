"""The same tensor in another dtype or on another device, which perhaps is the tensor itself."""

from dataclasses import replace

from ta_lint.dryrun.machine.call import Call
from ta_lint.dryrun.stubs.torch import dtypes
from ta_lint.dryrun.stubs.torch.activations import part_of
from ta_lint.dryrun.stubs.torch.devices import ELSEWHERE, copies, destination, is_there, moves
from ta_lint.dryrun.stubs.torch.dtypes import has_gradient
from ta_lint.dryrun.stubs.torch.rows import METHOD, operand, register
from ta_lint.dryrun.stubs.torch.tensors import FACTS, IN_STEPS, PARAMETER, Tensor, computed, cut
from ta_lint.dryrun.values import Unknown, Value, join


def moved(made: Call) -> Value:
    """The same numbers elsewhere: shape and meaning stay, and the dtype if no other is asked for."""
    goes = moves(made)
    if made.name == "cpu":
        made.emit("read", made.args[0])
    tensor = operand(made)
    is_output = tensor is not None and bool(tensor.facts.outputs)  # which is where the model is
    stays = None if made.name in _PERHAPS_THERE or is_output else False
    where = None if tensor is None else destination(made, tensor.facts.where)
    dtype = dtypes.asked(made, None if tensor is None else tensor.facts.dtype)
    if tensor is not None and is_there(tensor.facts.where, where) and "copy" not in made.kwargs:
        stays, again = True, [*made.args[1:], *made.kwargs.values()]
        if made.name == "to" and len(again) == 1 and dtypes.named(again[0]) is None:
            return tensor  # also if what it gets twice is a dtype
    result = converted(made, dtype, stays=stays, where=where)
    if goes and tensor is not None:
        copies(made, tensor.facts.batch_of)
        if isinstance(result, Tensor) and result is not tensor:
            made.machine.state.write(result.fields, FACTS, replace(result.facts, source=ELSEWHERE))
    return result


_PERHAPS_THERE = frozenset({"as_tensor", "asarray", "contiguous", "cpu", "to", "type", "type_as"})
"""Where they may be already: these give the tensor itself then."""


def converted(
    made: Call, dtype: str | None, *, stays: bool | None = True, where: Value | None = None
) -> Value:
    """A tensor in a dtype: itself, if it has that and stays where it is. Whole numbers and booleans have no graph."""
    tensor = operand(made)
    if tensor is None:
        return Unknown(getattr(made.args[0], "why", "a tensor") if made.args else "a tensor")
    facts = computed(made.machine, [tensor], made.place).facts
    before = tensor.facts.dtype
    if None in (before, dtype):
        stays = stays and None
    elif before != dtype:
        stays = False
    if stays:
        return tensor
    kept = {
        "shape": tensor.facts.shape,
        "ends": tensor.facts.ends,
        "dtype": dtype,
        "amount": tensor.facts.amount,
        "where": where,
    }
    result = Tensor(
        replace(facts, scale=tensor.facts.scale, output=part_of(tensor.facts.output), **kept), made.place
    )
    if has_gradient(dtype) is False:
        scale = "booleans" if dtype == "bool" else "indices"
        return cut(result, IN_STEPS, made.place, scale=(scale, None), **kept)
    is_certain = stays is False or tensor.facts.where is not None
    if tensor.cls is PARAMETER and is_certain and (before is not None or made.name != "float"):
        made.emit("moved", tensor, by=made.name)  # most are of float32 already
    return result if stays is False else perhaps_itself(made, tensor, result)


def perhaps_itself(made: Call, tensor: Tensor, result: Value) -> Value:
    """What an operation gives that perhaps changes nothing, and gives the tensor itself then."""
    differs = tensor.takes_gradient or made.machine.mode("recording") is not True
    return join(tensor, result) if differs else result


def without(made: Call, given: Value | None, share: object, training: object, result: Value) -> Value:
    """What dropout of this share gives: what it gets, if it drops nothing; `...` is not known."""
    if not isinstance(given, Tensor) or (training is True and share != 0):
        return result
    return given if training is False or share == 0 else perhaps_itself(made, given, result)


register("contiguous cpu cuda pin_memory to xpu", moved, METHOD)
register("clone", moved)


def typed(made: Call) -> Value:
    """`type`: in another dtype, or the name of its own."""
    return moved(made) if len(made.args) + len(made.kwargs) > 1 else Unknown("the name of a type", "str")


register("type type_as", typed, METHOD)

for _name in (
    "bfloat16",
    "bool",
    "byte",
    "cdouble",
    "cfloat",
    "char",
    "double",
    "float",
    "half",
    "int",
    "long",
    "short",
):
    _dtype = dtypes.NAMES.get(_name) or {"byte": "uint8", "char": "int8"}.get(_name, _name)
    register(_name, lambda made, dtype=_dtype: converted(made, dtype), METHOD)  # type: ignore[misc]
