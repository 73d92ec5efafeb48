"""Containers of modules: `nn.Sequential`, `nn.ModuleList`, `nn.ModuleDict`, and those of parameters."""

from dataclasses import replace

from ta_lint.dryrun.machine import iteration
from ta_lint.dryrun.machine.call import Call
from ta_lint.dryrun.machine.calling import call
from ta_lint.dryrun.machine.counts import LENGTH
from ta_lint.dryrun.machine.library import list_of, method, new_class, table_of, tuple_of
from ta_lint.dryrun.machine.machine import Machine
from ta_lint.dryrun.machine.objects import item
from ta_lint.dryrun.stubs.torch.modules import MODULE, added, is_module, replaced
from ta_lint.dryrun.stubs.torch.tensors import PARAMETER, Tensor
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

CONTAINER = new_class("torch.nn.ModuleList", bases=(MODULE,))
PARAMETERS = new_class("torch.nn.ParameterList", bases=(CONTAINER,))
SEQUENTIAL = new_class("torch.nn.Sequential", bases=(CONTAINER,))
KEYED = new_class("torch.nn.ModuleDict", bases=(MODULE,))
NAMED_PARAMETERS = new_class("torch.nn.ParameterDict", bases=(KEYED,))


@method(CONTAINER, "__init__")
def _fill(made: Call) -> Value:
    own = made.own()
    items: tuple[Value, ...]
    rest: Value | None = None
    if own.cls.is_a(SEQUENTIAL):
        items = tuple(made.args[1:])
        if len(items) == 1 and isinstance(items[0], Table):
            for name, value in items[0].entries():
                made.machine.state.write(own.fields, str(name), value)
            return NONE
        if made.loose and items:
            items, rest = items[:-1], items[-1]  # a list of layers whose last one stands for others
    else:
        items, rest = (
            iteration.collected(made.machine, made.args[1], made.node) if len(made.args) > 1 else ((), None)
        )
    _hold(made.machine, own, items, rest)
    return NONE


@method(SEQUENTIAL, "forward")
def _in_order(made: Call) -> Value:
    value: Value = made.args[1] if len(made.args) > 1 else made.kwargs.get("input", Unknown("an input"))
    for layer in _layers(made.own()):
        value = call(made.machine, layer, [value], {}, made.node)
    return value


def _layers(own: Object) -> list[Value]:
    return [own.fields[name] for name in own.fields if name == "…" or _is_layer(name, own.fields[name])]


def _known(own: Object) -> list[str]:
    """The names of the layers that are known one by one, in order."""
    return [name for name in own.fields if _is_layer(name, own.fields[name])]


def _is_layer(name: object, value: Value) -> bool:
    """Whether an attribute is one of the layers or parameters, and not another one of a class of the program."""
    return isinstance(name, str) and (name.isdigit() or any(map(is_module, options(value))))


def _members(own: Object) -> Sequence:
    return list_of([own.fields[name] for name in _known(own)], own.fields.get("…"))


@method(CONTAINER, "__iter__")
def _iterated(made: Call) -> Value:
    return _members(made.own())


@method(CONTAINER, "__getitem__")
def _indexed(made: Call) -> Value:
    own, key = made.own(), made.args[1]
    chosen = item(made.machine, _members(own), key, made.node)
    if not (isinstance(key, Known) and isinstance(key.value, slice) and isinstance(chosen, Sequence)):
        return chosen
    part = Object(own.cls, made.place, {"training": TRUE})
    _hold(made.machine, part, chosen.items, chosen.rest)
    return part


def _any_of(own: Object) -> Value:
    return joined(_layers(own))


def _kept(own: Object, value: Value) -> Value:
    """What a container keeps: of a tensor, containers of parameters make one."""
    if (
        isinstance(value, Tensor)
        and value.cls is not PARAMETER
        and (own.cls.is_a(PARAMETERS) or own.cls.is_a(NAMED_PARAMETERS))
    ):
        return Tensor(replace(value.facts, requires=True), value.made, PARAMETER)
    return value


def _hold(
    machine: Machine, own: Object, items: tuple[Value, ...] | list[Value], rest: Value | None = None
) -> None:
    """A container holds these layers instead of any that it has."""
    for name in [*_known(own), "…"]:
        machine.state.remove(own.fields, name)
    for index, value in enumerate(items):
        machine.state.write(own.fields, str(index), _kept(own, value))
    if rest is not None:
        machine.state.write(own.fields, "…", _kept(own, rest))
        machine.state.write(own.fields, "incomplete", FALSE if all(map(is_module, options(rest))) else TRUE)


@method(CONTAINER, "__setitem__")
def _replace(made: Call) -> Value:
    """Another layer takes the place of one; if nobody knows of which, of each perhaps."""
    own, key, new = made.own(), made.args[1], made.args[2]
    names = _known(own)
    index = key.value if isinstance(key, Known) and isinstance(key.value, int) else None
    if index is not None and -len(names) <= index < len(names):
        replaced(made, own, own.fields[names[index]], new)
        made.machine.state.write(own.fields, names[index], new)
        return NONE
    for name in names if index is None else ():
        made.machine.state.write(own.fields, name, join(own.fields[name], new))
    if "…" in own.fields:
        made.machine.state.write(own.fields, "…", join(own.fields["…"], new))
    return NONE


@method(CONTAINER, "__delitem__", "pop")
def _remove(made: Call) -> Value:
    """The layers behind one that goes away move up."""
    own, key = made.own(), made.argument(1, "key", -1)
    items = [own.fields[name] for name in _known(own)]
    gone = item(made.machine, _members(own), key, made.node)
    try:
        del items[key.value if isinstance(key, Known) else -1]
    except (IndexError, TypeError):
        return gone
    if isinstance(key, Known):
        _hold(made.machine, own, items, own.fields.get("…"))
    else:
        _hold(made.machine, own, (), _any_of(own))
    return gone


@method(CONTAINER, "__len__")
def _length(made: Call) -> Value:
    own = made.own()
    return Unknown(LENGTH, "int") if "…" in own.fields else Known(len(_layers(own)))


@method(CONTAINER, "append", "extend", "insert")
def _append(made: Call) -> Value:
    own = made.own()
    if made.name == "extend":
        items, rest = iteration.collected(made.machine, made.argument(1, "modules"), made.node)
    else:
        items, rest = (made.args[-1],), None
    added(made, own, *items)
    known, further = [own.fields[name] for name in _known(own)], own.fields.get("…")
    if (made.machine.passes and made.machine.passes[-1].settled and known) or further is not None:
        rest = joined(
            [*items, *(one for one in (rest, further) if one is not None)]
        )  # and so in each later pass
        items = ()
    at = made.constant(1, "index") if made.name == "insert" else len(known)
    at = at if isinstance(at, int) else len(known)
    _hold(made.machine, own, [*known[:at], *items, *known[at:]], rest)
    return own


@method(KEYED, "__init__", "update")
def _fill_keyed(made: Call) -> Value:
    own = made.own()
    given = made.args[1] if len(made.args) > 1 else table_of({})
    if isinstance(given, Table):
        for name, value in given.fields.items():
            made.machine.state.write(own.fields, "…" if name is REST else str(name), _kept(own, value))
        return NONE
    items, rest = iteration.collected(made.machine, given, made.node)
    for pair in items:
        known = isinstance(pair, Sequence) and len(pair.items) == 2 and isinstance(pair.items[0], Known)
        if known:
            made.machine.state.write(own.fields, str(pair.items[0].value), _kept(own, pair.items[1]))  # type: ignore[attr-defined]
        else:
            rest = pair if rest is None else join(rest, pair)
    if rest is not None:
        value = rest.items[1] if isinstance(rest, Sequence) and len(rest.items) == 2 else Unknown("a module")
        made.machine.state.write(own.fields, "…", _kept(own, value))
        if not is_module(value):
            made.machine.state.write(own.fields, "incomplete", TRUE)
    return NONE


@method(KEYED, "__getitem__")
def _keyed(made: Call) -> Value:
    own, key = made.own(), made.args[1]
    if isinstance(key, Known) and key.value in own.fields:
        return own.fields[key.value]  # type: ignore[no-any-return]
    every = [value for _, value in _entries(own)] + [
        own.fields[name] for name in ("…",) if name in own.fields
    ]
    return joined(every) if every else Unknown("a module")


def _entries(own: Object) -> list[tuple[str, Value]]:
    other = ("training", "incomplete", "…")
    return [(key, value) for key, value in own.fields.items() if isinstance(key, str) and key not in other]


@method(KEYED, "__setitem__")
def _set_keyed(made: Call) -> Value:
    key = made.args[1]
    name = str(key.value) if isinstance(key, Known) else "…"
    added(made, made.own(), made.args[2])
    made.machine.state.write(made.own().fields, name, _kept(made.own(), made.args[2]))
    return NONE


@method(KEYED, "items", "keys", "values", "__iter__")
def _keyed_parts(made: Call) -> Value:
    own = made.own()

    def part(key: Value, value: Value) -> Value:
        return tuple_of([key, value]) if made.name == "items" else value if made.name == "values" else key

    beyond = Unknown("a module out of sight") if own.fields.get("incomplete") == TRUE else own.fields.get("…")
    return list_of(
        [part(Known(key), value) for key, value in _entries(own)],
        None if beyond is None else part(Unknown("a name", "str"), beyond),
    )


@method(KEYED, "__contains__")
def _has_key(made: Call) -> Value:
    own, key = made.own(), made.args[1]
    if isinstance(key, Known) and key.value in dict(_entries(own)):
        return TRUE
    is_open = "…" in own.fields or own.fields.get("incomplete") == TRUE
    return FALSE if isinstance(key, Known) and not is_open else Unknown("a key", "bool")


@method(KEYED, "__len__")
def _count(made: Call) -> Value:
    own = made.own()
    is_open = "…" in own.fields or own.fields.get("incomplete") == TRUE
    return Unknown(LENGTH, "int") if is_open else Known(len(_entries(own)))
