"""Attributes and special methods of tensors: gradients, parts, shapes, and what is written to them."""

from dataclasses import replace

from ta_lint.dryrun.machine import iteration
from ta_lint.dryrun.machine.call import Call
from ta_lint.dryrun.machine.calling import call
from ta_lint.dryrun.machine.calling import perhaps as perhaps_called
from ta_lint.dryrun.machine.counts import LENGTH
from ta_lint.dryrun.machine.library import (
    NUMBER,
    UNSEEN,
    attribute_of,
    find,
    method,
    new_class,
    stub,
    tuple_of,
)
from ta_lint.dryrun.stubs.torch import gradients, shapes
from ta_lint.dryrun.stubs.torch.operations import size_of
from ta_lint.dryrun.stubs.torch.tensors import (
    DETACHED,
    FACTS,
    NOTHING,
    PARAMETER,
    TENSOR,
    Facts,
    Tensor,
    computed,
    cut,
    ended,
    forced,
    perhaps_of,
    roots_of,
    tensors_in,
)
from ta_lint.dryrun.values import DATA as NUMBERS
from ta_lint.dryrun.values import NONE, Known, Sequence, Unknown, Value, cuts_of


@attribute_of(TENSOR, "data")
def _data(made: Call) -> Value:
    own = made.own(Tensor)
    if own.takes_gradient or own.cls is PARAMETER:
        data = Tensor(replace(own.facts, requires=False), made.place, DATA)
        data.fields["of"] = own
        return data
    return cut(own, DETACHED, made.place)


DATA = new_class("torch.Tensor.data", bases=(TENSOR,))


@attribute_of(TENSOR, "grad")
def _grad(made: Call) -> Value:
    _wanted(made, made.args[0])
    gradient = Tensor(Facts(source=made.args[0]), made.place, GRADIENT)
    gradient.fields["of"] = made.args[0]
    return gradient


def _wanted(made: Call, *leaves: Value, handed: bool = False) -> None:
    """The program asks for the gradients of these, or code out of sight gets them and may; it matters for those that were told to have one."""
    for leaf in tensors_in(leaves):
        if leaf.facts.forced:
            made.emit("gradient", leaf, handed=handed)


GRADIENT = new_class("torch.Tensor.grad", bases=(TENSOR,))


@attribute_of(GRADIENT, "data")
def _of_gradient(made: Call) -> Value:
    return made.args[0]


@method(GRADIENT, "zero_", "detach_", "fill_", "mul_")
def _cleared(made: Call) -> Value:
    own = made.own()
    if made.name == "zero_" or (made.name != "detach_" and made.constant(1, "other") == 0):
        _clear(made, own.fields.get("of"))
    return own


def _clear(made: Call, parameter: Value | None) -> None:
    before = gradients.cleared(
        made.machine, parameter, tensors_in((parameter or NONE,)), complete=isinstance(parameter, Tensor)
    )
    made.emit("clear", parameter, before=before)


@attribute_of(TENSOR, "shape")
def _shape_of(made: Call) -> Value:
    own = made.own(Tensor)
    shape = own.facts.shape
    return tuple_of((), Unknown("a size", "int")) if shape is None else tuple_of(map(size_of, shape))


@attribute_of(TENSOR, "H", "T", "mH", "mT")
def _turned(made: Call) -> Value:
    own = made.own(Tensor)
    turns = made.name in ("T", "H")
    shape = own.facts.shape
    if shape is not None and not turns:
        shape = (*shape[:-2], *shape[:-3:-1]) if len(shape) > 1 else None
    return computed(
        made.machine, [own], made.place, shape=shapes.turned(made) if turns else shape, dtype=own.facts.dtype
    )


@attribute_of(TENSOR, "imag", "real")
def _complex_part(made: Call) -> Value:
    return computed(made.machine, made.args, made.place)


@attribute_of(TENSOR, "device", "itemsize", "layout", "name", "nbytes", "ndim", "output_nr")
def _kind(made: Call) -> Value:
    name = made.name
    own = made.args[0]
    if name == "ndim" and isinstance(own, Tensor) and own.facts.shape is not None:
        return Known(len(own.facts.shape))
    kind = {"device": "device", "itemsize": "int", "nbytes": "int", "ndim": "int"}.get(name, "kind")
    return Unknown(f"the {name} of a tensor", kind)


@attribute_of(TENSOR, "dtype")
def _dtype(made: Call) -> Value:
    own = made.own(Tensor)
    dtype = own.facts.dtype
    return Unknown("the dtype of a tensor", "kind") if dtype is None else find(f"torch.{dtype}")


@attribute_of(TENSOR, "is_leaf")
def _is_leaf(made: Call) -> Value:
    own = made.own(Tensor)
    facts = own.facts
    return (
        Known(False)
        if facts.roots
        else Unknown("whether it is a leaf", "bool")
        if facts.open
        else Known(True)
    )


@attribute_of(
    TENSOR,
    "is_cpu",
    "is_cuda",
    "is_meta",
    "is_mps",
    "is_nested",
    "is_quantized",
    "is_sparse",
    "is_sparse_csr",
    "is_xpu",
    "retains_grad",
)
def _verdict(made: Call) -> Value:
    return Unknown(f"{made.name} of a tensor", "bool")


@attribute_of(TENSOR, "grad_fn")
def _grad_fn(made: Call) -> Value:
    return Unknown("a node of the graph")


@method(TENSOR, "__setattr__")
def _set(made: Call) -> Value:
    own, name, value = made.own(Tensor), made.constant(1, "name"), made.args[2]
    if name == "requires_grad":
        known = bool(value.value) if isinstance(value, Known) else None
        parts = forced(own, made.place) if known else ()
        made.machine.state.write(own.fields, FACTS, replace(own.facts, requires=known, forced=parts))
        made.emit("freeze" if known is False else "unfreeze", own)
    elif name == "grad":
        if value == NONE:
            _clear(made, own)
        elif isinstance(value, Tensor) and value.facts.source is own:  # it is scaled, clipped, or put back
            gradients.perhaps_computed_of(made.machine, [own], complete=True)
        else:
            made.emit("clear", own, before=gradients.assigned(made.machine, own))
    elif name == "data":
        new = value.facts if isinstance(value, Tensor) else Facts()
        made.machine.state.write(own.fields, FACTS, replace(own.facts, shape=new.shape, dtype=new.dtype))
        made.emit("write", own, by="data")
    elif isinstance(name, str):
        made.machine.state.write(own.fields, name, value)
    return NONE


@method(TENSOR, "requires_grad_")
def _requires(made: Call) -> Value:
    own, wants = made.own(Tensor), made.constant(1, "requires_grad", True)
    known = None if wants is ... else bool(wants)
    parts = forced(own, made.place) if known else ()
    made.machine.state.write(own.fields, FACTS, replace(own.facts, requires=known, forced=parts))
    made.emit("unfreeze" if wants else "freeze", own)
    return own


@attribute_of(TENSOR, "requires_grad")
def _takes(made: Call) -> Value:
    own = made.own(Tensor)
    facts = own.facts
    return (
        Known(True)
        if facts.roots or facts.requires is True
        else Unknown("requires_grad", "bool")
        if facts.open or facts.perhaps or facts.requires is None
        else Known(False)
    )


@method(TENSOR, "backward")
def _backward(made: Call) -> Value:
    own = made.own(Tensor)
    _back(made, own)
    return NONE


def _back(made: Call, own: Tensor) -> None:
    """Gradients go back from a tensor, and what checkpointing has kept nothing of runs again, the last first."""
    facts = own.facts
    roots, perhaps = roots_of(own), perhaps_of(own)
    before = gradients.computed(made.machine, roots, complete=not (perhaps or facts.open))
    made.emit(
        "backward", own, roots=roots, perhaps=perhaps, open=facts.open, flat=facts.flat, cuts=facts.cuts,
        forced=facts.forced, before=before,
    )  # fmt: skip
    for function, args, kwargs in reversed(facts.again):
        call(made.machine, function, list(args), dict(kwargs), made.node)
    for hook in made.machine.hooks:
        perhaps_called(made.machine, hook, made.node)


@method(TENSOR, "register_hook", "register_post_accumulate_grad_hook")
def _hooked(made: Call) -> Value:
    hook = made.argument(1, "hook")
    if hook not in made.machine.hooks:
        made.machine.hooks.append(hook)
    return Unknown("the handle of a hook", "handle")


@method(NUMBER, "backward")
def _backward_of_a_number(made: Call) -> Value:
    """A number has no graph, and no such method: the program gets no further."""
    _back(made, Tensor(Facts(cuts=cuts_of(made.args[0])), made.place))
    return NONE


@method(UNSEEN, "detach", "detach_")
def _detached_from_something(made: Call) -> Value:
    """Of a tensor of which nobody knows where it leads to."""
    return cut(_some_loss(made.args[0]), DETACHED, made.place)


@method(UNSEEN, "item", "numpy", "tolist")
def _numbers_of_something(made: Call) -> Value:
    kind = "float" if made.name == "item" else NUMBERS
    return Unknown("numbers of a tensor", kind, cuts=ended(_some_loss(made.args[0]), DETACHED, made.place))


@method(UNSEEN, "backward", "manual_backward")
def _backward_of_something(made: Call) -> Value:
    """Of a loss that is not known, or of one that something out of sight gets, such as an engine, which may clear and step by itself."""
    loss = made.given(1, "loss")
    losses = list(tensors_in([loss])) if loss is not None else []
    _back(made, losses[0] if losses else _some_loss(made.args[0] if loss is None else loss))
    if loss is not None:
        made.emit("unknown", None, before=gradients.lost(made.machine, *made.machine.optimizers))
    return NONE


@method(UNSEEN, "eval")
def _part_in_evaluation_mode(made: Call) -> Value:
    """Of a part of a model whose layers are not known, perhaps."""
    value = made.args[0]
    made.emit("visit", value.of if isinstance(value, Unknown) else None)
    return Unknown(getattr(value, "why", ""))


@method(UNSEEN, "zero_grad")
def _cleared_by_something(made: Call) -> Value:
    """Of a model or an optimizer that is not known: perhaps of the one that is looked at."""
    made.emit("clear", made.args[0], before=gradients.cleared(made.machine, made.args[0], (), complete=False))
    return NONE


@method(TENSOR, "__handed_over__")
def _handed_over(made: Call) -> Value:
    """Code out of sight gets a loss, and may go back from it if it is called for what it does."""
    own = made.own(Tensor)
    _wanted(made, own, handed=True)
    if made.node in made.machine.alone and own.facts.requires is not False:
        complete = not (perhaps_of(own) or own.facts.open)
        before = gradients.perhaps_computed_of(made.machine, roots_of(own), complete=complete)
        made.emit("unknown", own, by=made.args[1], before=before, computes=True)
    return NONE


@method(UNSEEN, "__setattr__")
def _set_of_something(made: Call) -> Value:
    """The gradient of a parameter that is not known: perhaps of the optimizer that is looked at."""
    if made.constant(1, "name") == "grad":
        made.emit("clear", made.args[0], before=gradients.lost(made.machine, *made.machine.optimizers))
    return NONE


@stub("torch.autograd.backward")
def _backward_of(made: Call) -> Value:
    for value in made.args[:1]:
        for own in [_some_loss(value)] if isinstance(value, Unknown) else tensors_in([value]):
            _back(made, own)
    return NONE


def _some_loss(value: Value) -> Tensor:
    """A loss of which nobody knows what it leads to."""
    return Tensor(
        Facts(open=(getattr(value, "why", "") or "a loss that is not known",), requires=None, leaf=False)
    )


@stub("torch.autograd.grad")
def _gradients(made: Call) -> Value:
    outputs = made.argument(0, "outputs")
    count = made.argument(1, "inputs")
    _wanted(made, count)
    facts = computed(made.machine, [outputs], made.place).facts
    if (
        made.constant(9, "create_graph", False) is True
    ):  # only what is multiplied with the input stays in its gradient
        facts = replace(facts, roots=NOTHING, perhaps=facts.roots | facts.perhaps, requires=None)
    else:
        facts = Facts()
    gradient = Tensor(facts, made.place)
    items = (
        [Tensor(gradient.facts, made.place) for _ in count.items]
        if isinstance(count, Sequence)
        else [gradient]
    )
    return tuple_of(items, count.rest and gradient if isinstance(count, Sequence) else None)


@method(TENSOR, "__getitem__")
def _part(made: Call) -> Value:
    own, key = made.own(Tensor), made.args[1]
    facts = computed(made.machine, made.args, made.place).facts
    scale = own.facts.scale if own.facts.scale and own.facts.scale[0] in ("indices", "booleans") else None
    shape = None if own.facts.shape is None else shapes.indexed(own.facts.shape, key)
    return Tensor(replace(facts, scale=scale, shape=shape, dtype=own.facts.dtype), made.place)


@method(TENSOR, "__setitem__")
def _put(made: Call) -> Value:
    own, value = made.own(Tensor), made.args[2]
    if not own.takes_gradient:
        facts = computed(made.machine, [own, value], made.place).facts
        made.machine.state.write(
            own.fields,
            FACTS,
            replace(
                own.facts,
                roots=facts.roots,
                perhaps=facts.perhaps,
                open=facts.open,
                flat=facts.flat,
                cuts=facts.cuts,
                requires=facts.requires,
                leaf=facts.leaf,
            )
            if facts.roots or facts.perhaps or facts.open
            else own.facts,
        )
    return NONE


@method(TENSOR, "__len__")
def _length(made: Call) -> Value:
    own = made.own(Tensor)
    return size_of(own.facts.shape[0]) if own.facts.shape else Unknown(LENGTH, "int")


@method(TENSOR, "__bool__")
def _truth(made: Call) -> Value:
    made.emit("read", made.args[0])
    return Unknown("a truth of a tensor", "bool")


@method(TENSOR, "__shown__")
def _shown(made: Call) -> Value:
    made.emit("read", made.args[0])
    return NONE


@method(PARAMETER, "__handed_over__")
def _parameter_handed_over(made: Call) -> Value:
    """Code out of sight may train it."""
    made.emit("hand over", made.own(), by=made.args[1])
    return NONE


@method(TENSOR, "__copied__")
def _copied(made: Call) -> Value:
    own = made.own(Tensor)
    return Tensor(own.facts, made.place, own.cls)


@method(PARAMETER, "__new__")
def _parameter(made: Call) -> Value:
    data, wants = made.argument(1, "data"), made.constant(2, "requires_grad", True)
    given = data.facts if isinstance(data, Tensor) else Facts()
    facts = Facts(requires=None if wants is ... else bool(wants), shape=given.shape, dtype=given.dtype)
    return Tensor(facts, made.place, PARAMETER)


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


@stub("torch._foreach_zero_")
def _cleared_together(made: Call) -> Value:
    items, rest = iteration.collected(made.machine, made.argument(0, "self"), made.node)
    parameters = [one.fields.get("of") for one in items if isinstance(one, Tensor) and one.cls is GRADIENT]
    for parameter in parameters:
        _clear(made, parameter)
    if rest is not None or len(parameters) < len(items):
        made.emit("clear", None, before=gradients.lost(made.machine, *made.machine.optimizers))
    return NONE
