"""What a model out of sight gives: a tensor, or several values in a tuple, a dictionary or an object, each of which may be one."""

from dataclasses import replace

from ta_lint.dryrun.machine.call import Call
from ta_lint.dryrun.machine.library import list_of, method
from ta_lint.dryrun.stubs.torch.tensors import TENSOR, Tensor, computed
from ta_lint.dryrun.values import Class, Known, Value

BUNDLE = Class("what a model out of sight gives", (TENSOR,))


def bundle(tensor: Tensor) -> Tensor:
    """A tensor that may be several values."""
    return Tensor(tensor.facts, tensor.made, BUNDLE)


@method(BUNDLE, "__getattr__", "__getitem__")
def _part(made: Call) -> Value:
    """A part is the same each time that somebody asks for it by its name. By a number it may be a row of a tensor, which has no graph where
    nothing is recorded.
    """
    own, key = made.own(Tensor), made.args[1]
    if not isinstance(key, Known) or not isinstance(key.value, str | int):
        return computed(made.machine, made.args, made.place)
    recording = made.machine.mode("recording")
    if isinstance(key.value, str) or recording is True:
        name = f"part {key.value}"
    else:
        name = f"part {key.value} where recording is {recording}"
    if name not in own.fields:
        own.fields[name] = _one(made, own, is_named=isinstance(key.value, str))
    return own.fields[name]  # type: ignore[no-any-return]


@method(BUNDLE, "__iter__")
def _parts(made: Call) -> Value:
    return list_of((), _one(made, made.own(Tensor)))


@method(BUNDLE, "__copied__")
def _another(made: Call) -> Value:
    return _one(made, made.own(Tensor))


def _one(made: Call, own: Tensor, *, is_named: bool = False) -> Tensor:
    is_as_given = is_named and made.machine.mode("recording") is not True
    facts = own.facts if is_as_given else computed(made.machine, [own], made.place).facts
    graph = own.facts.graph.part_of(made.machine, made.place)
    return Tensor(replace(facts, graph=graph), made.place, BUNDLE)
