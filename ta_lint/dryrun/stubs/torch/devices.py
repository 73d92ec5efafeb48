"""Devices, and what goes to one that is perhaps an accelerator."""

from ta_lint.dryrun.machine.call import Call
from ta_lint.dryrun.machine.library import attribute_of, method, new_class
from ta_lint.dryrun.values import (
    DATA,
    FALSE,
    NONE,
    TRUE,
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
        made.machine.state.write(made.own().fields, "name", made.argument(1, "type"))
    return made.args[0] if made.name == "__enter__" else NONE


@attribute_of(DEVICE, "type", "index")
def _of_device(made: Call) -> Value:
    return Unknown(f"the {made.name} of a device", "str" if made.name == "type" else DATA)


def moves(made: Call) -> bool:
    """Whether a tensor or a module goes to a device that is perhaps an accelerator; of the first it is told."""
    asked = made.name in ("cuda", "xpu") or (
        made.name == "to" and any(map(may_be_accelerator, (*made.args[1:2], *made.kwargs.values())))
    )
    if asked and not made.machine.accelerates:
        made.machine.accelerates = True
        made.emit("accelerate")
    return asked


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
