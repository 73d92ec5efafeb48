"""Python's own functions, but for those that iterate."""

import ast
from typing import Any

from ta_lint.dryrun.machine import iteration
from ta_lint.dryrun.machine.amounts import averaged, is_of_model, side_by_side
from ta_lint.dryrun.machine.batches import batch_of, of_any, of_batch
from ta_lint.dryrun.machine.call import Call
from ta_lint.dryrun.machine.calling import call
from ta_lint.dryrun.machine.counts import LENGTH, Length
from ta_lint.dryrun.machine.expressions import Slice
from ta_lint.dryrun.machine.factors import Multiple, number
from ta_lint.dryrun.machine.last_batches import SHOWN, used
from ta_lint.dryrun.machine.library import (
    DICT,
    class_of,
    find,
    is_instance,
    list_of,
    stub,
    table_of,
)
from ta_lint.dryrun.machine.objects import attribute, boolean, has_attribute, set_attribute, truth
from ta_lint.dryrun.machine.operators import binary
from ta_lint.dryrun.stubs.torch import outputs
from ta_lint.dryrun.values import (
    DATA,
    ENDS,
    NONE,
    REST,
    TRUE,
    Choice,
    Class,
    External,
    Known,
    Object,
    Sequence,
    Table,
    Unknown,
    Value,
    each_in,
    joined,
    options,
)


@stub("builtins.ascii", "builtins.format", "builtins.print", "builtins.repr")
def _reads(made: Call) -> Value:
    for value in made.values():
        show(made, value)
    return NONE if made.name == "print" else Unknown("a string", "str")


RECENT = 8
"""How many events the arguments of one call make, at most, that are looked back at."""


def show(made: Call, value: Value) -> None:
    """What is printed or logged is read, and people see it."""
    if any(event.action == "attribute read" for event in made.machine.events[-RECENT:]):
        made.emit("shown")
    used(made.machine, [value], made.node, SHOWN)
    for one in each_in((value,)):
        read(made, one)
        outputs.show(made, one)


def read(made: Call, value: Value) -> None:
    """The numbers of all tensors in this are read."""
    for one in each_in((value,)):
        if isinstance(one, Object) and (shown := one.cls.find("__shown__")) is not None:
            call(made.machine, shown, [one], {}, made.node)


@stub("builtins.bin", "builtins.chr", "builtins.hex", "builtins.input", "builtins.oct")
def _text(made: Call) -> Value:
    return Unknown("a string", "str")


@stub("builtins.hash", "builtins.id", "builtins.ord")
def _whole(made: Call) -> Value:
    return Unknown("a number", "int")


@stub("builtins.bytearray", "builtins.dir", "builtins.memoryview")
def _data(made: Call) -> Value:
    return Unknown(f"what {made.name} gives", DATA)


@stub("builtins.breakpoint")
def _nothing(made: Call) -> Value:
    return NONE


@stub("builtins.compile", "builtins.eval", "builtins.exec", "builtins.__import__")
def _anything(made: Call) -> Value:
    return Unknown(f"what {made.name} gives")


@stub("builtins.slice")
def _slice(made: Call) -> Value:
    given = [one.value if isinstance(one, Known) else ... for one in made.args]
    return Unknown("a slice", "slice") if ... in given or not given else Slice(slice(*given))


@stub("builtins.delattr")
def _delattr(made: Call) -> Value:
    value, name = made.argument(0, "obj"), made.constant(1, "name")
    if isinstance(value, Object) and isinstance(name, str):
        made.machine.state.remove(value.fields, name)
    return NONE


@stub("builtins.len")
def _len(made: Call) -> Value:
    value = made.argument(0, "obj")
    found = _counted(made, value)
    if not isinstance(found, Unknown) or found.why != LENGTH:
        return found
    made.emit("count", value)
    unseen = (
        isinstance(value, Unknown)
        and (batch := batch_of(made.machine)) is not None
        and value is not batch.over
    )
    result = Length(value, amount=of_batch(made.machine, grows=True, counts=True) if unseen else found.amount)
    result.inner = found if isinstance(found, Length) else None
    return result


def _counted(made: Call, value: Value) -> Value:
    if isinstance(value, Sequence):
        return Known(len(value.items)) if value.rest is None else Unknown(LENGTH, "int")
    if isinstance(value, Table):
        return Known(len(value.fields)) if value.rest is None else Unknown(LENGTH, "int")
    if isinstance(value, Known) and hasattr(value.value, "__len__"):
        return Known(len(value.value))
    if isinstance(value, Object) and (own := value.cls.find("__len__")) is not None:
        return call(made.machine, own, [value], {}, made.node)
    return Unknown(LENGTH, "int")


@stub("builtins.isinstance", "builtins.issubclass")
def _isinstance(made: Call) -> Value:
    value, kinds = made.argument(0, "obj"), made.argument(1, "kinds")
    if made.name == "issubclass":
        return boolean(value.is_a(kinds) if isinstance(value, Class) and isinstance(kinds, Class) else None)
    return boolean(is_instance(value, kinds))


@stub("builtins.type")
def _type(made: Call) -> Value:
    if len(made.args) == 1:
        return class_of(made.args[0]) or Unknown("a type")
    name, bases, body = (made.argument(index, "") for index in range(3))
    if (
        isinstance(name, Known)
        and isinstance(bases, Sequence)
        and all(isinstance(one, Class) for one in bases.items)
    ):
        fields = dict(body.fields) if isinstance(body, Table) else {}
        return Class(
            str(name.value),
            tuple(one for one in bases.items if isinstance(one, Class)),
            fields,
            None,
            made.place,
        )
    return Unknown("a class made by type()")


@stub("builtins.callable")
def _callable(made: Call) -> Value:
    value = made.argument(0, "obj")
    return boolean(None if isinstance(value, Unknown) else not isinstance(value, Known | Sequence | Table))


@stub("builtins.getattr")
def _getattr(made: Call) -> Value:
    value, name = made.argument(0, "obj"), made.argument(1, "name")
    names = [one.value for one in options(name) if isinstance(one, Known) and isinstance(one.value, str)]
    if not names:
        several = find(f"{value.name}.*") if isinstance(value, External) else None
        if several is not None and not isinstance(several, External):
            return several
        return Unknown("an attribute whose name is not known")
    found = [attribute(made.machine, value, one, made.node) for one in names]
    if len(made.args) > 2 and has_attribute(value, names[0]) is False:
        return made.args[2]
    if (
        len(made.args) > 2
        and len(found) == 1
        and isinstance(found[0], Unknown)
        and not isinstance(value, Unknown)
    ):
        return joined([found[0], made.args[2]])
    return joined(found)


@stub("builtins.setattr")
def _setattr(made: Call) -> Value:
    value, name, new = made.argument(0, "obj"), made.constant(1, "name"), made.argument(2, "value")
    if isinstance(name, str):
        set_attribute(made.machine, value, name, new, made.node)
    elif isinstance(new, Object | Choice | Unknown):
        set_attribute(made.machine, value, "incomplete", TRUE, made.node)
    return NONE


@stub("builtins.hasattr")
def _hasattr(made: Call) -> Value:
    name = made.constant(1, "name")
    if isinstance(name, str):
        made.machine.memo.named(name)
    value = made.argument(0, "obj")
    has = has_attribute(value, name) if isinstance(name, str) else None
    asked = value.cls.find("__hasattr__") if isinstance(value, Object) and has is None else None
    return boolean(has) if asked is None else call(made.machine, asked, [value], {}, made.node)


@stub("builtins.sum")
def _sum(made: Call) -> Value:
    given = made.argument(0, "iterable")
    adds_up = given.cls.find("sum") if isinstance(given, Object) and len(made.args) == 1 else None
    if adds_up is not None:  # a tensor
        return call(made.machine, adds_up, [given, Known(0)], {}, made.node)
    items, rest = iteration.collected(made.machine, given, made.node)
    total: Value = made.argument(1, "start", 0)
    for one in [*items, *([] if rest is None else [rest])]:
        total = binary(made.machine, ast.Add(), total, one, made.node)
    held = side_by_side(given if isinstance(given, Sequence) else list_of(items, rest))
    if isinstance(total, Unknown) and held is not None:
        total.amount = averaged(made.machine, held, None, made.node, is_sum=True)
    elif isinstance(total, Unknown) and rest is not None and is_of_model(rest):
        total.amount = of_batch(made.machine, grows=True)
    return total if rest is None or not isinstance(total, Known) else Unknown("a sum")


@stub("builtins.max", "builtins.min")
def _extreme(made: Call) -> Value:
    values = made.args
    if len(values) == 1:
        items, rest = iteration.collected(made.machine, values[0], made.node)
        values = [*items, *([] if rest is None else [rest])]
    constants = [one.value for one in values if isinstance(one, Known)]
    if len(constants) == len(values) and values and not made.kwargs:
        try:
            return Known((max if made.name == "max" else min)(constants))
        except TypeError:
            return Unknown("it cannot be compared")
    others = [one for one in values if not isinstance(one, Known)]
    if len(others) == 1 and isinstance(others[0], Multiple):  # `max(1, len(loader) // 4)`
        return others[0]
    return joined(values) if values else Unknown("nothing is there")


@stub("builtins.abs", "builtins.round", "builtins.pow", "builtins.divmod")
def _arithmetic(made: Call) -> Value:
    value = made.argument(0, "number")
    own = value.cls.find("__abs__") if isinstance(value, Object) else None
    if own is not None:
        return call(made.machine, own, [value], {}, made.node)
    factors = value.factors if made.name == "round" and isinstance(value, Multiple) else None
    return number("a number", "float", factors, amount=of_any(value))


@stub("builtins.any", "builtins.all")
def _any(made: Call) -> Value:
    items, rest = iteration.collected(made.machine, made.argument(0, "iterable"), made.node)
    verdicts = {truth(made.machine, one, made.node) for one in items}
    decides = made.name == "any"
    if decides in verdicts:
        return Known(decides)
    return Known(not decides) if rest is None and None not in verdicts else Unknown("nobody knows", "bool")


@stub("builtins.open")
def _open(made: Call) -> Value:
    return Unknown("a file", DATA)


@stub("sys.exit", "os._exit", "builtins.exit", "builtins.quit")
def _exit(made: Call) -> Value:
    made.machine.throw(Unknown(ENDS))


def _attributes(value: Object) -> dict[Any, Any]:
    """The attributes of an object, which change with it; of one of a library a copy, as it has more that nobody sees."""
    own = {
        name: one for name, one in value.fields.items() if isinstance(name, str) and isinstance(one, Value)
    }
    if len(own) == len(value.fields):
        return value.fields
    return {**own, REST: Unknown("an attribute of its own")}


@stub("builtins.vars", "builtins.globals", "builtins.locals")
def _vars(made: Call) -> Value:
    value = made.argument(0, "obj")
    if isinstance(value, Object) and not isinstance(value, Sequence | Table):
        return Table(DICT, made.place, _attributes(value))
    return table_of({REST: Unknown("a name")})
