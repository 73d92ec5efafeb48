"""Attributes that a program sets on objects of torch, which have none of that name: torch never reads them."""

from typing import Final

from ta_lint.dryrun.machine.call import Call
from ta_lint.dryrun.machine.library import PROPERTY, UNSEEN, list_of, method, tuple_of
from ta_lint.dryrun.machine.objects import OF_WHOLES
from ta_lint.dryrun.values import NONE, Class, Hidden, Native, Object, Unknown, Value

SOME_MODULE: Final = "a module out of sight"
"""Why nobody knows what a part of a model is that code goes over: it is a module all the same, and what is in it need not be one."""
OF_WHOLES.add(SOME_MODULE)
_KEPT = {name: Hidden(name) for name in ("requires_grad", "lr", "learning_rate")}
"""The keys of those that programs set where they mean parameters, or groups of an optimizer."""
NAMES = frozenset(_KEPT)


def without_effect(cls: Class, *names: str) -> None:
    """What a program sets under these names on objects of a class is kept for the program alone."""
    for name in names:
        get, set_ = (Native(f"{cls.name}.{name}", effect) for effect in (_read, _set))
        cls.fields[name] = Object(PROPERTY, None, {"get": get, "set": set_})


def _read(made: Call) -> Value:
    made.emit("attribute read", made.own(), name=made.name)
    return made.own().fields.get(_KEPT[made.name]) or Unknown(made.name)


def _set(made: Call) -> Value:
    made.emit("attribute", made.own(), name=made.name)
    made.machine.state.write(made.own().fields, _KEPT[made.name], made.args[1])
    return NONE


@method(UNSEEN, "modules", "children", "named_modules", "named_children")
def _modules_of_something(made: Call) -> Value:
    """What asks for these is a module, whatever its name."""
    if made.args[1:] or made.kwargs:
        return Unknown(made.name)
    some = Unknown(SOME_MODULE)
    return list_of((), tuple_of([Unknown("a name", "str"), some]) if made.name.startswith("named") else some)
