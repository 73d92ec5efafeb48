"""What a training step is made of: optimizers, schedulers, scalers, clipping, wrappers, checkpointing, saving and loading."""

import ast
import math
from collections.abc import Iterator
from functools import cache

from ta_lint.dryrun.machine import iteration
from ta_lint.dryrun.machine.call import Call
from ta_lint.dryrun.machine.calling import attempt, call, hand_over, perhaps
from ta_lint.dryrun.machine.last_batches import DECIDES, used
from ta_lint.dryrun.machine.library import (
    DICT,
    FUNCTION,
    OBJECT,
    UNSEEN,
    define,
    family,
    find,
    is_once,
    list_of,
    method,
    new_class,
    stub,
)
from ta_lint.dryrun.sources import read_of
from ta_lint.dryrun.stubs.torch import gradients
from ta_lint.dryrun.stubs.torch.lengths import LENGTH, plan_of
from ta_lint.dryrun.stubs.torch.tensors import Tensor, computed, tensors_in, written_to
from ta_lint.dryrun.stubs.torch.without_effect import without_effect
from ta_lint.dryrun.values import (
    NONE,
    REST,
    Class,
    External,
    Function,
    Hidden,
    Object,
    Sequence,
    Table,
    Unknown,
    Value,
    each_in,
    options,
)

OPTIMIZER = new_class("torch.optim.Optimizer", "torch.optim.optimizer.Optimizer", "torch.optim.*")
"""Any optimizer, and what the module has under a name that nobody knows."""
without_effect(OPTIMIZER, "lr", "learning_rate")
PRE_HOOKS = Hidden("what steps run before they use the gradients")
SCALED_BY = Hidden("the gradient scaler that an optimizer steps through")
SCHEDULER = new_class(
    "torch.optim.lr_scheduler.LRScheduler",
    "torch.optim.lr_scheduler._LRScheduler",
    "torch.optim.lr_scheduler.*",
)
"""Any scheduler, and what the module has under a name that nobody knows."""


def _optimizers(name: str) -> Value | None:
    module, last = name.split(".")[-2:]
    if name == f"torch.optim.{module}.{last}" and module == last.lower():
        return find(f"torch.optim.{last}")
    return new_class(name, bases=(OPTIMIZER,)) if name.count(".") == 2 and last[:1].isupper() else None


def _schedulers(name: str) -> Value | None:
    last = name.rpartition(".")[2]
    return new_class(name, bases=(SCHEDULER,)) if last[:1].isupper() else None


family("torch.optim.lr_scheduler.", _schedulers)
family("torch.optim.", _optimizers)
family("bitsandbytes.optim.", _optimizers)


_ADAM = "lr betas eps weight_decay"
POSITIONAL = {
    "Adadelta": "lr rho eps weight_decay", "Adagrad": "lr lr_decay weight_decay", "Adam": _ADAM, "Adamax": _ADAM, "AdamW": _ADAM,
    "ASGD": "lr lambd alpha t0 weight_decay", "NAdam": _ADAM, "RAdam": _ADAM, "RMSprop": "lr alpha eps weight_decay",
    "SGD": "lr momentum dampening weight_decay",
}  # fmt: skip
"""The arguments of optimizers after the parameters, in order."""


@method(OPTIMIZER, "__init__")
def _optimizer(made: Call) -> Value:
    own = made.own()
    items, rest = iteration.collected(made.machine, made.argument(1, "params"), made.node)
    step = own.cls.fields.get("step")
    if isinstance(step, Function) and any(_asks_gradients(cls.node) for cls in own.cls.mro if cls.node):
        # of a class of the program: torch wraps it here; a proximal step, say, asks no gradients
        step.after = lambda done: stepped(done, done.args[0])
    options_ = dict(made.kwargs)
    options_.pop("params", None)
    names = POSITIONAL.get(own.cls.name.removeprefix("torch.optim."), "lr").split()
    options_ = dict(zip(names, made.args[2:], strict=False)) | options_
    if made.loose:
        options_[REST] = Unknown("further options")  # type: ignore[index]
    if any(isinstance(one, Table) for one in items) or isinstance(rest, Table):
        groups = [_group(made, one, options_) for one in items]
    else:
        pairs = [one.items[1] if isinstance(one, Sequence) and len(one.items) == 2 else one for one in items]
        groups = [Table(DICT, made.place, {"params": list_of(pairs, rest), **options_})]
        rest = None
    made.machine.state.write(
        own.fields, "param_groups", list_of(groups, None if rest is None else _group(made, rest, options_))
    )
    made.machine.state.write(own.fields, "defaults", Table(DICT, made.place, dict(options_)))
    gradients.watch(made.machine, own)
    dtypes = {one: one.facts.dtype for one in tensors_in([own.fields["param_groups"]])}
    if is_once(made.argument(1, "params")):
        made.emit("gone over", made.argument(1, "params"))
    made.emit("optimizer", own, dtypes=dtypes)
    return NONE


@cache
def _asks_gradients(node: ast.AST) -> bool:
    """Whether the code of an optimizer mentions the gradients, or the step of another one."""
    return any(
        (isinstance(part, ast.Attribute) and part.attr in ("grad", "step"))
        or (isinstance(part, ast.Constant) and part.value == "grad")
        for part in ast.walk(node)
    )


def _group(made: Call, given: Value, defaults: dict[str, Value]) -> Value:
    if not isinstance(given, Table):
        return Unknown("a group of parameters")
    items, rest = iteration.collected(
        made.machine, given.fields.get("params", Unknown("parameters")), made.node
    )
    return Table(DICT, made.place, {**defaults, **given.fields, "params": list_of(items, rest)})


@method(OPTIMIZER, "add_param_group")
def _add_group(made: Call) -> Value:
    own = made.own()
    made.emit("add group", own, group=made.argument(1, "param_group"))
    groups = own.fields.get("param_groups")
    if isinstance(groups, Sequence):
        made.machine.state.refill(
            groups, (*groups.items, _group(made, made.argument(1, "param_group"), {})), groups.rest
        )
    return NONE


@method(OPTIMIZER, "step")
def _step(made: Call) -> Value:
    own = made.own()
    if len(made.args) > 2:
        made.machine.throw(find("builtins.TypeError"))
    closure = made.given(1, "closure")
    result: Value = NONE
    if closure is not None and closure != NONE:
        if not isinstance(closure, Function):  # such as a dictionary of options with a closure in it
            made.emit("unknown", own, before=gradients.lost(made.machine, own))
        result = call(made.machine, closure, [], {}, made.node)
        if own.cls.name.endswith(".LBFGS"):  # it searches along a line, unless there is no gradient
            perhaps(made.machine, closure, made.node)
    stepped(made, own)
    return result


def stepped(made: Call, optimizer: Value, *, by: Value | None = None) -> None:
    """An optimizer steps: by a gradient scaler, if one takes the factor away before."""
    machine = made.machine
    for hook in _pre_hooks(optimizer):
        perhaps(machine, hook, made.node)
    of_library = optimizer.fields.get(SCALED_BY) if isinstance(optimizer, Object) else None
    by = by or machine.modes["scaler"] or of_library
    if by is not None:
        gradients.unscaled(machine, optimizer)
    factors, before = gradients.factors(machine, options(optimizer)), gradients.used(machine, optimizer)
    made.emit("step", optimizer, by=by, before=before, factors=factors)
    if of_library is not None:
        made.emit("update", of_library)


def _pre_hooks(optimizer: Value) -> tuple[Value, ...]:
    hooks = optimizer.fields.get(PRE_HOOKS) if isinstance(optimizer, Object) else None
    return hooks.items if isinstance(hooks, Sequence) else ()


@method(OPTIMIZER, "zero_grad")
def _zero_grad(made: Call) -> Value:
    own = made.own()
    made.emit("clear", own, before=gradients.cleared(made.machine, own, (), complete=False))
    return NONE


@method(OPTIMIZER, "state_dict", "load_state_dict")
@method(SCHEDULER, "state_dict", "load_state_dict")
def saved(made: Call) -> Value:
    if made.name == "state_dict":
        made.emit("save", made.args[0])
        return Object(STATE, made.place, {"of": made.args[0]})
    made.emit("load", made.args[0], state=made.argument(1, "state_dict"))
    return NONE


STATE = Class("the state of an optimizer", (OBJECT,))


@method(OPTIMIZER, "__handed_over__")
def _handed_over(made: Call) -> Value:
    """Code out of sight gets the optimizer: it may do with it what it likes."""
    made.emit(
        "unknown",
        made.args[0],
        by=made.args[1],
        alone=made.node in made.machine.alone,
        before=gradients.lost(made.machine, made.own()),
    )
    return NONE


@method(SCHEDULER, "__init__")
def _scheduler(made: Call) -> Value:
    own = made.own()
    parts = [one for given in [*made.args[1:], *made.kwargs.values()] for one in _schedulers_in(given)]
    optimizer = made.argument(1, "optimizer")
    holds_others = (
        isinstance(optimizer, Sequence) or optimizer == NONE
    )  # as `ChainedScheduler`, which gets nothing else
    if parts and holds_others:
        optimizer = parts[0].fields.get("optimizer", optimizer)
    made.machine.state.write(own.fields, "optimizer", optimizer)
    plan = plan_of(made, own.cls.name.rpartition(".")[2], parts)
    if plan.length is not None:
        own.fields[LENGTH] = plan.length
    made.emit("scheduler", own, of=optimizer, parts=tuple(parts), plan=plan, told=_is_told(made))
    _ask_for_rates(made)
    return NONE


def _ask_for_rates(made: Call) -> None:
    """Torch asks a schedule of the program's own for its rates: where it is made, and in each step."""
    own = made.own()
    rates = own.cls.find("get_lr")
    if isinstance(rates, Function):
        write = made.machine.state.write
        write(own.fields, "last_epoch", Unknown("the step that it is at", "int"))
        write(own.fields, "base_lrs", list_of((), Unknown("a learning rate", "float")))
        attempt(made.machine, rates, [own], made.node)


def _is_told(made: Call) -> bool:
    """Whether a schedule gets the step that it starts at, itself or in a function."""
    given = [one for value in made.values() for one in options(value)]
    functions = [one for one in given if isinstance(one, Function)]
    named = {(one, part.id) for one in functions for part in ast.walk(one.node) if isinstance(part, ast.Name)}
    known = [one.frame.names[name] for one, name in named if name in one.frame.names]
    return "last_epoch" in made.kwargs or any(read_of(one) is not None for one in [*given, *known])


def _schedulers_in(given: Value) -> Iterator[Object]:
    """The schedulers that a value is, or holds in a list."""
    return (one for one in each_in((given,)) if isinstance(one, Object) and one.cls.is_a(SCHEDULER))


@method(SCHEDULER, "step")
def _schedule(made: Call) -> Value:
    has_argument = made.loose or bool(made.args[1:] or made.kwargs)
    is_used = made.node not in made.machine.alone
    arguments = len(made.args) - 1 + len(made.kwargs)
    used(made.machine, (*made.args[1:], *made.kwargs.values()), made.node, DECIDES)
    made.emit("schedule", made.args[0], has_argument=has_argument, is_used=is_used, arguments=arguments)
    _ask_for_rates(made)
    return NONE


@method(UNSEEN, "step")
def _stepped_by_something(made: Call) -> Value:
    """Of something that is not known: perhaps of the schedule that is looked at."""
    receiver, *args = made.args
    made.emit("unseen step", receiver)
    gradients.perhaps_computed(made.machine, made.machine.optimizers)
    given = [receiver, *args] if isinstance(receiver, Object) else args
    why = getattr(receiver, "why", "") or f"{getattr(receiver, 'name', 'something')}.step is out of sight"
    hand_over(made.machine, [*given, *made.kwargs.values()], why, made.node)
    return Unknown(why)


@method(SCHEDULER, "__handed_over__", "__kept__")
def _out_of_sight(made: Call) -> Value:
    """Code out of sight gets the schedule, or it is kept where nobody sees it: it may be stepped there."""
    made.emit("hand over", made.args[0], by=NONE)
    return NONE


@method(SCHEDULER, "get_last_lr", "get_lr")
def _rates(made: Call) -> Value:
    return list_of((), Unknown("a learning rate", "float"))


@stub("torch.nn.utils.clip_grad_norm", "torch.nn.utils.clip_grad_norm_", "torch.nn.utils.clip_grad_value_", "torch.nn.utils.clip_grad.clip_grad_norm_", "torch.nn.utils.clip_grads_with_norm_")  # fmt: skip
def _clip(made: Call) -> Value:
    given = made.argument(0, "parameters")
    if is_once(given):
        made.emit("gone over", given)
    bound = "clip_value" if made.name == "clip_grad_value_" else "max_norm"
    limit = made.constant(1, bound)
    if not isinstance(limit, int | float) or limit < math.inf:  # else it measures, and clips nothing
        several = [_clipped(made, one) for one in options(given)]
        every = {id(one): one for parameters, _ in several for one in parameters}
        further = [one for _, rest in several if rest is not None for one in options(rest)]
        complete = len(several) == 1 and several[0][1] is None
        certain = every.values() if len(several) == 1 else ()
        before = gradients.seen(made.machine, certain, complete=complete)
        made.emit(
            "clip", given, parameters=[*every.values(), *further], complete=complete, before=before,
            factors=gradients.factors(made.machine, before, anywhere=True), limit=made.argument(1, bound),
        )  # fmt: skip
    return Tensor()


def _clipped(made: Call, given: Value) -> tuple[list[Tensor], Value | None]:
    """The parameters whose gradients are clipped, and what may come after them."""
    if isinstance(given, Tensor):
        return [given], None
    items, rest = iteration.collected(made.machine, given, made.node)
    return [one for one in items if isinstance(one, Tensor)], rest


# -- wrappers ----------------------------------------------------------------------------------------


@stub(
    "torch.compile",
    "torch.jit.script",
    "torch.jit.trace",
    "torch.quantization.prepare_qat",
    "torch.ao.quantization.prepare_qat",
)
def _wrapped(made: Call) -> Value:
    return made.args[0] if made.args else FUNCTION


@stub("torch.func.functional_call", "torch.nn.utils.stateless.functional_call")
def _functional_call(made: Call) -> Value:
    given = made.argument(2, "args")
    args = list(given.items) if isinstance(given, Sequence) else [given]
    result = call(made.machine, made.args[0], args, {}, made.node)
    return (
        computed(made.machine, [result, made.argument(1, "parameters")], made.place)
        if isinstance(result, Tensor)
        else result
    )


def _initialised(made: Call) -> Value:
    """The tensor itself, with new numbers."""
    tensor = made.argument(0, "tensor")
    made.emit("initialise", written_to(tensor), by=made.name.rstrip("_"))
    return tensor


for _name in "constant dirac eye kaiming_normal kaiming_uniform normal ones orthogonal sparse trunc_normal uniform xavier_normal xavier_uniform zeros".split():
    stub(f"torch.nn.init.{_name}", f"torch.nn.init.{_name}_")(_initialised)


@method(
    OPTIMIZER,
    "register_load_state_dict_post_hook",
    "register_load_state_dict_pre_hook",
    "register_state_dict_post_hook",
    "register_state_dict_pre_hook",
    "register_step_post_hook",
)
def _hooked(made: Call) -> Value:
    perhaps(made.machine, made.argument(1, "hook"), made.node)
    return Unknown("the handle of a hook", "handle")


@method(OPTIMIZER, "register_step_pre_hook")
def _hooked_before_steps(made: Call) -> Value:
    own = made.own()
    hooks = list_of([*_pre_hooks(own), made.argument(1, "hook")])
    made.machine.state.write(own.fields, PRE_HOOKS, hooks)
    return Unknown("the handle of a hook", "handle")


@stub("torch.nn.utils.get_total_norm")
def _norm(made: Call) -> Value:
    return Tensor()


define(External("torch.distributed"), "torch.distributed")
