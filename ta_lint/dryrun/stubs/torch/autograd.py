"""`torch.autograd.Function`: operations whose backward the program writes itself."""

from dataclasses import replace

from ta_lint.dryrun.machine.call import Call
from ta_lint.dryrun.machine.calling import call
from ta_lint.dryrun.machine.library import CLASSMETHOD, attribute_of, find, method, new_class, stub, tuple_of
from ta_lint.dryrun.stubs.torch.tensors import Facts, Tensor, computed
from ta_lint.dryrun.values import NONE, Class, Object, Sequence, Unknown, Value

FUNCTION = new_class("torch.autograd.Function", "torch.autograd.function.Function")


@stub("torch.autograd.Function.apply")
def _apply(made: Call) -> Value:
    """Autograd leads from what `forward` gives to the arguments, whatever `forward` does with them."""
    cls, args = made.own(Class), made.args[1:]
    facts = computed(made.machine, args, made.place).facts
    forward = cls.find("forward")
    if forward is None:
        return Tensor(facts, made.place)
    if isinstance(forward, Object) and "function" in forward.fields:
        forward = forward.fields["function"]
    context = [] if isinstance(cls.find("setup_context"), Object) else [Object(_CONTEXT, made.place)]
    with made.machine.switched("recording", False):
        result = call(made.machine, forward, [*context, *args], made.kwargs, made.node, loose=made.loose)
    return leads_to(result, facts, made)


def leads_to(value: Value, facts: Facts, made: Call) -> Value:
    """A result whose tensors autograd leads from to where these facts lead."""
    if isinstance(value, Sequence):
        rest = None if value.rest is None else leads_to(value.rest, facts, made)
        return Sequence(value.cls, tuple(leads_to(one, facts, made) for one in value.items), rest, made.place)
    if isinstance(value, Tensor):
        return Tensor(replace(facts, shape=value.facts.shape, dtype=value.facts.dtype), made.place)
    return Tensor(facts, made.place) if isinstance(value, Unknown) and value.type is None else value


FUNCTION.fields["apply"] = Object(CLASSMETHOD, None, {"function": find("torch.autograd.Function.apply")})

_CONTEXT = new_class("torch.autograd.function.FunctionCtx")


@method(
    _CONTEXT,
    "mark_dirty",
    "mark_non_differentiable",
    "save_for_backward",
    "save_for_forward",
    "set_materialize_grads",
)
def _saved(made: Call) -> Value:
    if made.name == "save_for_backward" and isinstance(made.args[0], Object):
        made.machine.state.write(made.args[0].fields, "saved_tensors", tuple_of(made.args[1:]))
    return NONE


@attribute_of(_CONTEXT, "needs_input_grad")
def _needed(made: Call) -> Value:
    return tuple_of((), Unknown("whether a gradient is needed", "bool"))
