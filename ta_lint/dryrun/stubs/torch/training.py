"""What a training step is made of: optimizers, schedulers, scalers, clipping, wrappers, checkpointing, saving and loading."""

import math
from collections.abc import Iterator
from dataclasses import replace

from ta_lint.dryrun.machine import iteration
from ta_lint.dryrun.machine.call import Call
from ta_lint.dryrun.machine.calling import call, hand_over, perhaps
from ta_lint.dryrun.machine.library import (
    DICT,
    FUNCTION,
    OBJECT,
    UNSEEN,
    define,
    family,
    find,
    keeps,
    list_of,
    method,
    new_class,
    stub,
)
from ta_lint.dryrun.machine.objects import attribute
from ta_lint.dryrun.stubs.torch import gradients
from ta_lint.dryrun.stubs.torch.modules import MODULE
from ta_lint.dryrun.stubs.torch.tensors import Tensor, computed
from ta_lint.dryrun.values import (
    DATA,
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
    options,
)

OPTIMIZER = new_class("torch.optim.Optimizer", "torch.optim.optimizer.Optimizer")
PRE_HOOKS = Hidden("what steps run before they use the gradients")
SCHEDULER = new_class("torch.optim.lr_scheduler.LRScheduler", "torch.optim.lr_scheduler._LRScheduler")
SCALER = new_class(
    "torch.amp.GradScaler",
    "torch.cuda.amp.GradScaler",
    "torch.amp.grad_scaler.GradScaler",
    "torch.cuda.amp.grad_scaler.GradScaler",
)


def _optimizers(name: str) -> Value | None:
    last = name.rpartition(".")[2]
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
    if isinstance(
        step := own.cls.fields.get("step"), Function
    ):  # of a class of the program: torch wraps it here
        step.after = lambda done: _stepped(done, done.args[0])
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
    made.emit("optimizer", own)
    return NONE


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
    _stepped(made, own)
    return result


def _stepped(made: Call, optimizer: Value, *, scaled: bool = False) -> None:
    for hook in _pre_hooks(optimizer):
        perhaps(made.machine, hook, made.node)
    before = gradients.used(made.machine, optimizer)
    made.emit("step", optimizer, scaled=scaled, before=before, path=made.machine.assumed)


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
@method(SCALER, "state_dict", "load_state_dict")
def _state(made: Call) -> Value:
    saves = made.name == "state_dict"
    made.emit("save" if saves else "load", made.args[0])
    return Object(_STATE, made.place, {"of": made.args[0]}) if saves else NONE


_STATE = Class("the state of an optimizer", (OBJECT,))


@method(OPTIMIZER, "__handed_over__")
def _handed_over(made: Call) -> Value:
    """Code out of sight gets the optimizer: it may do with it what it likes."""
    made.emit("unknown", made.args[0], by=made.args[1], before=gradients.lost(made.machine, made.own()))
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
    made.emit("scheduler", own, of=optimizer, parts=tuple(parts))
    return NONE


def _schedulers_in(given: Value) -> Iterator[Object]:
    """The schedulers that a value is, or holds in a list."""
    for one in options(given):
        if isinstance(one, Sequence):
            yield from (each for item in one.every for each in _schedulers_in(item))
        elif isinstance(one, Object) and one.cls.is_a(SCHEDULER):
            yield one


@method(SCHEDULER, "step")
def _schedule(made: Call) -> Value:
    has_argument = made.loose or bool(made.args[1:] or made.kwargs)
    is_used = made.node not in made.machine.alone
    made.emit("schedule", made.args[0], has_argument=has_argument, is_used=is_used, path=made.machine.assumed)
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


@method(SCALER, "__init__")
def _scaler(made: Call) -> Value:
    return NONE


@method(SCALER, "scale")
def _scale(made: Call) -> Value:
    made.emit("scale", made.args[0])
    value = made.argument(1, "outputs")
    if not isinstance(value, Tensor):
        return value
    scaled = computed(made.machine, [value], made.place).facts
    return Tensor(replace(scaled, forced=value.facts.forced), made.place)


@method(SCALER, "unscale_", "update", "step")
def _scaler_acts(made: Call) -> Value:
    name = made.name
    if name == "update":
        made.emit("update", made.args[0])
        return NONE
    optimizer = made.argument(1, "optimizer")
    if name == "unscale_":
        made.emit("unscale", optimizer)
        return NONE
    if isinstance(optimizer, Object) and isinstance(optimizer.cls.find("step"), Function):
        return call(made.machine, optimizer.cls.find("step") or NONE, [optimizer], {}, made.node)
    _stepped(made, optimizer, scaled=True)
    return NONE


@method(SCALER, "__call__")
def _goes_back(made: Call) -> Value:
    """As timm's scaler does: backward, and then what its further arguments say, such as a step."""
    optimizer = made.argument(2, "optimizer")
    backward = attribute(made.machine, made.argument(1, "loss"), "backward", made.node)
    call(made.machine, backward, [], {}, made.node)
    hand_over(made.machine, [optimizer], made.function, made.node)
    return NONE


@method(SCALER, "get_scale", "is_enabled")
def _scaler_says(made: Call) -> Value:
    return Unknown("the scale", "float")


@stub("torch.nn.utils.clip_grad_norm", "torch.nn.utils.clip_grad_norm_", "torch.nn.utils.clip_grad_value_", "torch.nn.utils.clip_grad.clip_grad_norm_", "torch.nn.utils.clip_grads_with_norm_")  # fmt: skip
def _clip(made: Call) -> Value:
    given = made.argument(0, "parameters")
    items, rest = (
        ((given,), None) if isinstance(given, Tensor) else iteration.collected(made.machine, given, made.node)
    )
    limit = made.constant(1, "clip_value" if made.name == "clip_grad_value_" else "max_norm")
    if not isinstance(limit, int | float) or limit < math.inf:  # else it measures, and clips nothing
        parameters = [one for one in items if isinstance(one, Tensor)]
        before = gradients.seen(made.machine, parameters, complete=rest is None)
        made.emit("clip", given, parameters=items, complete=rest is None, before=before)
    return Tensor()


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


WRAPPER = Class("a wrapper of a module", (MODULE,))
for _names in (
    ("torch.nn.parallel.DistributedDataParallel", "torch.nn.parallel.distributed.DistributedDataParallel"),
    ("torch.nn.DataParallel", "torch.nn.parallel.DataParallel"),
):
    new_class(*_names, bases=(WRAPPER,))


keeps(WRAPPER, "module")


@method(WRAPPER, "forward")
def _forward(made: Call) -> Value:
    own = made.own()
    return call(made.machine, own.fields["module"], made.args[1:], made.kwargs, made.node, loose=made.loose)


@stub("torch.save")
def _save(made: Call) -> Value:
    made.emit("save", made.argument(0, "obj"), file=made.argument(1, "f"))
    return NONE


@stub("torch.load")
def _load(made: Call) -> Value:
    made.emit("load", None, file=made.argument(0, "f"))
    return Unknown("what the file holds", DATA)


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


for _name in "constant dirac eye kaiming_normal kaiming_uniform normal ones orthogonal sparse trunc_normal uniform xavier_normal xavier_uniform zeros".split():
    stub(f"torch.nn.init.{_name}", f"torch.nn.init.{_name}_")(lambda made: made.argument(0, "tensor"))


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


@method(SCALER, "get_backoff_factor", "get_growth_factor", "get_growth_interval")
def _factor(made: Call) -> Value:
    return Unknown("a factor of the scaler", "float")


@method(SCALER, "set_backoff_factor", "set_growth_factor", "set_growth_interval")
def _factor_set(made: Call) -> Value:
    return NONE


@stub("torch.nn.utils.get_total_norm")
def _norm(made: Call) -> Value:
    return Tensor()


define(External("torch.distributed"), "torch.distributed")
