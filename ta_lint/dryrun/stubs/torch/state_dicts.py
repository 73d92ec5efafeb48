"""The state of a module, as a dictionary: its tensors are those of the module."""

from collections.abc import Iterator

from ta_lint.dryrun.machine.call import Call
from ta_lint.dryrun.machine.library import UNSEEN, list_of, method, new_class, tuple_of
from ta_lint.dryrun.stubs.torch.modules import MODULE, renewed
from ta_lint.dryrun.stubs.torch.tensors import PLAIN, STATE_OF, Tensor
from ta_lint.dryrun.stubs.torch.wrapping import SHARDED
from ta_lint.dryrun.values import FALSE, NONE, TRUE, Hidden, Object, Unknown, Value, each_in

STATE = new_class("torch.nn.modules.module.StateDict")
SHARES = Hidden("that the tensors of a state are those of the module, as the program has put no others there")


class ModuleState(Object):
    """What `state_dict()` gives, for the module `of`. It stands for what later calls at its place give, where nobody knows which of them it is."""

    __slots__ = ()

    @property
    def source(self) -> "ModuleState":
        """Where a value comes from that is this, or something that nobody knows."""
        return self

    def merged(self, other: Value) -> Value | None:
        """The state that was taken first."""
        if (
            not isinstance(other, ModuleState)
            or other.made != self.made
            or other.fields["of"] is not self.fields["of"]
        ):
            return None
        return min(self, other, key=_taken)

    def copied(self) -> Value:
        """The same in other tensors."""
        return ModuleState(self.cls, self.made, self.fields | {SHARES: FALSE})


TAKEN = Hidden("how much had happened when it was taken")


def _taken(state: Object) -> int:
    return int(state.fields[TAKEN])


def states_in(value: Value) -> Iterator[ModuleState]:
    """The states that a value may be or holds, which share the tensors of their modules."""
    for one in each_in((value,)):
        found = one.source if isinstance(one, Unknown) else one
        if isinstance(found, ModuleState) and found.fields[SHARES] == TRUE:
            yield found
        elif isinstance(found, Tensor):
            state = found.fields.get(STATE_OF, found.fields.get("of"))
            yield from states_in(state) if isinstance(state, Value) else ()


@method(MODULE, "state_dict")
@method(UNSEEN, "state_dict")
def _state_dict(made: Call) -> Value:
    own, machine = made.args[0], made.machine
    state = ModuleState(STATE, made.place, {"of": own, SHARES: TRUE, TAKEN: len(machine.events)})
    machine.followed.add(own)
    made.emit("save", own, state=state)
    return state


@method(SHARDED, "state_dict")
def _gathered(made: Call) -> Value:
    """The parts of its parameters are put together in other tensors."""
    made.emit("save", made.args[0])
    return ModuleState(STATE, made.place, {"of": made.args[0], SHARES: FALSE, TAKEN: 0})


def _tensor(made: Call) -> Tensor:
    tensor = Tensor(PLAIN, made.place)
    tensor.fields[STATE_OF] = made.args[0]
    return tensor


@method(STATE, "items", "values", "keys", "__iter__", "copy", "__copy__")
def _states(made: Call) -> Value:
    name = made.name
    if name in ("copy", "__copy__"):
        return made.args[0]
    key = Unknown("a name", "str")
    each = {"items": tuple_of([key, _tensor(made)]), "values": _tensor(made)}
    return list_of((), each.get(name, key))


@method(STATE, "__getitem__", "get", "pop")
def _one_state(made: Call) -> Value:
    return _tensor(made)


@method(STATE, "__setitem__", "update")
def _set_state(made: Call) -> Value:
    """It gets other tensors."""
    if made.own() not in [*states_in(made.args[-1])]:
        made.machine.state.write(made.own().fields, SHARES, FALSE)
    return NONE


@method(MODULE, "load_state_dict")
def _load(made: Call) -> Value:
    made.emit("load", made.args[0], state=made.argument(1, "state_dict"))
    if made.constant(3, "assign", False) is True:
        renewed(made, made.args[0], "loaded tensors as parameters")
    return Unknown("missing and unexpected keys")
