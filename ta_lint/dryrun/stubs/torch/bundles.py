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
    """A part is the same each time that somebody asks for it by its name."""
    own, key = made.own(Tensor), made.args[1]
    if not isinstance(key, Known) or not isinstance(key.value, str | int):
        return computed(made.machine, made.args, made.place)
    name = f"part {key.value}"
    if name not in own.fields:
        own.fields[name] = _one(made, own)
    return own.fields[name]  # type: ignore[no-any-return]


@method(BUNDLE, "__iter__")
def _parts(made: Call) -> Value:
    return list_of((), _one(made, made.own(Tensor)))


@method(BUNDLE, "__copied__")
def _another(made: Call) -> Value:
    return _one(made, made.own(Tensor))


def _one(made: Call, own: Tensor) -> Tensor:
    facts = computed(made.machine, [own], made.place).facts
    graph = own.facts.graph.part_of(made.machine, made.place)
    return Tensor(replace(facts, graph=graph), made.place, BUNDLE)
