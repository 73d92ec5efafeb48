"""Attributes and special methods of tensors: gradients, parts, shapes, and what is written to them."""

from dataclasses import replace

from ta_lint.dryrun.machine.call import Call
from ta_lint.dryrun.machine.library import attribute_of, method, new_class, stub, tuple_of
from ta_lint.dryrun.stubs.torch.operations import any_operation, size_of
from ta_lint.dryrun.stubs.torch.tensors import (
    FACTS,
    NOTHING,
    PARAMETER,
    TENSOR,
    Facts,
    Tensor,
    certain_roots,
    computed,
    cut,
    roots_of,
    tensors_in,
)
from ta_lint.dryrun.values import NONE, Bound, Known, Native, Object, Sequence, Unknown, Value


@method(TENSOR, "__getattr__")
def _any_method(made: Call) -> Value:
    """A method of tensors that no row names is an operation."""
    own, name = made.args[0], made.constant(1, "name")
    return Bound(own, Native(f"torch.Tensor.{name}", any_operation))


@attribute_of(TENSOR, "data")
def _data(made: Call) -> Value:
    own = made.args[0]
    assert isinstance(own, Tensor)
    if own.takes_gradient:
        return Tensor(replace(own.facts, requires=False, leaf=True, roots=NOTHING), made.place, DATA)
    return cut(own, "detached", made.place)


DATA = new_class("torch.Tensor.data", bases=(TENSOR,))


@attribute_of(TENSOR, "grad")
def _grad(made: Call) -> Value:
    return Object(GRADIENT, made.place, {"of": made.args[0]})


GRADIENT = new_class("torch.Tensor.grad", bases=(TENSOR,))


@method(GRADIENT, "zero_", "detach_")
def _cleared(made: Call) -> Value:
    own = made.args[0]
    if isinstance(own, Object) and made.name == "zero_":
        made.emit("clear", own.fields.get("of"))
    return own


@attribute_of(TENSOR, "shape")
def _shape_of(made: Call) -> Value:
    own = made.args[0]
    assert isinstance(own, Tensor)
    shape = own.facts.shape
    return tuple_of((), Unknown("a size", "int")) if shape is None else tuple_of(map(size_of, shape))


@attribute_of(TENSOR, "T", "mT", "H", "real", "imag")
def _turned(made: Call) -> Value:
    return computed(made.machine, made.args, made.place)


@attribute_of(TENSOR, "ndim", "device", "dtype", "is_cuda", "is_leaf", "layout", "itemsize", "nbytes")
def _kind(made: Call) -> Value:
    name = made.name
    own = made.args[0]
    if name == "ndim" and isinstance(own, Tensor) and own.facts.shape is not None:
        return Known(len(own.facts.shape))
    return Unknown(f"the {name} of a tensor", "int" if name == "ndim" else "kind")


@attribute_of(TENSOR, "grad_fn")
def _grad_fn(made: Call) -> Value:
    return Unknown("a node of the graph")


@method(TENSOR, "__setattr__")
def _set(made: Call) -> Value:
    own, name, value = made.args[0], made.constant(1, "name"), made.args[2]
    assert isinstance(own, Tensor)
    if name == "requires_grad":
        known = bool(value.value) if isinstance(value, Known) else None
        made.machine.state.write(own.fields, FACTS, replace(own.facts, requires=known))
        made.emit("freeze" if known is False else "unfreeze", own)
    elif name == "grad":
        if value == NONE:
            made.emit("clear", own)
    elif name == "data":
        made.emit("write", own, by="data")
    elif isinstance(name, str):
        made.machine.state.write(own.fields, name, value)
    return NONE


@method(TENSOR, "requires_grad_")
def _requires(made: Call) -> Value:
    own, wants = made.args[0], made.constant(1, "requires_grad", True)
    assert isinstance(own, Tensor)
    made.machine.state.write(
        own.fields, FACTS, replace(own.facts, requires=None if wants is ... else bool(wants))
    )
    made.emit("unfreeze" if wants else "freeze", own)
    return own


@attribute_of(TENSOR, "requires_grad")
def _takes(made: Call) -> Value:
    own = made.args[0]
    assert isinstance(own, Tensor)
    facts = own.facts
    return (
        Known(True)
        if certain_roots(own) or facts.requires is True
        else Unknown("requires_grad", "bool")
        if facts.roots or facts.open or facts.requires is None
        else Known(False)
    )


def _emit_backward(made: Call, own: Tensor) -> None:
    facts = own.facts
    made.emit("backward", own, roots=roots_of(own), open=facts.open, cuts=facts.cuts, perhaps=facts.perhaps)


@method(TENSOR, "backward")
def _backward(made: Call) -> Value:
    own = made.args[0]
    assert isinstance(own, Tensor)
    _emit_backward(made, own)
    return NONE


@stub("torch.autograd.backward")
def _backward_of(made: Call) -> Value:
    for own in tensors_in(made.args[:1]):
        _emit_backward(made, own)
    return NONE


@stub("torch.autograd.grad")
def _gradients(made: Call) -> Value:
    outputs = made.argument(0, "outputs")
    count = made.argument(1, "inputs")
    gradient = (
        computed(made.machine, [outputs], made.place)
        if made.constant(9, "create_graph", False) is True
        else Tensor(Facts(), made.place)
    )
    items = (
        [Tensor(gradient.facts, made.place) for _ in count.items]
        if isinstance(count, Sequence)
        else [gradient]
    )
    return tuple_of(items, count.rest and gradient if isinstance(count, Sequence) else None)


@method(TENSOR, "__getitem__")
def _part(made: Call) -> Value:
    own = made.args[0]
    result = computed(made.machine, made.args, made.place)
    assert isinstance(own, Tensor)
    return Tensor(
        replace(
            result.facts,
            scale=own.facts.scale if own.facts.scale and own.facts.scale[0] == "indices" else None,
        ),
        made.place,
    )


@method(TENSOR, "__setitem__")
def _put(made: Call) -> Value:
    own, value = made.args[0], made.args[2]
    assert isinstance(own, Tensor)
    if not own.takes_gradient:
        new = computed(made.machine, [own, value], made.place)
        made.machine.state.write(
            own.fields,
            FACTS,
            replace(new.facts, shape=own.facts.shape, source=own.facts.source),
        )
    return NONE


@method(TENSOR, "__iter__", "unbind", "split", "chunk", "tensor_split")
def _parts(made: Call) -> Value:
    count = made.constant(1, "chunks", ...) if made.name == "chunk" else ...
    part = computed(made.machine, made.args[:1], made.place)
    if isinstance(count, int):
        return tuple_of([Tensor(part.facts, made.place) for _ in range(min(count, 8))])
    return tuple_of((), part)


stub("torch.split", "torch.chunk", "torch.unbind")(_parts)


@method(TENSOR, "__len__")
def _length(made: Call) -> Value:
    own = made.args[0]
    assert isinstance(own, Tensor)
    return size_of(own.facts.shape[0]) if own.facts.shape else Unknown("a length", "int")


@method(TENSOR, "__bool__")
def _truth(made: Call) -> Value:
    made.emit("read", made.args[0])
    return Unknown("a truth of a tensor", "bool")


@method(TENSOR, "__shown__")
def _shown(made: Call) -> Value:
    made.emit("read", made.args[0])
    return NONE


@method(TENSOR, "__copied__")
def _copied(made: Call) -> Value:
    own = made.args[0]
    assert isinstance(own, Tensor)
    return Tensor(own.facts, made.place, own.cls)


@method(PARAMETER, "__new__")
def _parameter(made: Call) -> Value:
    data, wants = made.argument(1, "data"), made.constant(2, "requires_grad", True)
    shape = data.facts.shape if isinstance(data, Tensor) else None
    return Tensor(Facts(requires=None if wants is ... else bool(wants), shape=shape), made.place, PARAMETER)


@method(TENSOR, "__new__")
def _tensor(made: Call) -> Value:
    return Tensor(Facts(), made.place)


@stub("torch.is_tensor")
def _is_tensor(made: Call) -> Value:
    value = made.argument(0, "obj")
    return Known(isinstance(value, Tensor)) if not isinstance(value, Unknown) else Unknown("a kind", "bool")


@stub(
    "torch.manual_seed",
    "torch.cuda.manual_seed",
    "torch.cuda.manual_seed_all",
    "random.seed",
    "numpy.random.seed",
)
def _seed(made: Call) -> Value:
    made.emit("seed")
    return NONE
