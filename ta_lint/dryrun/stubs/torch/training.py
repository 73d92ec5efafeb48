"""What a training step is made of: optimizers, schedulers, scalers, clipping, autograd's modes, saving and loading."""

from dataclasses import dataclass

from ta_lint.dryrun.machine import iteration
from ta_lint.dryrun.machine.call import Call
from ta_lint.dryrun.machine.calling import call
from ta_lint.dryrun.machine.library import (
    DICT,
    FUNCTION,
    OBJECT,
    define,
    family,
    find,
    list_of,
    method,
    new_class,
    stub,
)
from ta_lint.dryrun.stubs.torch.modules import MODULE
from ta_lint.dryrun.stubs.torch.tensors import Tensor, computed
from ta_lint.dryrun.values import (
    FALSE,
    NONE,
    TRUE,
    Class,
    External,
    Function,
    Known,
    Object,
    Sequence,
    Table,
    Unknown,
    Value,
    options,
)

OPTIMIZER = new_class("torch.optim.Optimizer", "torch.optim.optimizer.Optimizer")
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


@dataclass(frozen=True, slots=True)
class Group:
    """The parameters of one group of an optimizer, and whether these are all."""

    parameters: tuple[Tensor, ...]
    complete: bool


def held_by(optimizer: Object) -> Group:
    """What an optimizer updates."""
    groups = optimizer.fields.get("param_groups")
    found: dict[int, Tensor] = {}
    complete = isinstance(groups, Sequence) and groups.rest is None
    for group in groups.items if isinstance(groups, Sequence) else ():
        parameters = group.fields.get("params") if isinstance(group, Table) else None
        if not isinstance(parameters, Sequence) or parameters.rest is not None:
            complete = False
        for value in parameters.items if isinstance(parameters, Sequence) else ():
            for one in options(value):
                if isinstance(one, Tensor):
                    found[id(one)] = one
                else:
                    complete = False
    return Group(tuple(found.values()), complete)


@method(OPTIMIZER, "__init__")
def _optimizer(made: Call) -> Value:
    own = made.args[0]
    assert isinstance(own, Object)
    items, rest = iteration.collected(made.machine, made.argument(1, "params"), made.node)
    options_ = dict(made.kwargs)
    options_.pop("params", None)
    if len(made.args) > 2:
        options_.setdefault("lr", made.args[2])
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
    own = made.args[0]
    assert isinstance(own, Object)
    groups = own.fields.get("param_groups")
    if isinstance(groups, Sequence):
        made.machine.state.refill(
            groups, (*groups.items, _group(made, made.argument(1, "param_group"), {})), groups.rest
        )
    return NONE


@method(OPTIMIZER, "step")
def _step(made: Call) -> Value:
    own = made.args[0]
    assert isinstance(own, Object)
    closure = made.given(1, "closure")
    result: Value = NONE
    if closure is not None and closure != NONE:
        result = call(made.machine, closure, [], {}, made.node)
    made.emit("step", own)
    return result


@method(OPTIMIZER, "zero_grad")
def _zero_grad(made: Call) -> Value:
    made.emit("clear", made.args[0])
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
    made.emit("unknown", made.args[0], by=made.args[1])
    return NONE


@method(SCHEDULER, "__init__")
def _scheduler(made: Call) -> Value:
    own = made.args[0]
    assert isinstance(own, Object)
    made.machine.state.write(own.fields, "optimizer", made.argument(1, "optimizer"))
    made.emit("scheduler", own, of=made.argument(1, "optimizer"))
    return NONE


@method(SCHEDULER, "step")
def _schedule(made: Call) -> Value:
    made.emit("schedule", made.args[0])
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
    return computed(made.machine, [value], made.place) if isinstance(value, Tensor) else value


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
    made.emit("step", optimizer, scaled=True)
    return NONE


@method(SCALER, "get_scale", "is_enabled")
def _scaler_says(made: Call) -> Value:
    return Unknown("the scale", "float")


@stub("torch.nn.utils.clip_grad_norm_", "torch.nn.utils.clip_grad_value_", "torch.nn.utils.clip_grad.clip_grad_norm_", "torch.nn.utils.clip_grads_with_norm_")  # fmt: skip
def _clip(made: Call) -> Value:
    given = made.argument(0, "parameters")
    items, rest = (
        ((given,), None) if isinstance(given, Tensor) else iteration.collected(made.machine, given, made.node)
    )
    made.emit("clip", given, parameters=items, complete=rest is None)
    return Tensor()


# -- autograd's modes --------------------------------------------------------------------------------

MODE = Class("a mode of autograd", (OBJECT,))


def _recording(name: str, wants: bool | None) -> Class:
    """A context manager and decorator under which autograd records, or not."""
    cls = new_class(
        *(f"torch.{prefix}{name}" for prefix in ("", "autograd.", "autograd.grad_mode.")), bases=(MODE,)
    )

    def init(made: Call) -> Value:
        own = made.args[0]
        assert isinstance(own, Object)
        asked = made.given(1, "mode")
        if wants is None or name == "inference_mode":
            asked = TRUE if asked is None else asked
            turns = isinstance(asked, Known) and bool(asked.value)
            on: Value = (
                Known(turns is (name != "inference_mode"))
                if isinstance(asked, Known)
                else Unknown("the mode", "bool")
            )
        else:
            on = TRUE if wants else FALSE
        own.fields["wants"] = on
        if name == "set_grad_enabled":
            own.fields["before"] = Known(made.machine.modes["recording"])
            _set(made, on)
        return NONE

    method(cls, "__init__")(init)
    return cls


def _set(made: Call, wants: Value) -> None:
    made.machine.state.write(
        made.machine.modes, "recording", wants.value if isinstance(wants, Known) else None
    )


for _name, _wants in (
    ("no_grad", False),
    ("enable_grad", True),
    ("inference_mode", False),
    ("set_grad_enabled", None),
):
    _recording(_name, _wants)


@method(MODE, "__enter__")
def _enter(made: Call) -> Value:
    own = made.args[0]
    assert isinstance(own, Object)
    if "before" not in own.fields or own.cls.name != "torch.set_grad_enabled":
        own.fields["before"] = Known(made.machine.modes["recording"])
    _set(made, own.fields["wants"])
    return own


@method(MODE, "__exit__")
def _exit(made: Call) -> Value:
    own = made.args[0]
    assert isinstance(own, Object)
    _set(made, own.fields.get("before", TRUE))
    return NONE


@method(MODE, "__call__")
def _decorate(made: Call) -> Value:
    """`@torch.no_grad()` above a function."""
    own, function = made.args[0], made.args[1] if len(made.args) > 1 else NONE
    if isinstance(function, Function) and isinstance(own, Object):
        function.within = (own, *function.within)
    return function


for _name in ("no_grad", "inference_mode", "enable_grad"):
    _mode = find(f"torch.{_name}")
    assert isinstance(_mode, Class)

    def _new(made: Call, cls: Class = _mode) -> Value:
        """`@torch.no_grad` without a call decorates as well."""
        function = made.args[1] if len(made.args) > 1 else None
        own = Object(cls, made.place)
        if isinstance(function, Function):
            own.fields["wants"] = Known(cls.name.endswith("enable_grad"))
            function.within = (own, *function.within)
            return function
        return own

    method(_mode, "__new__")(_new)


@stub("torch.is_grad_enabled")
def _is_recording(made: Call) -> Value:
    on = made.machine.modes["recording"]
    return Unknown("the mode", "bool") if on is None else Known(on)


AUTOCAST = new_class(
    "torch.autocast", "torch.amp.autocast", "torch.cuda.amp.autocast", "torch.cpu.amp.autocast"
)


@method(AUTOCAST, "__init__", "__enter__", "__exit__")
def _autocast(made: Call) -> Value:
    return made.args[0] if made.name == "__enter__" else NONE


@method(AUTOCAST, "__call__")
def _under_autocast(made: Call) -> Value:
    return made.args[1] if len(made.args) > 1 else NONE


# -- wrappers ----------------------------------------------------------------------------------------


@stub("torch.compile", "torch.jit.script", "torch.jit.trace", "torch.quantization.prepare_qat")
def _wrapped(made: Call) -> Value:
    return made.args[0] if made.args else FUNCTION


WRAPPER = new_class(
    "torch.nn.parallel.DistributedDataParallel",
    "torch.nn.DataParallel",
    "torch.nn.parallel.DataParallel",
    bases=(MODULE,),
)


@method(WRAPPER, "__init__")
def _wrap(made: Call) -> Value:
    own = made.args[0]
    assert isinstance(own, Object)
    made.machine.state.write(own.fields, "module", made.argument(1, "module"))
    return NONE


@method(WRAPPER, "forward")
def _forward(made: Call) -> Value:
    own = made.args[0]
    assert isinstance(own, Object)
    return call(made.machine, own.fields["module"], made.args[1:], made.kwargs, made.node, loose=made.loose)


@stub("torch.save")
def _save(made: Call) -> Value:
    made.emit("save", made.argument(0, "obj"), file=made.argument(1, "f"))
    return NONE


@stub("torch.load")
def _load(made: Call) -> Value:
    made.emit("load", None, file=made.argument(0, "f"))
    return Unknown("what the file holds")


@stub("torch.utils.checkpoint.checkpoint", "torch.utils.checkpoint.checkpoint_sequential")
def _checkpoint(made: Call) -> Value:
    return call(made.machine, made.args[0], made.args[1:], {}, made.node) if made.args else NONE


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


for _name in ("zeros_", "ones_", "normal_", "uniform_", "constant_", "kaiming_normal_", "kaiming_uniform_", "xavier_normal_", "xavier_uniform_", "orthogonal_", "trunc_normal_", "eye_", "dirac_", "sparse_"):  # fmt: skip
    stub(f"torch.nn.init.{_name}")(lambda made: made.args[0] if made.args else NONE)
define(External("torch.distributed"), "torch.distributed")
