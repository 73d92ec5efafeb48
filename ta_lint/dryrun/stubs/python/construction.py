"""Types of Python that are called: `int(x)`, `list(x)`, `dict(x)`, and the names of all of them."""

import builtins
from collections.abc import Container, Iterable
from typing import Any

from ta_lint.dryrun.machine import iteration
from ta_lint.dryrun.machine.batches import of_any
from ta_lint.dryrun.machine.call import Call
from ta_lint.dryrun.machine.calling import attempt, call
from ta_lint.dryrun.machine.factors import factors_of, number
from ta_lint.dryrun.machine.library import (
    BASES,
    CLASSMETHOD,
    DICT,
    EXCEPTION,
    LIST,
    PROPERTY,
    SET,
    STATICMETHOD,
    TUPLE,
    define,
    method,
    new_class,
    stub,
)
from ta_lint.dryrun.machine.objects import (
    boolean,
    truth,
)
from ta_lint.dryrun.sources import Pieces, of_rank, read_of
from ta_lint.dryrun.values import (
    NONE,
    REST,
    Choice,
    Class,
    Known,
    Native,
    Object,
    Sequence,
    Table,
    Unknown,
    Value,
    cuts_of,
    join,
    joined,
    options,
)

for _name, _class in BASES.items():
    define(_class, f"builtins.{_name}")


_EXCEPTIONS: dict[type[BaseException], Class] = {BaseException: EXCEPTION}


def _exception(kind: type[BaseException]) -> Class:
    """An exception of Python, below those that it derives from."""
    if kind not in _EXCEPTIONS:
        bases = [_exception(base) for base in kind.__bases__ if issubclass(base, BaseException)]
        _EXCEPTIONS[kind] = new_class(f"builtins.{kind.__name__}", bases=bases)
    return _EXCEPTIONS[kind]


for _name, _found in vars(builtins).items():
    if isinstance(_found, type) and issubclass(_found, BaseException):
        define(_exception(_found), f"builtins.{_name}")

define(Known(...), "builtins.Ellipsis")

define(NONE, "builtins.NotImplemented")


def _constructor(cls: Class, compute: Any) -> None:
    """`int(x)`, `str(x)`: a constant if `x` is one."""

    def new(made: Call) -> Value:
        given = made.args[1:2]
        if not given:
            return Known(compute())
        if isinstance(given[0], Known) and compute is not bytes:
            try:
                return Known(compute(given[0].value))
            except (TypeError, ValueError, OverflowError):
                return Unknown("it cannot be converted", compute.__name__)
        read = list(given)
        for one in options(given[0]):
            convert = one.cls.find("__float__") if isinstance(one, Object) else None
            if convert is not None:
                read.append(call(made.machine, convert, [one], {}, made.node))
        why = getattr(given[0], "why", "it is converted")
        factors = factors_of(given[0]) if compute in (int, float) else None
        text = Pieces((given[0],))
        source = text if compute is str else read_of(given[0]) or of_rank(given[0]) or text
        cuts, amounts = cuts_of(*read), of_any(read[-1])
        return number(why, compute.__name__, factors, cuts=cuts, amount=amounts, source=source)

    method(cls, "__new__")(new)


for _compute in (int, float, str, bytes, complex):
    _constructor(BASES[_compute.__name__], _compute)


@method(BASES["bool"], "__new__")
def _bool(made: Call) -> Value:
    return boolean(truth(made.machine, made.args[1], made.node)) if len(made.args) > 1 else Known(False)


def distinct(items: Iterable[Value], rest: Value | None = None) -> tuple[tuple[Value, ...], Value | None]:
    """What a set of these holds: each once, and of those that may be equal nobody knows how many."""
    known = tuple(dict.fromkeys(items))
    if all(isinstance(one, Known) for one in known) or not any(
        isinstance(one, Known | Unknown | Choice) for one in known
    ):
        return known, rest
    return (), joined([*known, *([] if rest is None else [rest])])


def _collection(cls: Class) -> None:
    def new(made: Call) -> Value:
        if len(made.args) < 2:
            return Sequence(made.args[0], (), None, made.place)  # type: ignore[arg-type]
        items, rest = iteration.collected(made.machine, made.args[1], made.node)
        if cls is SET:
            items, rest = distinct(items, rest)
        return Sequence(made.args[0], items, rest, made.place)  # type: ignore[arg-type]

    method(cls, "__new__")(new)


for _collected in (LIST, TUPLE, SET):
    _collection(_collected)

define(SET, "builtins.frozenset")


@method(DICT, "__new__")
def _dict(made: Call) -> Value:
    table = Table(made.args[0], made.place, {})  # type: ignore[arg-type]
    if len(made.args) > 1:
        merge(table, made.args[1], made)
    table.fields.update(made.kwargs)
    return table


define(DICT, "collections.OrderedDict", "collections.Counter", "typing.OrderedDict", "typing.Counter")


@stub("collections.defaultdict", "typing.DefaultDict")
def _defaultdict(made: Call) -> Value:
    table = Table(DEFAULTDICT, made.place, {})
    if made.args:
        table.fields[REST] = attempt(made.machine, made.args[0], [], made.node)
    return table


DEFAULTDICT = Class("defaultdict", (DICT,))


def merge(table: Table, other: Value, made: Call) -> None:
    """`table.update(other)`."""
    state = made.machine.state
    if isinstance(other, Table):
        _overwritten(table, other.rest, other.fields.keys(), made)
        for key, value in other.entries():
            state.write(table.fields, key, value)
        return
    mapping = other.cls.find("items") if isinstance(other, Object) else None
    pairs = other if mapping is None else call(made.machine, mapping, [other], {}, made.node)
    items, rest = iteration.collected(made.machine, pairs, made.node)
    for pair in items:
        known = isinstance(pair, Sequence) and len(pair.items) == 2 and isinstance(pair.items[0], Known)
        if known:
            state.write(table.fields, pair.items[0].value, pair.items[1])  # type: ignore[attr-defined]
        else:
            rest = Unknown("an entry")
    if rest is not None:
        value = rest.items[1] if isinstance(rest, Sequence) and len(rest.items) == 2 else Unknown("an entry")
        _overwritten(table, value, (), made)


def _overwritten(table: Table, value: Value | None, but: Container[object], made: Call) -> None:
    """Any key of a dictionary may get this value, except those that certainly get another."""
    if value is None:
        return
    for key, before in [*table.entries(), (REST, table.rest or value)]:
        if key not in but or key is REST:
            made.machine.state.write(table.fields, key, join(before, value))


@stub("builtins.property", "functools.cached_property")
def _property(made: Call) -> Value:
    return Object(PROPERTY, made.place, {"get": made.args[0]})


@stub("builtins.staticmethod")
def _staticmethod(made: Call) -> Value:
    return Object(STATICMETHOD, made.place, {"function": made.args[0]})


@stub("builtins.classmethod")
def _classmethod(made: Call) -> Value:
    return Object(CLASSMETHOD, made.place, {"function": made.args[0]})


def _from_keys(made: Call) -> Value:
    """`dict.fromkeys`."""
    items, rest = iteration.collected(made.machine, made.argument(1, "iterable"), made.node)
    value = made.argument(2, "value")
    table = Table(DICT, made.place, {one.value: value for one in items if isinstance(one, Known)})
    if rest is not None or len(table.fields) < len(items):
        table.fields[REST] = value
    return table


DICT.fields["fromkeys"] = Object(CLASSMETHOD, None, {"function": Native("dict.fromkeys", _from_keys)})
