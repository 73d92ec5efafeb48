"""Python's own functions, but for those that iterate."""

import ast

from ta_lint.dryrun.machine import iteration
from ta_lint.dryrun.machine.call import Call
from ta_lint.dryrun.machine.calling import call
from ta_lint.dryrun.machine.library import (
    DICT,
    class_of,
    is_instance,
    stub,
    table_of,
)
from ta_lint.dryrun.machine.objects import (
    attribute,
    binary,
    boolean,
    has_attribute,
    set_attribute,
)
from ta_lint.dryrun.values import (
    NONE,
    REST,
    Class,
    Known,
    Object,
    Sequence,
    Table,
    Unknown,
    Value,
    joined,
    options,
)


@stub("builtins.print", "builtins.repr", "builtins.format", "builtins.input", "builtins.id", "builtins.hash")
def _reads(made: Call) -> Value:
    for value in made.values():
        shown = value.cls.find("__shown__") if isinstance(value, Object) else None
        if shown is not None:
            call(made.machine, shown, [value], {}, made.node)
    return Unknown("a string", "str")


@stub("builtins.len")
def _len(made: Call) -> Value:
    value = made.argument(0, "obj")
    if isinstance(value, Sequence):
        return Known(len(value.items)) if value.rest is None else Unknown("a length", "int")
    if isinstance(value, Table):
        return Known(len(value.fields)) if value.rest is None else Unknown("a length", "int")
    if isinstance(value, Known) and hasattr(value.value, "__len__"):
        return Known(len(value.value))
    if isinstance(value, Object) and (own := value.cls.find("__len__")) is not None:
        return call(made.machine, own, [value], {}, made.node)
    return Unknown("a length", "int")


@stub("builtins.isinstance", "builtins.issubclass")
def _isinstance(made: Call) -> Value:
    value, kinds = made.argument(0, "obj"), made.argument(1, "kinds")
    if isinstance(value, Class):
        return boolean(value.is_a(kinds)) if isinstance(kinds, Class) else Unknown("a kind", "bool")
    return boolean(is_instance(value, kinds))


@stub("builtins.type")
def _type(made: Call) -> Value:
    if len(made.args) == 1:
        return class_of(made.args[0]) or Unknown("a type")
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
    return NONE


@stub("builtins.hasattr")
def _hasattr(made: Call) -> Value:
    name = made.constant(1, "name")
    return boolean(has_attribute(made.argument(0, "obj"), name) if isinstance(name, str) else None)


@stub("builtins.sum")
def _sum(made: Call) -> Value:
    items, rest = iteration.collected(made.machine, made.argument(0, "iterable"), made.node)
    total: Value = made.argument(1, "start", 0)
    for one in [*items, *([] if rest is None else [rest])]:
        total = binary(made.machine, ast.Add(), total, one, made.node)
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
    return joined(values) if values else Unknown("nothing is there")


@stub("builtins.abs", "builtins.round", "builtins.pow", "builtins.divmod")
def _arithmetic(made: Call) -> Value:
    value = made.argument(0, "number")
    own = value.cls.find("__abs__") if isinstance(value, Object) else None
    if own is not None:
        return call(made.machine, own, [value], {}, made.node)
    return Unknown("a number", "float")


@stub("builtins.any", "builtins.all")
def _any(made: Call) -> Value:
    iteration.collected(made.machine, made.argument(0, "iterable"), made.node)
    return Unknown("nobody knows", "bool")


@stub("builtins.open")
def _open(made: Call) -> Value:
    return Unknown("a file")


@stub("sys.exit", "os._exit", "builtins.exit", "builtins.quit")
def _exit(made: Call) -> Value:
    made.machine.throw(Unknown("the program ends"))


@stub("builtins.vars", "builtins.globals", "builtins.locals")
def _vars(made: Call) -> Value:
    value = made.argument(0, "obj")
    if isinstance(value, Object) and not isinstance(value, Sequence | Table):
        return Table(DICT, made.place, value.fields)
    return table_of({REST: Unknown("a name")})
