"""Gradient scalers: they multiply losses with a large factor, and what is in `.grad` has it until something takes it away."""

from ta_lint.dryrun.machine.call import Call
from ta_lint.dryrun.machine.calling import call, hand_over
from ta_lint.dryrun.machine.counts import SCALE
from ta_lint.dryrun.machine.library import mapped, method, new_class, stub
from ta_lint.dryrun.machine.objects import attribute
from ta_lint.dryrun.stubs.torch import gradients
from ta_lint.dryrun.stubs.torch.tensors import Tensor, computed, some_loss, terms_of
from ta_lint.dryrun.stubs.torch.training import SCALED_BY, saved, stepped
from ta_lint.dryrun.values import FALSE, NONE, Function, Object, Unknown, Value, options

SCALER = new_class(
    "torch.amp.GradScaler",
    "torch.cuda.amp.GradScaler",
    "torch.amp.grad_scaler.GradScaler",
    "torch.cuda.amp.grad_scaler.GradScaler",
)


@method(SCALER, "__init__")
def _built(made: Call) -> Value:
    made.machine.state.write(made.own().fields, "enabled", made.kwargs.get("enabled", NONE))
    return NONE


def _is_off(scaler: Value) -> bool:
    return isinstance(scaler, Object) and scaler.fields.get("enabled") == FALSE


@method(SCALER, "scale")
def _scale(made: Call) -> Value:
    made.emit("scale", made.args[0])
    outputs = made.argument(1, "outputs")
    return outputs if _is_off(made.args[0]) else mapped(outputs, lambda one: _scaled(made, one), made.place)


def _scaled(made: Call, value: Value) -> Value:
    """A loss times the factor."""
    is_unknown = isinstance(value, Unknown) and value.type is None
    loss = some_loss(made.machine, value, made.place) if is_unknown else value
    if not isinstance(loss, Tensor):
        return value
    return computed(
        made.machine, [loss], made.place, forced=loss.facts.forced, scaled=True, terms=terms_of(loss)
    )


@method(SCALER, "unscale_")
def _unscaled(made: Call) -> Value:
    optimizer = made.argument(1, "optimizer")
    before = {} if _is_off(made.args[0]) else gradients.unscaled(made.machine, optimizer)
    made.emit("unscale", optimizer, before=before)
    return NONE


@method(SCALER, "update")
def _updated(made: Call) -> Value:
    made.emit("update", made.args[0])
    return NONE


@method(SCALER, "step")
def _step(made: Call) -> Value:
    own, optimizer, machine = made.own(), made.argument(1, "optimizer"), made.machine
    by = None if _is_off(own) else own
    if isinstance(optimizer, Object) and isinstance(optimizer.cls.find("step"), Function):
        with machine.switched("scaler", by):
            return call(machine, optimizer.cls.find("step") or NONE, [optimizer], {}, made.node)
    stepped(made, optimizer, by=by)
    return NONE


@method(SCALER, "__handed_over__")
def _handed_over(made: Call) -> Value:
    """Code out of sight gets the scaler: it may unscale, step and update."""
    gradients.rescaled(made.machine, made.machine.optimizers)
    made.emit("update", made.args[0], by=made.args[1])
    return NONE


@method(SCALER, "__call__")
def _goes_back(made: Call) -> Value:
    """As timm's scaler does: backward, and then what its further arguments say, such as a step."""
    optimizer = made.argument(2, "optimizer")
    backward = attribute(made.machine, made.argument(1, "loss"), "backward", made.node)
    call(made.machine, backward, [], {}, made.node)
    hand_over(made.machine, [optimizer], made.function, made.node)
    return NONE


@method(SCALER, "get_scale")
def _factor(made: Call) -> Value:
    return Unknown(SCALE, "float")


@method(SCALER, "is_enabled")
def _is_enabled(made: Call) -> Value:
    return Unknown("whether it is enabled", "bool")


@method(SCALER, "get_backoff_factor", "get_growth_factor", "get_growth_interval")
def _growth(made: Call) -> Value:
    return Unknown("a factor of the scaler", "float")


@method(SCALER, "set_backoff_factor", "set_growth_factor", "set_growth_interval")
def _growth_set(made: Call) -> Value:
    return NONE


method(SCALER, "state_dict", "load_state_dict")(saved)


@stub("ta_lint.scaled_by")
def _scaled_by(made: Call) -> Value:
    """A library's program says that an optimizer steps through a scaler from here on."""
    optimizer, scaler = made.args
    for one in options(optimizer):
        if isinstance(one, Object) and not _is_off(scaler):
            made.machine.state.write(one.fields, SCALED_BY, scaler)
    return NONE
