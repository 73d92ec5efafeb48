"""Data classes, enumerations and named tuples."""

import ast
from typing import Any

from ta_lint.dryrun.machine.call import Call
from ta_lint.dryrun.machine.calling import call
from ta_lint.dryrun.machine.library import (
    DICT,
    find,
    list_of,
    method,
    new_class,
    stub,
    tuple_of,
)
from ta_lint.dryrun.stubs.python.standard import copied
from ta_lint.dryrun.values import (
    NONE,
    Class,
    Function,
    Known,
    Object,
    Sequence,
    Table,
    Unknown,
    Value,
    joined,
)


@stub("dataclasses.dataclass")
def _dataclass(made: Call) -> Value:
    if not made.args or not isinstance(made.args[0], Class):
        return find_dataclass()
    cls = made.args[0]
    if not isinstance(cls.fields.get("__init__"), Function):
        cls.fields["__init__"] = _DATACLASS_INIT
    return cls


def find_dataclass() -> Value:
    """The decorator without its options."""
    return find("dataclasses.dataclass")


def _fields_of(cls: Class) -> list[tuple[str, Value | None]]:
    """The fields of a data class with their defaults, those of its base classes first."""
    found: dict[str, Value | None] = {}
    for one in reversed(cls.mro):
        names = one.fields.get("_fields")
        found.update(
            {str(name.value): None for name in names.items if isinstance(name, Known)}
            if isinstance(names, Sequence)
            else {}
        )
        for statement in one.node.body if one.node is not None else ():
            if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
                found[statement.target.id] = one.fields.get(statement.target.id)
    return list(found.items())


@stub("ta_lint.dataclass_init")
def _dataclass_init(made: Call) -> Value:
    own = made.own()
    for index, (name, default) in enumerate(_fields_of(own.cls), 1):
        value = made.given(index, name)
        if value is None:
            value = default if default is not None and not made.loose else Unknown(f"the field {name}")
            if isinstance(value, Sequence | Table):
                value = copied(value)
        made.machine.state.write(own.fields, name, value)
    after = own.cls.find("__post_init__")
    if after is not None:
        call(made.machine, after, [own], {}, made.node)
    return NONE


_DATACLASS_INIT = find("ta_lint.dataclass_init")


@stub("dataclasses.replace")
def _replaced(made: Call) -> Value:
    own = made.args[0] if made.args else NONE
    if not isinstance(own, Object):
        return Unknown("a changed copy")
    return Object(own.cls, made.place, {**own.fields, **made.kwargs})


@stub("dataclasses.asdict", "dataclasses.astuple")
def _as_dictionary(made: Call) -> Value:
    own = made.args[0] if made.args else NONE
    if not isinstance(own, Object) or made.name == "astuple":
        return Unknown("the fields of a data class")
    return Table(
        DICT, made.place, {name: value for name, value in own.fields.items() if isinstance(name, str)}
    )


@stub("collections.namedtuple")
def _new_named(made: Call) -> Value:
    """A class with these fields."""
    name, fields = made.constant(0, "typename"), made.argument(1, "field_names")
    if isinstance(fields, Known) and isinstance(fields.value, str):
        names: list[Any] = fields.value.replace(",", " ").split()
    else:
        names = [one.value if isinstance(one, Known) else None for one in getattr(fields, "items", ())]
    cls = Class(str(name), (NAMED,), made=made.place)

    def init(inner: Call) -> Value:
        own = inner.own()
        for index, field in enumerate(names, 1):
            made.machine.state.write(
                own.fields, field, inner.given(index, field) or Unknown(f"the field {field}")
            )
        return NONE

    method(cls, "__init__")(init)
    return cls


ENUM = new_class("enum.Enum", "enum.IntEnum", "enum.StrEnum", "enum.Flag")


NAMED = new_class("typing.NamedTuple")


@method(NAMED, "__class_made__")
def _named(made: Call) -> Value:
    cls = made.own(Class)
    cls.fields["__init__"] = _DATACLASS_INIT
    return cls


@stub("collections.namedtuple")
def _named_by_text(made: Call) -> Value:
    """`namedtuple("Step", "state action")`, or with a list of names."""
    name, names = made.constant(0, "typename"), made.argument(1, "field_names")
    if isinstance(names, Known) and isinstance(names.value, str):
        fields: list[Value] = [Known(one) for one in names.value.replace(",", " ").split()]
    elif isinstance(names, Sequence) and names.rest is None:
        fields = list(names.items)
    else:
        return Unknown("a named tuple")
    cls = Class(str(name), (NAMED,), None, None, made.place)
    cls.fields["_fields"] = tuple_of(fields)
    cls.fields["__init__"] = _DATACLASS_INIT
    return cls


@method(NAMED, "__iter__")
def _named_parts(made: Call) -> Value:
    own = made.own()
    return list_of(own.fields.values())


@method(NAMED, "__getitem__")
def _named_part(made: Call) -> Value:
    own, key = made.own(), made.constant(1, "key")
    parts = list(own.fields.values())
    return parts[key] if isinstance(key, int) and -len(parts) <= key < len(parts) else joined(parts)


@method(NAMED, "__len__")
def _named_length(made: Call) -> Value:
    own = made.own()
    return Known(len(own.fields))


@method(NAMED, "_replace")
def _named_replaced(made: Call) -> Value:
    own = made.own()
    return Object(own.cls, made.place, {**own.fields, **made.kwargs})


@method(NAMED, "_asdict")
def _named_as_dictionary(made: Call) -> Value:
    own = made.own()
    return Table(DICT, made.place, dict(own.fields))


@method(ENUM, "__class_made__")
def _enum(made: Call) -> Value:
    cls = made.own(Class)
    for name, value in list(cls.fields.items()):
        if not name.startswith("_") and isinstance(value, Known | Sequence):
            cls.fields[name] = Object(cls, made.place, {"name": Known(name), "value": value})
    return cls
