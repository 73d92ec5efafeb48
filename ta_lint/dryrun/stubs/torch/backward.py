"""Gradients go back: the backward passes of tensors, of numbers and of what nobody knows, and the hooks that see them."""

from dataclasses import replace

from ta_lint.dryrun.machine.amounts import mixed
from ta_lint.dryrun.machine.call import Call
from ta_lint.dryrun.machine.calling import call
from ta_lint.dryrun.machine.calling import perhaps as perhaps_called
from ta_lint.dryrun.machine.library import NUMBER, UNSEEN, method, stub, tuple_of
from ta_lint.dryrun.stubs.torch import gradients, outputs
from ta_lint.dryrun.stubs.torch.graphs import use
from ta_lint.dryrun.stubs.torch.tensors import (
    BOUNDED,
    FIRST_ORDER,
    GRADIENT,
    NOTHING,
    PARAMETER,
    TENSOR,
    Facts,
    Tensor,
    computed,
    ended,
    perhaps_of,
    roots_of,
    some_loss,
    tensors_in,
    terms_of,
    why_unknown,
)
from ta_lint.dryrun.values import NONE, Place, Sequence, Unknown, Value, cuts_of


def wanted(made: Call, *leaves: Value, handed: bool = False) -> None:
    """The program asks for the gradients of these, or code out of sight gets them and may; it matters for those that were told to have one,
    as an input that an attack changes.
    """
    for leaf in tensors_in(leaves):
        if leaf.facts.forced or (leaf.takes_gradient and leaf.cls is not PARAMETER):
            made.emit("gradient", leaf, handed=handed)


@method(TENSOR, "backward")
def _backward(made: Call) -> Value:
    own = made.own(Tensor)
    _back(made, own)
    return NONE


def _back(made: Call, own: Tensor) -> None:
    """Gradients go back from a tensor, and what checkpointing has kept nothing of runs again, the last first."""
    facts = own.facts
    roots, perhaps = roots_of(own), perhaps_of(own)
    complete = not (perhaps or facts.open)
    before = gradients.computed(made.machine, roots, complete=complete, scaled=facts.scaled)
    creates, retains = made.constant(3, "create_graph", False), made.constant(2, "retain_graph", None)
    outputs.used(made, outputs.BACK, [own])
    made.emit(
        "backward", own, roots=roots, perhaps=perhaps, open=facts.open, flat=facts.flat, cuts=facts.cuts,
        forced=facts.forced, before=before, starts=facts.graph.starts, used=frozenset(one for one in facts.graph.starts if one.is_used),
        retains=retains is True and creates is False, creates=creates is not False,
        half=facts.half and facts.scaled is False, terms=terms_of(own), chooser=made.machine.modes["chooser"],
    )  # fmt: skip
    use(made.machine, facts.graph, keeps=creates is not False or retains not in (None, False))
    for function, args, kwargs in reversed(facts.again):
        call(made.machine, function, list(args), dict(kwargs), made.node)
    for hook, tensor, place in made.machine.hooks:
        gradient = Tensor(Facts(source=tensor), made.place, GRADIENT)
        gradient.fields["of"] = tensor
        given = perhaps_called(made.machine, hook, made.node, gradient)
        if isinstance(given, Tensor) and given.facts.scale and given.facts.scale[0] == BOUNDED:
            _clipped_by_hook(made, own, tensor, place, given.facts.scale[1])


def _clipped_by_hook(made: Call, loss: Tensor, tensor: Value, place: Place, limit: Value) -> None:
    """A hook clips the gradient of a parameter, of which nothing can have taken a factor away by then."""
    leaves = [one for one in tensors_in([tensor]) if one.takes_gradient]
    if leaves or (isinstance(tensor, Unknown) and not tensor.got):
        before = gradients.seen(made.machine, leaves, complete=bool(leaves))
        factors = dict.fromkeys(before, loss.facts.scaled)
        clip = made.emit(
            "clip", tensor, parameters=leaves or [*loss.facts.roots], complete=bool(leaves), before=before, factors=factors, limit=limit, hook=tensor
        )  # fmt: skip
        made.machine.events[-1] = replace(clip, place=place)


@method(TENSOR, "register_hook", "register_post_accumulate_grad_hook")
@method(UNSEEN, "register_hook", "register_post_accumulate_grad_hook")
def _hooked(made: Call) -> Value:
    hook = made.argument(1, "hook"), made.args[0], made.place
    made.emit("hook", made.args[0])
    if hook not in made.machine.hooks:
        made.machine.hooks.append(hook)
    return Unknown("the handle of a hook", "handle")


@method(NUMBER, "backward")
def _backward_of_a_number(made: Call) -> Value:
    """A number has no graph, and no such method: the program gets no further."""
    _back(made, Tensor(Facts(cuts=cuts_of(made.args[0])), made.place))
    return NONE


@method(UNSEEN, "backward", "manual_backward")
def _backward_of_something(made: Call) -> Value:
    """Of a loss that is not known, or of one that something out of sight gets, such as an engine, which may clear and step by itself."""
    loss = made.given(1, "loss")
    mixed(made.machine, loss or made.args[0])
    outputs.used(made, outputs.BACK, made.args)
    losses = list(tensors_in([loss])) if loss is not None else []
    _back(
        made,
        losses[0] if losses else some_loss(made.machine, made.args[0] if loss is None else loss, made.place),
    )
    if loss is not None:
        made.emit("unknown", None, before=gradients.lost(made.machine, *made.machine.optimizers))
    return NONE


@stub("torch.autograd.backward")
def _backward_of(made: Call) -> Value:
    for value in made.args[:1]:
        for own in (
            [some_loss(made.machine, value, made.place)]
            if isinstance(value, Unknown)
            else tensors_in([value])
        ):
            _back(made, own)
    return NONE


@stub("torch.autograd.grad")
def _gradients(made: Call) -> Value:
    given = made.argument(0, "outputs")
    count = made.argument(1, "inputs")
    wanted(made, count)
    outputs.used(made, outputs.BACK, [given])
    outer = frozenset(start for one in tensors_in([given]) for start in one.facts.graph.starts)
    made.emit("differentiate", starts=outer, open=why_unknown(given))
    result = computed(made.machine, [given], made.place)
    creates = made.constant(4, "create_graph", False)
    if creates is False:
        facts = Facts(cuts=ended(result, FIRST_ORDER, made.place))
    else:  # only what is multiplied with the input stays in its gradient
        facts = result.facts
        facts = replace(facts, roots=NOTHING, perhaps=facts.roots | facts.perhaps, requires=None)
    gradient = Tensor(facts, made.place)
    items = (
        [Tensor(gradient.facts, made.place) for _ in count.items]
        if isinstance(count, Sequence)
        else [gradient]
    )
    return tuple_of(items, count.rest and gradient if isinstance(count, Sequence) else None)
