"""Containers of modules: `ModuleList`, `Sequential`, `ModuleDict`."""

from ta_lint.dryrun.machine import iteration
from ta_lint.dryrun.machine.call import Call
from ta_lint.dryrun.machine.calling import call
from ta_lint.dryrun.machine.library import list_of, method, table_of, tuple_of
from ta_lint.dryrun.machine.objects import item
from ta_lint.dryrun.stubs.torch.modules import CONTAINER, KEYED, SEQUENTIAL, is_module, own_of
from ta_lint.dryrun.values import (
    FALSE,
    NONE,
    REST,
    TRUE,
    Known,
    Object,
    Sequence,
    Table,
    Unknown,
    Value,
    join,
    joined,
    options,
)


@method(CONTAINER, "__init__")
def _fill(made: Call) -> Value:
    own = own_of(made)
    items: tuple[Value, ...]
    rest: Value | None = None
    if own.cls.is_a(SEQUENTIAL):
        items = tuple(made.args[1:])
        if len(items) == 1 and isinstance(items[0], Table):
            for name, value in items[0].entries():
                made.machine.state.write(own.fields, str(name), value)
            return NONE
        rest = Unknown("a layer out of sight") if made.loose else None
    else:
        items, rest = (
            iteration.collected(made.machine, made.args[1], made.node) if len(made.args) > 1 else ((), None)
        )
    for index, value in enumerate(items):
        made.machine.state.write(own.fields, str(index), value)
    if rest is not None:
        made.machine.state.write(own.fields, "…", rest)
        made.machine.state.write(
            own.fields, "incomplete", FALSE if all(map(is_module, options(rest))) else TRUE
        )
    return NONE


@method(SEQUENTIAL, "forward")
def _in_order(made: Call) -> Value:
    value: Value = made.args[1] if len(made.args) > 1 else made.kwargs.get("input", Unknown("an input"))
    for layer in _layers(own_of(made)):
        value = call(made.machine, layer, [value], {}, made.node)
    return value


def _layers(own: Object) -> list[Value]:
    return [value for name, value in own.fields.items() if name not in ("training", "incomplete")]


@method(CONTAINER, "__iter__")
def _iterated(made: Call) -> Value:
    own = own_of(made)
    known = [value for name, value in own.fields.items() if name not in ("training", "incomplete", "…")]
    return list_of(known, own.fields.get("…"))


@method(CONTAINER, "__getitem__")
def _indexed(made: Call) -> Value:
    own, key = own_of(made), made.args[1]
    members = list_of(_layers(own)) if "…" not in own.fields else list_of((), _any_of(own))
    if isinstance(key, Known) and isinstance(key.value, slice):
        part = Object(own.cls, made.place, {"training": TRUE})
        chosen = item(made.machine, members, key, made.node)
        if isinstance(chosen, Sequence):
            part.fields.update({str(index): value for index, value in enumerate(chosen.items)})
        return part
    return item(made.machine, members, key, made.node)


def _any_of(own: Object) -> Value:
    return joined(_layers(own))


@method(CONTAINER, "__len__")
def _length(made: Call) -> Value:
    own = own_of(made)
    return Unknown("a length", "int") if "…" in own.fields else Known(len(_layers(own)))


@method(CONTAINER, "append", "extend", "insert")
def _append(made: Call) -> Value:
    own = own_of(made)
    if made.name == "extend":
        items, rest = iteration.collected(made.machine, made.argument(1, "modules"), made.node)
    else:
        items, rest = (made.args[-1],), None
    if any(one.number for one in made.machine.passes) and _layers(own):
        rest = items[-1] if items else rest
        items = ()
    count = len(_layers(own))
    for index, value in enumerate(items, count):
        made.machine.state.write(own.fields, str(index), value)
    if rest is not None:
        made.machine.state.write(own.fields, "…", rest)
    return own


@method(KEYED, "__init__", "update")
def _fill_keyed(made: Call) -> Value:
    own = own_of(made)
    given = made.args[1] if len(made.args) > 1 else table_of({})
    if isinstance(given, Table):
        for name, value in given.fields.items():
            made.machine.state.write(own.fields, "…" if name is REST else str(name), value)
    else:
        items, rest = iteration.collected(made.machine, given, made.node)
        for pair in items:
            known = isinstance(pair, Sequence) and len(pair.items) == 2 and isinstance(pair.items[0], Known)
            if known:
                made.machine.state.write(own.fields, str(pair.items[0].value), pair.items[1])  # type: ignore[attr-defined]
            else:
                rest = pair if rest is None else join(rest, pair)
        if rest is not None:
            value = (
                rest.items[1] if isinstance(rest, Sequence) and len(rest.items) == 2 else Unknown("a module")
            )
            made.machine.state.write(own.fields, "…", value)
            if not is_module(value):
                made.machine.state.write(own.fields, "incomplete", TRUE)
    return NONE


@method(KEYED, "__getitem__")
def _keyed(made: Call) -> Value:
    own, key = own_of(made), made.args[1]
    if isinstance(key, Known) and key.value in own.fields:
        return own.fields[key.value]  # type: ignore[no-any-return]
    return _any_of(own) if _layers(own) else Unknown("a module")


@method(KEYED, "__setitem__")
def _set_keyed(made: Call) -> Value:
    key = made.args[1]
    made.machine.state.write(
        own_of(made).fields, str(key.value) if isinstance(key, Known) else "…", made.args[2]
    )
    return NONE


@method(KEYED, "items", "keys", "values", "__iter__")
def _keyed_parts(made: Call) -> Value:
    own = own_of(made)

    def part(key: Value, value: Value) -> Value:
        return tuple_of([key, value]) if made.name == "items" else value if made.name == "values" else key

    known = [(key, value) for key, value in own.fields.items() if key not in ("training", "incomplete", "…")]
    beyond = own.fields.get("…")
    if own.fields.get("incomplete") == TRUE:
        beyond = Unknown("a module out of sight")
    return list_of(
        [part(Known(key), value) for key, value in known],
        None if beyond is None else part(Unknown("a name", "str"), beyond),
    )


@method(KEYED, "__contains__")
def _has_key(made: Call) -> Value:
    own, key = own_of(made), made.args[1]
    if isinstance(key, Known) and key.value in own.fields:
        return TRUE
    open_ = "…" in own.fields or own.fields.get("incomplete") == TRUE
    return FALSE if isinstance(key, Known) and not open_ else Unknown("a key", "bool")


@method(KEYED, "__len__")
def _count(made: Call) -> Value:
    own = own_of(made)
    return Unknown("a length", "int") if "…" in own.fields else Known(len(_layers(own)))
