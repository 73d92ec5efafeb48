"""Attributes and special methods of tensors: gradients, parts, shapes, and what is written to them."""

from dataclasses import replace

from ta_lint.dryrun.machine import iteration
from ta_lint.dryrun.machine.amounts import as_item
from ta_lint.dryrun.machine.batches import of_any, of_batch
from ta_lint.dryrun.machine.call import Call
from ta_lint.dryrun.machine.counts import LENGTH
from ta_lint.dryrun.machine.library import UNSEEN, attribute_of, find, method, new_class, stub
from ta_lint.dryrun.stubs.torch import gradients, likelihoods, outputs, shapes
from ta_lint.dryrun.stubs.torch.activations import part_of
from ta_lint.dryrun.stubs.torch.backward import wanted
from ta_lint.dryrun.stubs.torch.modules import replaced_out_of_sight, switch
from ta_lint.dryrun.stubs.torch.operations import size_of, sizes_of
from ta_lint.dryrun.stubs.torch.tensors import (
    DETACHED,
    FACTS,
    GRADIENT,
    PARAMETER,
    TENSOR,
    Facts,
    Tensor,
    computed,
    cut,
    ended,
    forced,
    joined_facts,
    perhaps_of,
    roots_of,
    some_loss,
    tensors_in,
    terms_of,
    written_to,
)
from ta_lint.dryrun.stubs.torch.terms import united
from ta_lint.dryrun.stubs.torch.without_effect import NAMES
from ta_lint.dryrun.values import BY_NAME, NONE, TRUE, Known, Unknown, Value
from ta_lint.dryrun.values import DATA as NUMBERS


@attribute_of(TENSOR, "data")
def _data(made: Call) -> Value:
    own = made.own(Tensor)
    if own.takes_gradient or own.cls is PARAMETER:
        cuts = ended(own, DETACHED, made.place)
        data = Tensor(replace(own.facts, requires=False, cuts=cuts), made.place, DATA)
        data.fields["of"] = own
        return data
    return cut(own, DETACHED, made.place)


DATA = new_class("torch.Tensor.data", bases=(TENSOR,))


@attribute_of(TENSOR, "grad")
def _grad(made: Call) -> Value:
    wanted(made, made.args[0])
    gradient = Tensor(Facts(source=made.args[0]), made.place, GRADIENT)
    gradient.fields["of"] = made.args[0]
    return gradient


@attribute_of(GRADIENT, "data")
def _of_gradient(made: Call) -> Value:
    return made.args[0]


@method(GRADIENT, "zero_", "detach_", "fill_", "mul_")
def _cleared(made: Call) -> Value:
    own = made.own()
    if made.name == "zero_" or (made.name != "detach_" and made.constant(1, "other") == 0):
        _clear(made, own.fields.get("of"))
    else:
        gradients.rescaled_of(made.machine, tensors_in([own.fields["of"]]))
    return own


def _clear(made: Call, parameter: Value | None) -> None:
    before = gradients.cleared(
        made.machine, parameter, tensors_in((parameter or NONE,)), complete=isinstance(parameter, Tensor)
    )
    made.emit("clear", parameter, before=before)


@attribute_of(TENSOR, "shape")
def _shape_of(made: Call) -> Value:
    return sizes_of(made.own(Tensor).facts.shape, made)


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
        switch(made, own, on=known is not False)
    elif name == "grad":
        if value == NONE:
            _clear(made, own)
        elif isinstance(value, Tensor) and value.facts.source is own:  # it is scaled, clipped, or put back
            gradients.perhaps_computed_of(made.machine, [own], complete=True)
            gradients.rescaled_of(made.machine, [own])
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
    switch(made, own, on=bool(wants))
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


@method(UNSEEN, "detach", "detach_")
def _detached_from_something(made: Call) -> Value:
    """Of a tensor of which nobody knows where it leads to."""
    return cut(some_loss(made.machine, made.args[0], made.place), DETACHED, made.place)


@method(UNSEEN, "item", "numpy", "tolist")
def _numbers_of_something(made: Call) -> Value:
    outputs.used(made, outputs.READ, made.args[:1])
    kind = "float" if made.name == "item" else NUMBERS
    return Unknown(
        "numbers of a tensor",
        kind,
        cuts=ended(some_loss(made.machine, made.args[0], made.place), DETACHED, made.place),
        amount=of_any(made.args[0]) if made.name == "item" else None,
    )


@method(UNSEEN, "size")
def _size_of_something(made: Call) -> Value:
    """Of a batch that is not known."""
    asked = made.constant(1, "dim", None)
    return Unknown("a size") if asked is None else size_of(None, made if asked == 0 else None)


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
    wanted(made, own, handed=True)
    is_alone = made.node in made.machine.alone
    how = (
        outputs.NUMBERS if own.facts.requires is False else outputs.LEFT if is_alone else outputs.HANDED_OVER
    )
    outputs.used(made, how, [own])
    if is_alone and own.facts.requires is not False:
        complete = not (perhaps_of(own) or own.facts.open)
        before = gradients.perhaps_computed_of(made.machine, roots_of(own), complete=complete)
        made.emit("unknown", own, by=made.args[1], before=before, computes=True)
    return NONE


@method(UNSEEN, "__setattr__")
def _set_of_something(made: Call) -> Value:
    """The gradient of a parameter that is not known, perhaps of the optimizer that is looked at; or what torch reads on parameters alone."""
    name = made.constant(1, "name")
    if name == "grad":
        made.emit("clear", made.args[0], before=gradients.lost(made.machine, *made.machine.optimizers))
    elif name in NAMES:
        made.emit("attribute", made.args[0], name=name)
    replaced_out_of_sight(made, made.args[0], made.args[2])
    return NONE


@method(UNSEEN, "__setitem__")
def _set_in_something(made: Call) -> Value:
    replaced_out_of_sight(made, made.args[0], made.args[2])
    return NONE


@method(TENSOR, "__getitem__")
def _part(made: Call) -> Value:
    own, key = made.own(Tensor), made.args[1]
    if (whole := written_to(own)) is not None and isinstance(whole, Tensor) and whole.cls is PARAMETER:
        made.emit("part", whole)
    facts = computed(made.machine, made.args, made.place).facts
    scale = own.facts.scale if own.facts.scale and own.facts.scale[0] in ("indices", "booleans") else None
    shape = None if own.facts.shape is None else shapes.indexed(own.facts.shape, key)
    result = Tensor(
        replace(facts, scale=scale, shape=shape, dtype=own.facts.dtype, output=part_of(own.facts.output)),
        made.place,
    )
    if BY_NAME in own.fields:
        result.fields[BY_NAME] = TRUE
    return likelihoods.part(made, result)


@method(TENSOR, "__setitem__")
def _put(made: Call) -> Value:
    own, value = made.own(Tensor), made.args[2]
    if (whole := written_to(own)) is not None and isinstance(whole, Tensor) and whole.cls is PARAMETER:
        made.emit("part", whole)
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
                amount=as_item(made.machine, value, made.node),
                graph=facts.graph,
                outputs=facts.outputs,
                terms=united((*terms_of(own), *terms_of(value)), joined_facts),
                output=None,
            )
            if facts.roots or facts.perhaps or facts.open or facts.outputs
            else replace(own.facts, output=None),
        )
    return NONE


@method(TENSOR, "__viewed__")
def _viewed(made: Call) -> Value:
    """What is written to a part of it is written to it."""
    return NONE


@method(TENSOR, "__len__")
def _length(made: Call) -> Value:
    own = made.own(Tensor)
    grows = of_batch(made.machine, grows=True, counts=True)
    shape = own.facts.shape
    return Known(shape[0]) if shape and isinstance(shape[0], int) else Unknown(LENGTH, "int", amount=grows)


@method(TENSOR, "__bool__")
def _truth(made: Call) -> Value:
    made.emit("read", made.args[0])
    outputs.used(made, outputs.READ, made.args)
    return Unknown("a truth of a tensor", "bool")


@method(TENSOR, "__shown__")
def _shown(made: Call) -> Value:
    made.emit("read", made.args[0])
    outputs.used(made, outputs.READ, made.args)
    return NONE


@method(PARAMETER, "__handed_over__")
def _parameter_handed_over(made: Call) -> Value:
    """Code out of sight may train it."""
    made.emit("hand over", made.own(), by=made.args[1])
    gradients.rescaled_of(made.machine, [made.own(Tensor)])
    return NONE


@method(GRADIENT, "__handed_over__")
def _gradient_handed_over(made: Call) -> Value:
    """Code out of sight may multiply it."""
    gradients.rescaled_of(made.machine, tensors_in([made.own().fields["of"]]))
    return _handed_over(made)


@method(TENSOR, "__copied__")
def _copied(made: Call) -> Value:
    own = made.own(Tensor)
    return Tensor(own.facts, made.place, own.cls)


@method(PARAMETER, "__new__")
def _parameter(made: Call) -> Value:
    data, wants = made.argument(1, "data"), made.constant(2, "requires_grad", True)
    given = data.facts if isinstance(data, Tensor) else Facts()
    facts = Facts(
        requires=None if wants is ... else bool(wants),
        shape=given.shape,
        dtype=given.dtype,
        where=given.where,
    )
    return Tensor(facts, made.place, PARAMETER)


@stub("torch._foreach_zero_")
def _cleared_together(made: Call) -> Value:
    items, rest = iteration.collected(made.machine, made.argument(0, "self"), made.node)
    parameters = [one.fields.get("of") for one in items if isinstance(one, Tensor) and one.cls is GRADIENT]
    for parameter in parameters:
        _clear(made, parameter)
    if rest is not None or len(parameters) < len(items):
        made.emit("clear", None, before=gradients.lost(made.machine, *made.machine.optimizers))
    return NONE
