"""The state of a module, as a dictionary."""

from ta_lint.dryrun.machine.call import Call
from ta_lint.dryrun.machine.library import list_of, method, new_class, tuple_of
from ta_lint.dryrun.stubs.torch.modules import MODULE
from ta_lint.dryrun.stubs.torch.tensors import Tensor
from ta_lint.dryrun.values import NONE, Object, Unknown, Value


@method(MODULE, "state_dict")
def _state_dict(made: Call) -> Value:
    made.emit("save", made.args[0])
    return Object(STATE, made.place, {"of": made.args[0]})


STATE = new_class("torch.nn.modules.module.StateDict")


@method(STATE, "items", "values", "keys", "__iter__", "copy")
def _states(made: Call) -> Value:
    name = made.name
    value = Tensor()
    if name == "copy":
        return made.args[0]
    return list_of(
        (),
        tuple_of([Unknown("a name", "str"), value])
        if name == "items"
        else value
        if name == "values"
        else Unknown("a name", "str"),
    )


@method(STATE, "__getitem__", "get", "pop")
def _one_state(made: Call) -> Value:
    return Tensor()


@method(STATE, "__setitem__", "update")
def _set_state(made: Call) -> Value:
    return NONE


@method(MODULE, "load_state_dict")
def _load(made: Call) -> Value:
    made.emit("load", made.args[0])
    return Unknown("missing and unexpected keys")
