"""Python's own functions and types."""

import ast
from typing import Any

from ta_lint.dryrun.machine import iteration
from ta_lint.dryrun.machine.call import Call
from ta_lint.dryrun.machine.calling import attempt, call
from ta_lint.dryrun.machine.library import (
    BASES,
    CLASSMETHOD,
    DICT,
    EXCEPTION,
    LIST,
    NUMBER,
    OBJECT,
    PROPERTY,
    SET,
    STATICMETHOD,
    STREAM,
    STRING,
    TUPLE,
    attribute_of,
    class_of,
    define,
    find,
    is_instance,
    list_of,
    method,
    new_class,
    stub,
    table_of,
    tuple_of,
)
from ta_lint.dryrun.machine.machine import Raised
from ta_lint.dryrun.machine.objects import attribute, binary, boolean, has_attribute, item, set_attribute, set_item, truth
from ta_lint.dryrun.flow import Flow
from ta_lint.dryrun.values import (
    NONE,
    REST,
    Class,
    Consumer,
    Function,
    Known,
    Object,
    Sequence,
    Stream,
    Table,
    Unknown,
    Value,
    join,
    joined,
    options,
)

_FEW = 3
"""A `range` of at most so many numbers is gone over number by number."""
for _name, _class in BASES.items():
    define(_class, f"builtins.{_name}")
for _name in ("Exception", "ValueError", "TypeError", "RuntimeError", "KeyError", "StopIteration", "NotImplementedError", "KeyboardInterrupt", "OSError", "ImportError", "AssertionError", "IndexError", "AttributeError", "FileNotFoundError", "SystemExit"):  # fmt: skip
    new_class(f"builtins.{_name}", bases=(EXCEPTION,))
define(Known(...), "builtins.Ellipsis")
define(NONE, "builtins.NotImplemented")


# -- construction ----------------------------------------------------------------------------------


def _constructor(cls: Class, compute: Any) -> None:
    """`int(x)`, `str(x)`: a constant if `x` is one."""

    def new(made: Call) -> Value:
        given = made.args[1:2]
        if not given:
            return Known(compute())
        if isinstance(given[0], Known):
            try:
                return Known(compute(given[0].value))
            except (TypeError, ValueError):
                return Unknown("it cannot be converted", compute.__name__)
        for one in options(given[0]):
            convert = one.cls.find("__float__") if isinstance(one, Object) else None
            if convert is not None:
                call(made.machine, convert, [one], {}, made.node)
        return Unknown(getattr(given[0], "why", "it is converted"), compute.__name__)

    method(cls, "__new__")(new)


for _compute in (int, float, str, bytes, complex):
    _constructor(BASES[_compute.__name__], _compute)


@method(BASES["bool"], "__new__")
def _bool(made: Call) -> Value:
    return boolean(truth(made.machine, made.args[1], made.node)) if len(made.args) > 1 else Known(False)


def _collection(cls: Class) -> None:
    def new(made: Call) -> Value:
        if len(made.args) < 2:
            return Sequence(made.args[0], (), None, made.place)  # type: ignore[arg-type]
        items, rest = iteration.collected(made.machine, made.args[1], made.node)
        return Sequence(made.args[0], items, rest, made.place)  # type: ignore[arg-type]

    method(cls, "__new__")(new)


for _kind in (LIST, TUPLE, SET):
    _collection(_kind)
define(SET, "builtins.frozenset")
define(LIST, "collections.deque")


@method(DICT, "__new__")
def _dict(made: Call) -> Value:
    table = Table(made.args[0], made.place, {})  # type: ignore[arg-type]
    if len(made.args) > 1:
        _merge(table, made.args[1], made)
    table.fields.update(made.kwargs)
    return table


define(DICT, "collections.OrderedDict", "collections.Counter")


@stub("collections.defaultdict")
def _defaultdict(made: Call) -> Value:
    table = Table(DEFAULTDICT, made.place, {})
    if made.args:
        table.fields[REST] = attempt(made.machine, made.args[0], [], made.node)
    return table


DEFAULTDICT = Class("defaultdict", (DICT,))


def _merge(table: Table, other: Value, made: Call) -> None:
    if isinstance(other, Table):
        for key, value in other.fields.items():
            made.machine.state.write(table.fields, key, value)
        return
    items, rest = iteration.collected(made.machine, other, made.node)
    for pair in items:
        known = isinstance(pair, Sequence) and len(pair.items) == 2 and isinstance(pair.items[0], Known)
        if known:
            made.machine.state.write(table.fields, pair.items[0].value, pair.items[1])  # type: ignore[attr-defined]
        else:
            rest = Unknown("an entry")
    if rest is not None:
        value = rest.items[1] if isinstance(rest, Sequence) and len(rest.items) == 2 else Unknown("an entry")
        made.machine.state.write(table.fields, REST, value)


@stub("builtins.property", "functools.cached_property")
def _property(made: Call) -> Value:
    return Object(PROPERTY, made.place, {"get": made.args[0]})


@stub("builtins.staticmethod")
def _staticmethod(made: Call) -> Value:
    return Object(STATICMETHOD, made.place, {"function": made.args[0]})


@stub("builtins.classmethod")
def _classmethod(made: Call) -> Value:
    return Object(CLASSMETHOD, made.place, {"function": made.args[0]})


# -- functions -------------------------------------------------------------------------------------


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
    if len(made.args) > 2 and len(found) == 1 and isinstance(found[0], Unknown) and not isinstance(value, Unknown):
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


@stub("builtins.range")
def _range(made: Call) -> Value:
    bounds = [one.value if isinstance(one, Known) else None for one in made.args]
    if bounds and all(isinstance(one, int) for one in bounds):
        numbers = range(*bounds)  # type: ignore[arg-type]
        if len(numbers) <= _FEW:
            return list_of(map(Known, numbers))
        first: Value = Known(numbers[0])
    else:
        first = Known(0) if len(bounds) == 1 else made.args[0] if made.args else Unknown("a number", "int")

    def each(consumer: Consumer) -> Flow:
        for element in (first, Unknown("the number of the pass", "int")):
            flow = consumer(element)
            if flow is not Flow.ON:
                return flow
        return Flow.ON

    return Stream(RANGE, each, None, made.place)


RANGE = Class("range", (STREAM,))


@stub("builtins.enumerate", "tqdm.tqdm.enumerate")
def _enumerate(made: Call) -> Value:
    start = made.constant(1, "start", 0)
    found = iteration.elements(made.machine, made.argument(0, "iterable"), made.node)
    if isinstance(found, tuple):
        items, rest = found
        numbered = [tuple_of([Known(start + index) if isinstance(start, int) else Unknown("a number", "int"), one]) for index, one in enumerate(items)]
        return list_of(numbered, None if rest is None else tuple_of([Unknown("a number", "int"), rest]))
    over = found

    def each(consumer: Consumer) -> Flow:
        number = -1

        def numbered(element: Value) -> Flow:
            nonlocal number
            number += 1
            known = number == 0 and isinstance(start, int)
            return consumer(tuple_of([Known(start) if known else Unknown("the number of the pass", "int"), element]))

        return over.each(numbered)

    return Stream(STREAM, each, over.of, made.place, settles=over.settles)


@stub("builtins.zip", "itertools.zip_longest")
def _zip(made: Call) -> Value:
    found = [iteration.elements(made.machine, one, made.node) for one in made.args]
    stream = next((one for one in found if isinstance(one, Stream)), None)
    if stream is None:
        lists = [one for one in found if isinstance(one, tuple)]
        short = min((len(items) for items, rest in lists if rest is None), default=0)
        rows = [
            tuple_of([items[index] if index < len(items) else rest or NONE for items, rest in lists]) for index in range(short)
        ]
        if all(rest is not None for _, rest in lists) and lists:
            return list_of(rows, tuple_of([joined([*items, rest]) for items, rest in lists if rest is not None]))
        return list_of(rows)
    position = found.index(stream)
    others = [
        Unknown("an element") if isinstance(one, Stream) and index != position else
        joined([*one[0], *([] if one[1] is None else [one[1]])]) if isinstance(one, tuple) else NONE
        for index, one in enumerate(found)
    ]  # fmt: skip
    for index, one in enumerate(found):
        if isinstance(one, Stream) and index != position:
            others[index] = iteration.joined_elements(made.machine, one, made.node)
    over = stream

    def each(consumer: Consumer) -> Flow:
        def row(element: Value) -> Flow:
            return consumer(tuple_of([element if index == position else other for index, other in enumerate(others)]))

        return over.each(row)

    return Stream(STREAM, each, over.of, made.place, settles=over.settles)


@stub("builtins.iter", "builtins.reversed", "builtins.sorted", "builtins.frozenset")
def _again(made: Call) -> Value:
    value = made.argument(0, "iterable")
    if isinstance(value, Sequence):
        return list_of(value.items, value.rest) if value.rest is not None or len(value.items) < 2 else list_of(value.items)
    if isinstance(value, Object) and not isinstance(value, Stream | Table):
        found = iteration.elements(made.machine, value, made.node)
        return found if isinstance(found, Stream) else list_of(*found)
    return value if isinstance(value, Stream) else list_of(*iteration.collected(made.machine, value, made.node))


@stub("builtins.next")
def _next(made: Call) -> Value:
    value = made.argument(0, "iterator")
    if isinstance(value, Object) and (own := value.cls.find("__next__")) is not None:
        return call(made.machine, own, [value], {}, made.node)
    found = iteration.elements(made.machine, value, made.node)
    if isinstance(found, tuple):
        items, rest = found
        return items[0] if items else rest or (made.args[1] if len(made.args) > 1 else Unknown("the next element"))
    first: list[Value] = []

    def take(element: Value) -> Flow:
        first.append(element)
        return Flow.BREAK

    found.each(take)
    return first[0] if first else Unknown("the next element")


@stub("builtins.map")
def _map(made: Call) -> Value:
    if len(made.args) != 2:
        return list_of((), Unknown("an element"))
    function = made.args[0]
    return iteration.stream_of(made.machine, made.args[1], made.node, lambda one: call(made.machine, function, [one], {}, made.node))


@stub("builtins.filter")
def _filter(made: Call) -> Value:
    return made.argument(1, "iterable")


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
            return Known((max if "max" in str(made.node) else min)(constants))
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
    raise Raised


@stub("builtins.vars", "builtins.globals", "builtins.locals")
def _vars(made: Call) -> Value:
    value = made.argument(0, "obj")
    if isinstance(value, Object) and not isinstance(value, Sequence | Table):
        return Table(DICT, made.place, value.fields)
    return table_of({REST: Unknown("a name")})


# -- methods ---------------------------------------------------------------------------------------


def _items(sequence: Value) -> Sequence:
    assert isinstance(sequence, Sequence)
    return sequence


@method(LIST, "append", "add", "appendleft")
@method(SET, "add")
def _append(made: Call) -> Value:
    own = _items(made.args[0])
    value = made.argument(1, "object")
    made.emit("append", own, value=value)
    state = made.machine.state
    if own.rest is not None or len(own.items) >= 64 or (own.items and any(one.settled for one in made.machine.passes)):
        state.extend(own, value)
    else:
        state.refill(own, (*own.items, value), None)
    return NONE


@method(LIST, "extend")
@method(SET, "update")
def _extend(made: Call) -> Value:
    own = _items(made.args[0])
    items, rest = iteration.collected(made.machine, made.argument(1, "iterable"), made.node)
    made.machine.state.refill(own, own.items + items, join(own.rest, rest) if own.rest and rest else own.rest or rest)
    return NONE


@method(LIST, "pop", "popleft")
@method(SET, "pop")
def _pop(made: Call) -> Value:
    own = _items(made.args[0])
    index = made.constant(1, "index", -1)
    if own.rest is None and isinstance(index, int) and -len(own.items) <= index < len(own.items):
        items = list(own.items)
        taken = items.pop(index)
        made.machine.state.refill(own, items, None)
        return taken
    return joined(own.every)


@method(LIST, "insert")
def _insert(made: Call) -> Value:
    own = _items(made.args[0])
    index, value = made.constant(1, "index"), made.argument(2, "object")
    items = list(own.items)
    items.insert(index if isinstance(index, int) else len(items), value)
    made.machine.state.refill(own, items, own.rest)
    return NONE


@method(LIST, "clear")
@method(SET, "clear")
def _clear(made: Call) -> Value:
    own = _items(made.args[0])
    made.machine.state.refill(own, (), None)
    return NONE


@method(LIST, "copy", "sort", "reverse", "remove", "discard", "rotate")
def _same(made: Call) -> Value:
    own = _items(made.args[0])
    return list_of(own.items, own.rest) if isinstance(made.node, ast.Call) and getattr(made.node.func, "attr", "") == "copy" else NONE


@method(LIST, "index", "count")
@method(TUPLE, "index", "count")
def _position(made: Call) -> Value:
    return Unknown("a position", "int")


@method(LIST, "__add__", "__iadd__")
@method(TUPLE, "__add__")
def _concatenated(made: Call) -> Value:
    left, right = made.args
    if not isinstance(left, Sequence):
        return Unknown("it is added")
    if not isinstance(right, Sequence):
        return Sequence(left.cls, left.items, Unknown("an element") if left.rest is None else left.rest)
    rest = joined([one for one in (left.rest, right.rest) if one is not None]) if (left.rest or right.rest) is not None else None
    return Sequence(left.cls, left.items + right.items, rest, made.place)


@method(LIST, "__mul__", "__rmul__")
@method(TUPLE, "__mul__", "__rmul__")
def _repeated(made: Call) -> Value:
    own, times = _items(made.args[0]), made.args[1]
    if isinstance(times, Known) and isinstance(times.value, int) and len(own.items) * times.value <= 64:
        return Sequence(own.cls, own.items * times.value, own.rest, made.place)
    return Sequence(own.cls, (), joined(own.every), made.place)


def _table(value: Value) -> Table:
    assert isinstance(value, Table)
    return value


@method(DICT, "items")
def _dict_items(made: Call) -> Value:
    return iteration.keys_and_values(_table(made.args[0]))


@method(DICT, "keys")
def _dict_keys(made: Call) -> Value:
    own = _table(made.args[0])
    return list_of([Known(key) for key, _ in own.entries()], None if own.rest is None else Unknown("a key"))


@method(DICT, "values")
def _dict_values(made: Call) -> Value:
    own = _table(made.args[0])
    return list_of([value for _, value in own.entries()], own.rest)


@method(DICT, "get", "pop")
def _dict_get(made: Call) -> Value:
    own, key = _table(made.args[0]), made.argument(1, "key")
    default = made.argument(2, "default")
    if isinstance(key, Known):
        if key.value in own.fields:
            return own.fields[key.value]  # type: ignore[no-any-return]
        return default if own.rest is None else joined([own.rest, default])
    return item(made.machine, own, key, made.node)


@method(DICT, "setdefault")
def _setdefault(made: Call) -> Value:
    own, key, default = _table(made.args[0]), made.argument(1, "key"), made.argument(2, "default")
    if isinstance(key, Known) and key.value in own.fields:
        return own.fields[key.value]  # type: ignore[no-any-return]
    set_item(made.machine, own, key, default, made.node)
    return default


@method(DICT, "update")
def _dict_update(made: Call) -> Value:
    own = _table(made.args[0])
    if len(made.args) > 1:
        _merge(own, made.args[1], made)
    for key, value in made.kwargs.items():
        made.machine.state.write(own.fields, key, value)
    return NONE


@method(DICT, "copy")
def _dict_copy(made: Call) -> Value:
    own = _table(made.args[0])
    return Table(own.cls, made.place, dict(own.fields))


@method(STRING, "join", "format", "lower", "upper", "strip", "replace", "split", "startswith", "endswith", "rstrip", "lstrip", "title", "rsplit", "partition", "rpartition", "encode", "removeprefix", "removesuffix")  # fmt: skip
def _string(made: Call) -> Value:
    own, name = made.args[0], getattr(getattr(made.node, "func", None), "attr", "")
    constants = [text for one in made.args[1:] if (text := _plain(one)) is not ...]
    if isinstance(own, Known) and len(constants) == len(made.args) - 1 and not made.kwargs and isinstance(own.value, str):
        try:
            result = getattr(own.value, name)(*constants)
        except (TypeError, ValueError, KeyError, IndexError, AttributeError):
            return Unknown("a string", "str")
        return list_of(map(Known, result)) if isinstance(result, list | tuple) else Known(result)
    return list_of((), Unknown("a part of a string", "str")) if "split" in name else Unknown("a string", "bool" if name.endswith("with") else "str")


def _plain(value: Value) -> Any:
    """A constant, or a list of constants, as Python has it; `...` for any other."""
    if isinstance(value, Sequence) and value.rest is None and all(isinstance(one, Known) for one in value.items):
        return [one.value for one in value.items]  # type: ignore[attr-defined]
    return value.value if isinstance(value, Known) else ...


@attribute_of(NUMBER, "real", "imag")
def _real(made: Call) -> Value:
    return made.args[0]


@method(OBJECT, "__init__", "__init_subclass__")
def _nothing(made: Call) -> Value:
    return NONE


# -- the standard library ----------------------------------------------------------------------------


@stub("functools.partial")
def _partial(made: Call) -> Value:
    return Object(PARTIAL, made.place, {"function": made.args[0], "args": tuple_of(made.args[1:]), "kwargs": table_of(dict(made.kwargs))})


PARTIAL = Class("functools.partial", (OBJECT,))


@method(PARTIAL, "__call__")
def _call_partial(made: Call) -> Value:
    own = made.args[0]
    assert isinstance(own, Object)
    kwargs = {**dict(own.fields["kwargs"].entries()), **made.kwargs}
    return call(made.machine, own.fields["function"], [*own.fields["args"].items, *made.args[1:]], kwargs, made.node, loose=made.loose)


@stub("contextlib.contextmanager", "contextlib.asynccontextmanager", "functools.lru_cache", "functools.cache", "functools.wraps", "abc.abstractmethod", "typing.final", "typing.overload", "atexit.register", "dataclasses.field", "typing.cast")
def _itself(made: Call) -> Value:
    """A decorator that keeps its function; with arguments of its own it makes one."""
    name = getattr(made.node, "func", made.node)
    if isinstance(name, ast.Call) or not made.args or not isinstance(made.args[-1], Function):
        if "default" in made.kwargs:
            return made.kwargs["default"]
        if "default_factory" in made.kwargs:
            return attempt(made.machine, made.kwargs["default_factory"], [], made.node)
        return made.args[-1] if len(made.args) > 1 else find_itself()
    return find_itself() if isinstance(made.node, ast.Call) and getattr(made.node.func, "attr", getattr(made.node.func, "id", "")) == "wraps" else made.args[0]


def find_itself() -> Value:
    """The decorator that keeps its function."""
    return _ITSELF


@stub("ta_lint.keeps")
def _keeps(made: Call) -> Value:
    return made.args[0] if made.args else NONE


_ITSELF = find("ta_lint.keeps")


@stub("copy.deepcopy", "copy.copy")
def _copy(made: Call) -> Value:
    value = made.argument(0, "x")
    own = value.cls.find("__copied__") if isinstance(value, Object) else None
    if own is not None:
        return call(made.machine, own, [value], {}, made.node)
    return _copied(value, {})


def _copied(value: Value, made: dict[int, Value]) -> Value:
    if isinstance(value, Sequence):
        return Sequence(value.cls, tuple(_copied(one, made) for one in value.items), value.rest, value.made)
    if isinstance(value, Table):
        return Table(value.cls, value.made, {key: _copied(one, made) for key, one in value.fields.items()})
    return value


@stub("argparse.ArgumentParser")
def _parser(made: Call) -> Value:
    return Object(PARSER, made.place, {"arguments": Table(DICT, made.place, {})})


PARSER = Class("argparse.ArgumentParser", (OBJECT,))
NAMESPACE = new_class("argparse.Namespace", "types.SimpleNamespace")


@method(NAMESPACE, "__init__")
def _namespace(made: Call) -> Value:
    own = made.args[0]
    assert isinstance(own, Object)
    for name, value in made.kwargs.items():
        made.machine.state.write(own.fields, name, value)
    return NONE


@method(PARSER, "add_argument")
def _add_argument(made: Call) -> Value:
    own = made.args[0]
    assert isinstance(own, Object)
    flags = [one.value for one in made.args[1:] if isinstance(one, Known) and isinstance(one.value, str)]
    if not flags:
        return NONE
    long = next((flag for flag in flags if flag.startswith("--")), flags[0])
    name = made.constant(99, "dest", long.lstrip("-").replace("-", "_"))
    kind = made.kwargs.get("type")
    type_name = kind.name if isinstance(kind, Class) and kind.name in ("int", "float", "str") else None
    action = made.constant(99, "action")
    if action in ("store_true", "store_false"):
        value: Value = Unknown(f"the option {long}", "bool")
    else:
        default = made.kwargs.get("default", NONE)
        value = default if isinstance(default, Known) and default != NONE else Unknown(f"the option {long}", type_name)
    made.machine.state.write(own.fields["arguments"].fields, name, value)
    return NONE


@method(PARSER, "parse_args", "parse_known_args")
def _parse(made: Call) -> Value:
    own = made.args[0]
    assert isinstance(own, Object)
    namespace = Object(NAMESPACE, made.place, dict(own.fields["arguments"].fields))
    return tuple_of([namespace, list_of(())]) if getattr(getattr(made.node, "func", None), "attr", "") == "parse_known_args" else namespace


@method(PARSER, "add_argument_group", "add_mutually_exclusive_group")
def _group(made: Call) -> Value:
    return made.args[0]


@method(PARSER, "set_defaults")
def _defaults(made: Call) -> Value:
    own = made.args[0]
    assert isinstance(own, Object)
    for name, value in made.kwargs.items():
        made.machine.state.write(own.fields["arguments"].fields, name, value)
    return NONE


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
        for statement in one.node.body if one.node is not None else ():
            if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
                found[statement.target.id] = one.fields.get(statement.target.id)
    return list(found.items())


@stub("ta_lint.dataclass_init")
def _dataclass_init(made: Call) -> Value:
    own = made.args[0]
    assert isinstance(own, Object)
    for index, (name, default) in enumerate(_fields_of(own.cls), 1):
        value = made.given(index, name)
        if value is None:
            value = default if default is not None and not made.loose else Unknown(f"the field {name}")
            if isinstance(value, Sequence | Table):
                value = _copied(value, {})
        made.machine.state.write(own.fields, name, value)
    after = own.cls.find("__post_init__")
    if after is not None:
        call(made.machine, after, [own], {}, made.node)
    return NONE


_DATACLASS_INIT = find("ta_lint.dataclass_init")
ENUM = new_class("enum.Enum", "enum.IntEnum", "enum.StrEnum", "enum.Flag")
NAMED = new_class("typing.NamedTuple")


@method(NAMED, "__class_made__")
def _named(made: Call) -> Value:
    cls = made.args[0]
    assert isinstance(cls, Class)
    cls.fields["__init__"] = _DATACLASS_INIT
    return cls


@method(NAMED, "__iter__")
def _named_parts(made: Call) -> Value:
    own = made.args[0]
    assert isinstance(own, Object)
    return list_of(own.fields.values())


@method(ENUM, "__class_made__")
def _enum(made: Call) -> Value:
    cls = made.args[0]
    assert isinstance(cls, Class)
    for name, value in list(cls.fields.items()):
        if not name.startswith("_") and isinstance(value, Known | Sequence):
            cls.fields[name] = Object(cls, made.place, {"name": Known(name), "value": value})
    return cls


@stub("math.sqrt", "math.log", "math.exp", "math.cos", "math.sin", "math.ceil", "math.floor", "math.pow", "time.time", "time.perf_counter", "random.random", "random.uniform", "random.gauss")  # fmt: skip
def _number(made: Call) -> Value:
    return Unknown("a number", "float")


@stub("random.randint", "random.randrange", "math.prod", "os.cpu_count")
def _integer(made: Call) -> Value:
    return Unknown("a number", "int")


define(Known(3.141592653589793), "math.pi")
define(Known(float("inf")), "math.inf")


@stub("tqdm.tqdm", "tqdm.auto.tqdm", "tqdm.notebook.tqdm", "tqdm.trange", "tqdm.auto.trange", "rich.progress.track")
def _tqdm(made: Call) -> Value:
    value = made.argument(0, "iterable")
    if isinstance(value, Known | Unknown) and not isinstance(value, Known):
        return value
    if isinstance(value, Known):
        return _range(made)
    found = iteration.elements(made.machine, value, made.node)
    return found if isinstance(found, Stream) else list_of(*found)
