"""Autograd's modes: whether it records, and autocast, as context managers and decorators."""

from ta_lint.dryrun.machine.call import Call
from ta_lint.dryrun.machine.library import (
    OBJECT,
    UNSEEN,
    find,
    method,
    new_class,
    stub,
)
from ta_lint.dryrun.machine.modes import Chooser, Half
from ta_lint.dryrun.values import (
    FALSE,
    NONE,
    TRUE,
    Class,
    Function,
    Known,
    Object,
    Unknown,
    Value,
    options,
)

MODE = Class("a mode of autograd", (OBJECT,))


def _recording(name: str, wants: bool | None) -> Class:
    """A context manager and decorator under which autograd records, or not."""
    cls = new_class(
        *(f"torch.{prefix}{name}" for prefix in ("", "autograd.", "autograd.grad_mode.")), bases=(MODE,)
    )

    def init(made: Call) -> Value:
        own = made.own()
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
    own = made.own()
    if "before" not in own.fields or own.cls.name != "torch.set_grad_enabled":
        own.fields["before"] = Known(made.machine.modes["recording"])
    _set(made, own.fields["wants"])
    return own


@method(MODE, "__exit__")
def _exit(made: Call) -> Value:
    own = made.own()
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
    on = made.machine.mode("recording")
    return Unknown("the mode", "bool") if on is None else Known(on)


AUTOCAST = new_class(
    "torch.autocast", "torch.amp.autocast", "torch.cuda.amp.autocast", "torch.cpu.amp.autocast"
)


@method(AUTOCAST, "__init__")
def _autocast(made: Call) -> Value:
    """Old classes get first whether it is on, and `torch.autocast` gets the kind of device first."""
    own, first = made.own(), made.argument(1, "device_type")
    at = 3 if isinstance(first, Known) and isinstance(first.value, str) else 1
    asked = made.argument(at, "enabled", True)
    own.fields["wants"] = Known(
        asked.value if isinstance(asked, Known) and isinstance(asked.value, bool) else None
    )
    own.fields["chooser"] = Chooser(None if asked == FALSE else own.made or made.place)
    own.fields["half"] = Half(asked != FALSE and _is_half(made.argument(2, "dtype"), first))
    return NONE


def _is_half(dtype: Value, first: Value) -> bool:
    """Whether autocast computes in float16: it is told to, or chooses it, as it does on CUDA, for which the old classes are."""
    if dtype != NONE:
        return dtype in (find("torch.float16"), find("torch.half"))
    return first in (NONE, TRUE) or Known("cuda") in options(first)


@method(UNSEEN, "autocast")
def _of_unseen(made: Call) -> Value:
    """The accelerator or fabric that nobody knows has its own."""
    own = Object(AUTOCAST, made.place)
    own.fields.update({"wants": NONE, "chooser": Chooser(made.place)})
    return own


@method(AUTOCAST, "__enter__")
def _chosen(made: Call) -> Value:
    """From here on, the precision of an operation depends on which it is."""
    own, modes = made.own(), made.machine.modes
    own.fields["before"] = Known(made.machine.mode("autocast"))
    for name, default in _OF_AUTOCAST.items():
        own.fields[f"{name} before"] = modes[name]
        made.machine.state.write(modes, name, own.fields.get(name, default))
    made.machine.state.write(modes, "autocast", own.fields.get("wants", NONE).value)
    return own


@method(AUTOCAST, "__exit__")
def _as_before(made: Call) -> Value:
    own, modes = made.own(), made.machine.modes
    made.machine.state.write(modes, "autocast", own.fields.get("before", FALSE).value)
    for name, default in _OF_AUTOCAST.items():
        made.machine.state.write(modes, name, own.fields.get(f"{name} before", default))
    return NONE


_OF_AUTOCAST = {"chooser": Chooser(), "half": Half()}
"""What it sets beside that it is on."""


@stub("torch.set_autocast_enabled", "torch.set_autocast_cache_enabled", "torch.set_autocast_cpu_enabled")
def _set_autocast(made: Call) -> Value:
    made.machine.state.write(made.machine.modes, "autocast", None)
    return NONE


method(AUTOCAST, "__call__")(_decorate)


@stub("ta_lint.precision")
def _precision(made: Call) -> Value:
    """A library gets a precision to train in."""
    if made.argument(0, "precision") not in _FULL:
        made.machine.state.write(made.machine.modes, "autocast", None)
    return NONE


_FULL = (NONE, *map(Known, (False, 32, "32", "32-true", "fp32", "no")))
"""The precisions in which everything is as it is without a library."""
