"""The methods of lists, dictionaries and strings."""

from math import prod
from typing import Any

from ta_lint.dryrun.machine import iteration
from ta_lint.dryrun.machine.amounts import is_of_model, of_product
from ta_lint.dryrun.machine.batches import of_batch
from ta_lint.dryrun.machine.call import Call
from ta_lint.dryrun.machine.counts import number_of
from ta_lint.dryrun.machine.last_batches import KEPT, used
from ta_lint.dryrun.machine.library import (
    DICT,
    LIST,
    NUMBER,
    OBJECT,
    SET,
    STRING,
    TUPLE,
    attribute_of,
    list_of,
    method,
    new_class,
    tuple_of,
)
from ta_lint.dryrun.machine.objects import (
    item,
    set_item,
)
from ta_lint.dryrun.sources import filled
from ta_lint.dryrun.stubs.python.construction import distinct, merge
from ta_lint.dryrun.stubs.python.iterating import in_order
from ta_lint.dryrun.values import (
    NONE,
    TRUE,
    Hidden,
    Known,
    Object,
    Sequence,
    Table,
    Unknown,
    Value,
    join,
    joined,
)

BOUND = Hidden("that a list drops the first when it is full")
DEQUE = new_class("collections.deque", bases=(LIST,))


@method(DEQUE, "__new__")
def _deque(made: Call) -> Value:
    items, rest = (
        iteration.collected(made.machine, made.args[1], made.node) if len(made.args) > 1 else ((), None)
    )
    own = Sequence(DEQUE, items, rest, made.place)
    if made.argument(2, "maxlen") != NONE:
        own.fields[BOUND] = TRUE
    return own


@method(LIST, "append", "add", "appendleft")
@method(SET, "add")
def _append(made: Call) -> Value:
    own = made.own(Sequence)
    value = made.argument(1, "object")
    if own.cls.is_a(SET) and value in own.items:
        return NONE
    made.emit("append", own, value=value)
    used(made.machine, [value], made.node, KEPT)
    if BOUND in own.fields:
        made.emit("empty", own)
    state = made.machine.state
    if (
        own.rest is not None
        or len(own.items) >= 64
        or (own.items and any(one.settled for one in made.machine.passes))
    ):
        state.extend(own, value)
    else:
        state.refill(own, (*own.items, value), None)
    return NONE


@method(LIST, "extend", "__iadd__")
@method(SET, "update")
def _extend(made: Call) -> Value:
    own = made.own(Sequence)
    items, rest = iteration.collected(made.machine, made.argument(1, "iterable"), made.node)
    made.emit("append", own, value=list_of(items, rest))
    rest = join(own.rest, rest) if own.rest and rest else own.rest or rest
    if own.cls.is_a(SET):
        items, rest = distinct(own.items + items, rest)
    elif own.rest is not None or (own.items and any(one.settled for one in made.machine.passes)):
        items, rest = (
            own.items,
            joined([*items, *([] if rest is None else [rest])]) if items or rest else None,
        )
    else:
        items = own.items + items
    made.machine.state.refill(own, items, rest)
    return own if made.name == "__iadd__" else NONE


@method(SET, "__or__", "__ior__", "union", "__and__", "__iand__", "intersection", "__sub__", "__isub__", "difference", "__xor__", "symmetric_difference", "difference_update", "intersection_update", "copy")  # fmt: skip
def _of_sets(made: Call) -> Value:
    """What two sets give: known where all that they hold is told apart."""
    own, name = made.own(Sequence), made.name.strip("_")
    found = [iteration.collected(made.machine, one, made.node) for one in made.args[1:]]
    items, rest = own.items, own.rest
    for more, further in found:
        apart = rest is None and further is None and all(_apart(one) for one in (*items, *more))
        if name in ("or", "ior", "union"):
            items, rest = distinct(
                (*items, *more), joined([one for one in (rest, further) if one]) if rest or further else None
            )
        elif not apart:
            items, rest = (), joined([*items, *more, *(one for one in (rest, further) if one)])
        elif name in ("xor", "symmetric_difference"):
            items = (*(one for one in items if one not in more), *(one for one in more if one not in items))
        else:
            stays = name in ("and", "iand", "intersection", "intersection_update")
            items = tuple(one for one in items if (one in more) is stays)
    if made.name.startswith("__i") or name.endswith("update"):
        made.machine.state.refill(own, items, rest)
        return own if made.name.startswith("__i") else NONE
    return Sequence(own.cls, items, rest, made.place)


def _apart(value: Value) -> bool:
    return isinstance(value, Known | Object)


@method(LIST, "pop", "popleft")
@method(SET, "pop")
def _pop(made: Call) -> Value:
    own = made.own(Sequence)
    made.emit("empty", own)
    index = made.constant(1, "index", -1)
    if own.rest is None and isinstance(index, int) and -len(own.items) <= index < len(own.items):
        items = list(own.items)
        taken = items.pop(index)
        made.machine.state.refill(own, items, None)
        return taken
    if own.every:
        made.machine.state.refill(own, (), joined(own.every))
    return joined(own.every)


@method(LIST, "insert")
def _insert(made: Call) -> Value:
    own = made.own(Sequence)
    index, value = made.constant(1, "index"), made.argument(2, "object")
    made.emit("append", own, value=value)
    items = list(own.items)
    items.insert(index if isinstance(index, int) else len(items), value)
    made.machine.state.refill(own, items, own.rest)
    return NONE


@method(SET, "isdisjoint", "issubset", "issuperset")
def _verdict(made: Call) -> Value:
    return Unknown("a verdict about sets", "bool")


@method(LIST, "clear")
@method(SET, "clear")
def _clear(made: Call) -> Value:
    own = made.own(Sequence)
    made.emit("empty", own)
    made.machine.state.refill(own, (), None)
    return NONE


@method(LIST, "copy")
def _copy(made: Call) -> Value:
    own = made.own(Sequence)
    return list_of(own.items, own.rest)


@method(LIST, "sort", "reverse", "rotate")
def _reordered(made: Call) -> Value:
    own = made.own(Sequence)
    if made.name == "reverse" and own.rest is None:
        made.machine.state.refill(own, reversed(own.items), None)
    elif made.name == "sort":
        now = in_order(own.items, own.rest, dict(made.kwargs))
        made.machine.state.refill(own, now.items, now.rest)
    elif own.every:
        made.machine.state.refill(own, (), joined(own.every))
    return NONE


@method(LIST, "remove")
@method(SET, "remove", "discard")
def _removed(made: Call) -> Value:
    own, value = made.own(Sequence), made.argument(1, "object")
    made.emit("empty", own)
    if own.rest is None and all(map(_apart, (*own.items, value))):
        items = list(own.items)
        if value in items:
            items.remove(value)
        made.machine.state.refill(own, items, None)
    elif own.every:
        made.machine.state.refill(own, (), joined(own.every))
    return NONE


@method(LIST, "index")
@method(TUPLE, "index")
def _position(made: Call) -> Value:
    return Unknown("a position", "int")


@method(LIST, "count")
@method(TUPLE, "count")
def _times(made: Call) -> Value:
    rest = getattr(made.args[0], "rest", None)
    counted = of_batch(made.machine, grows=1) if rest is not None and is_of_model(rest) else None
    return Unknown("how often it is there", "int", amount=counted)


@method(LIST, "__add__")
@method(TUPLE, "__add__")
def _concatenated(made: Call) -> Value:
    left, right = made.args
    if not isinstance(left, Sequence):
        return Unknown("it is added")
    if not isinstance(right, Sequence):
        return Sequence(left.cls, left.items, Unknown("an element") if left.rest is None else left.rest)
    rest = (
        joined([one for one in (left.rest, right.rest) if one is not None])
        if (left.rest or right.rest) is not None
        else None
    )
    return Sequence(left.cls, left.items + right.items, rest, made.place)


@method(LIST, "__mul__", "__rmul__")
@method(TUPLE, "__mul__", "__rmul__")
def _repeated(made: Call) -> Value:
    own, times = made.own(Sequence), number_of(made.args[1])
    if times is not None and len(own.items) * times <= 64:
        return Sequence(own.cls, own.items * times, own.rest, made.place)
    return Sequence(own.cls, (), joined(own.every), made.place)


@method(TUPLE, "numel")
def _size(made: Call) -> Value:
    """Of a shape."""
    own = made.own(Sequence)
    sizes = [one.value for one in own.items if isinstance(one, Known) and isinstance(one.value, int)]
    known = own.rest is None and len(sizes) == len(own.items)
    if known:
        return Known(prod(sizes))
    return Unknown("a number of elements", "int", amount=of_product(own.every))


@method(DICT, "items")
def _dict_items(made: Call) -> Value:
    return iteration.keys_and_values(made.own(Table))


@method(DICT, "keys")
def _dict_keys(made: Call) -> Value:
    own = made.own(Table)
    return list_of([Known(key) for key, _ in own.entries()], None if own.rest is None else Unknown("a key"))


@method(DICT, "values")
def _dict_values(made: Call) -> Value:
    own = made.own(Table)
    return list_of([value for _, value in own.entries()], own.rest)


@method(DICT, "__getitem__", "__setitem__")
def _item(made: Call) -> Value:
    """Also as a class may call them its `__getattr__` and `__setattr__`."""
    if made.name == "__getitem__":
        return item(made.machine, made.args[0], made.argument(1, "key"), made.node)
    set_item(made.machine, made.args[0], made.argument(1, "key"), made.argument(2, "value"), made.node)
    return NONE


@method(DICT, "get", "pop")
def _dict_get(made: Call) -> Value:
    own, key = made.own(Table), made.argument(1, "key")
    if made.name == "pop":
        made.emit("empty", own)
    default = made.argument(2, "default")
    if isinstance(key, Known):
        if key.value in own.fields:
            found: Value = own.fields[key.value]
            if made.name == "pop":
                _take_out(made, own, key.value)
            return found
        return default if own.rest is None else joined([own.rest, default])
    return item(made.machine, own, key, made.node)


def _take_out(made: Call, own: Table, key: Any) -> None:
    """Of a dictionary that loses a key on one path, nobody knows afterwards whether it has it."""
    if made.machine.doubt:
        made.machine.state.write(own.fields, key, Unknown("it is taken out on some path"))
    else:
        made.machine.state.remove(own.fields, key)


@method(DICT, "setdefault")
def _setdefault(made: Call) -> Value:
    own, key, default = made.own(Table), made.argument(1, "key"), made.argument(2, "default")
    if isinstance(key, Known) and key.value in own.fields:
        return own.fields[key.value]  # type: ignore[no-any-return]
    set_item(made.machine, own, key, default, made.node)
    return default


@method(DICT, "update")
def _dict_update(made: Call) -> Value:
    own = made.own(Table)
    if len(made.args) > 1:
        merge(own, made.args[1], made)
    for key, value in made.kwargs.items():
        made.machine.state.write(own.fields, key, value)
    return NONE


@method(DICT, "clear")
def _dict_clear(made: Call) -> Value:
    own = made.own(Table)
    made.emit("empty", own)
    for key in list(own.fields):
        made.machine.state.remove(own.fields, key)
    return NONE


@method(DICT, "move_to_end")
def _moved_to_end(made: Call) -> Value:
    return NONE


@method(DICT, "most_common")
def _most_common(made: Call) -> Value:
    return list_of((), tuple_of([Unknown("a key"), Unknown("a count", "int")]))


@method(DICT, "popitem")
def _popped(made: Call) -> Value:
    own = made.own(Table)
    return tuple_of([Unknown("a key"), joined(list(own.fields.values()))])


@method(DICT, "copy")
def _dict_copy(made: Call) -> Value:
    own = made.own(Table)
    return Table(own.cls, made.place, dict(own.fields))


@method(STRING, "join", "format", "lower", "upper", "strip", "replace", "split", "startswith", "endswith", "rstrip", "lstrip", "title", "rsplit", "partition", "rpartition", "encode", "removeprefix", "removesuffix")  # fmt: skip
def _string(made: Call) -> Value:
    own, name = made.args[0], made.name
    constants = [text for one in made.args[1:] if (text := _plain(one)) is not ...]
    if (
        isinstance(own, Known)
        and len(constants) == len(made.args) - 1
        and not made.kwargs
        and isinstance(own.value, str)
        and sum(_length(one) for one in (own.value, *constants)) < LONGEST
        and not (name == "format" and ":" in own.value)
    ):
        try:
            result = getattr(own.value, name)(*constants)
        except (TypeError, ValueError, KeyError, IndexError, AttributeError):
            return Unknown("a string", "str")
        return list_of(map(Known, result)) if isinstance(result, list | tuple) else Known(result)
    if name == "format" and isinstance(own, Known) and isinstance(own.value, str):
        return filled(own.value, "{", made.args[1:] if not made.kwargs else [])
    return (
        list_of((), Unknown("a part of a string", "str"))
        if "split" in name
        else Unknown("a string", "bool" if name.endswith("with") else "str")
    )


LONGEST = 2_000
"""Characters of strings that are computed with. Longer ones are data."""


def _length(value: Any) -> int:
    return (
        sum(map(_length, value))
        if isinstance(value, list | tuple)
        else len(value)
        if isinstance(value, str)
        else 1
    )


def _plain(value: Value) -> Any:
    """A constant, or a list or tuple of constants, as Python has it; `...` for any other."""
    if (
        isinstance(value, Sequence)
        and value.rest is None
        and all(isinstance(one, Known) for one in value.items)
    ):
        constants = [one.value for one in value.items]  # type: ignore[attr-defined]
        return tuple(constants) if value.cls is TUPLE else constants
    return value.value if isinstance(value, Known) else ...


@attribute_of(NUMBER, "real", "imag")
def _real(made: Call) -> Value:
    return made.args[0]


@method(OBJECT, "__init__", "__init_subclass__")
def _nothing(made: Call) -> Value:
    return NONE
