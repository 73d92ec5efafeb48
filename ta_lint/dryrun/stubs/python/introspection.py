"""What a program asks of itself: the frames that run, the parameters of a function."""

from ta_lint.dryrun.machine.call import Call
from ta_lint.dryrun.machine.frame import Frame
from ta_lint.dryrun.machine.library import DICT, OBJECT, attribute_of, stub
from ta_lint.dryrun.values import NONE, REST, Bound, Class, Function, Object, Table, Unknown, Value

FRAME = Class("frame", (OBJECT,))
SIGNATURE = Class("inspect.Signature", (OBJECT,))


@stub("inspect.currentframe", "sys._getframe")
def _current(made: Call) -> Value:
    made.machine.memo.spoil()
    return Object(FRAME, made.place, {"of": made.machine.frames[-1]})


def _frame(made: Call) -> Frame:
    own = made.own()
    return own.fields["of"]  # type: ignore[no-any-return]


@attribute_of(FRAME, "f_back")
def _caller(made: Call) -> Value:
    frames, own = made.machine.frames, _frame(made)
    first = next((index for index, one in enumerate(frames) if one is own), 0)
    return Object(FRAME, made.place, {"of": frames[first - 1]}) if first else NONE


@attribute_of(FRAME, "f_locals")
def _locals(made: Call) -> Value:
    return Table(DICT, made.place, dict(_frame(made).names))


@stub("inspect.signature")
def _signature(made: Call) -> Value:
    value = made.argument(0, "obj")
    if isinstance(value, Bound):
        value = value.function
    names = Table(DICT, made.place, {})
    if isinstance(value, Function):
        every = value.node.args
        for one in (*every.posonlyargs, *every.args, *every.kwonlyargs):
            names.fields[one.arg] = Unknown("a parameter")
    else:
        names.fields[REST] = Unknown("a parameter")
    return Object(SIGNATURE, made.place, {"parameters": names})
