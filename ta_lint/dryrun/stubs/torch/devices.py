"""Devices, and what goes to one that is perhaps an accelerator."""

from collections.abc import Iterable

from ta_lint.dryrun.machine.call import Call
from ta_lint.dryrun.machine.library import attribute_of, method, new_class
from ta_lint.dryrun.values import (
    DATA,
    FALSE,
    NONE,
    TRUE,
    External,
    Hidden,
    Known,
    Object,
    Unknown,
    Value,
    options,
)

DEVICE = new_class("torch.device")
"""Known by its name, so that `x.to(device)` keeps the dtype."""
OF_A_TENSOR = "the device of a tensor"
"""Why a device is not known that something is on already."""


@method(DEVICE, "__init__", "__enter__", "__exit__")
def _device(made: Call) -> Value:
    if made.name == "__init__":
        fields, state = made.own().fields, made.machine.state
        state.write(fields, "name", made.argument(1, "type"))
        state.write(fields, "its type", _not_known("type"))
        state.write(fields, "its index", made.given(2, "index") or _not_known("index"))
    return made.args[0] if made.name == "__enter__" else NONE


@attribute_of(DEVICE, "type", "index")
def _of_device(made: Call) -> Value:
    return made.own().fields.get(f"its {made.name}") or _not_known(made.name)


def _not_known(name: str) -> Unknown:
    return Unknown(f"the {name} of a device", "str" if name == "type" else DATA)


def moves(made: Call) -> bool:
    """Whether a tensor or a module goes to a device that is perhaps an accelerator; of the first it is told."""
    asked = made.name in ("cuda", "xpu") or (
        made.name == "to" and any(map(may_be_accelerator, (*made.args[1:2], *made.kwargs.values())))
    )
    if asked and not made.machine.accelerates:
        made.machine.accelerates = True
        made.emit("accelerate")
    return asked


CPU = Known("cpu")


def named(device: Value | None) -> Value:
    """The device that something is made on, as the program names it: one that it names twice is the same."""
    if device is None or device == NONE:
        return CPU
    name = device.fields.get("name") if isinstance(device, Object) and device.cls.is_a(DEVICE) else None
    return name if type(name) is Known else device


def destination(made: Call, before: Value | None) -> Value | None:
    """The device on which something is after a call that moves it; None if nobody knows that."""
    if made.loose or made.name not in ("cpu", "cuda", "to", "type", "xpu"):
        return None
    asked = [made.kwargs[name] for name in ("device", "dtype") if name in made.kwargs]
    given = [*made.args[1:2], *asked][:1]  # a dtype after a device says nothing of it
    if made.name in ("cuda", "xpu"):
        return Known(made.name) if not given else None
    if made.name == "cpu":
        return CPU
    names = [getattr(one, "name", getattr(one, "value", None)) for one in given]
    if len(given) != 1 or made.name == "type":
        of_type = names[0] if len(names) == 1 and isinstance(names[0], str) else ""
        is_old = of_type.startswith("torch.") and of_type.endswith("Tensor")
        return (Known("cuda") if ".cuda." in of_type else CPU) if is_old else None
    if isinstance(given[0], External):
        return before  # a dtype
    return named(given[0])


def together(places: Iterable[Value | None]) -> Value | None:
    """The device of what is computed from tensors on these devices. Beside one of another device, a tensor of the CPU is a number, an index, or a
    parameter that has been moved with its module.
    """
    every = list(places)
    elsewhere = {one for one in every if one is not None and not (type(one) is Known and one == CPU)}
    if elsewhere:
        return next(iter(elsewhere)) if len(elsewhere) == 1 else None
    return CPU if every and None not in every else None


def is_there(where: Value | None, device: Value | None) -> bool:
    """Whether two names of devices certainly mean one. Who calls the function may pass another than a default."""
    if where is None or device is None:
        return False
    return where is device or (type(where) is type(device) is Known and where == device)


ELSEWHERE = Hidden("a device that is perhaps an accelerator")
"""The source of a tensor that was moved there."""


def copies(made: Call, source: object) -> None:
    """A batch of a loader is copied without blocking, and may have been pinned."""
    if made.kwargs.get("non_blocking") == TRUE and isinstance(source, Object) and "dataset" in source.fields:
        is_unpinned = source.fields.get("pin_memory", FALSE) == FALSE
        made.emit("batch copy", loader=source, target=target_of(made), is_unpinned=is_unpinned)


def target_of(made: Call) -> str:
    """The kind of device that something goes to, empty where nobody knows it."""
    if made.name != "to":
        return made.name
    given = made.given(1, "device")
    if isinstance(given, Object) and given.cls.is_a(DEVICE):
        given = given.fields.get("name")
    known = isinstance(given, Known) and isinstance(given.value, str)
    return given.value.partition(":")[0] if known else ""  # type: ignore[union-attr]


def may_be_accelerator(value: Value) -> bool:
    """Whether a value may name a device that is no CPU."""
    for one in options(value):
        if isinstance(one, Object) and one.cls.is_a(DEVICE):
            one = one.fields.get("name", NONE)
        if any(map(_is_elsewhere, options(one))):
            return True
    return False


def _is_elsewhere(name: Value) -> bool:
    if isinstance(name, Known):
        return (
            isinstance(name.value, int)
            if not isinstance(name.value, str)
            else not name.value.startswith("cpu")
        )
    return (
        isinstance(name, Unknown)
        and name.why != OF_A_TENSOR
        and name.type in (None, DATA, "str", "int", "device")
    )
