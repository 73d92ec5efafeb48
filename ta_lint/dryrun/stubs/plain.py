"""Libraries that know nothing of tensors: `ta_lint/data/plain.toml` lists them, and what some of their functions give."""

import math
from typing import NamedTuple

from ta_lint.core.data import read
from ta_lint.dryrun.machine import sizes
from ta_lint.dryrun.machine.amounts import of_function
from ta_lint.dryrun.machine.call import Call
from ta_lint.dryrun.machine.calling import hand_over
from ta_lint.dryrun.machine.factors import factors_of, number
from ta_lint.dryrun.machine.library import OBJECT, define, family, method, new_class, stub
from ta_lint.dryrun.machine.sizes import TABLE
from ta_lint.dryrun.stubs.python.functions import read as read_numbers
from ta_lint.dryrun.stubs.python.functions import show
from ta_lint.dryrun.stubs.python.standard import KEEPS
from ta_lint.dryrun.stubs.torch import outputs
from ta_lint.dryrun.stubs.torch.dtypes import NUMPY_FLOAT
from ta_lint.dryrun.values import (
    DATA,
    NONE,
    Class,
    External,
    Function,
    Known,
    Native,
    Object,
    Unknown,
    Value,
    cuts_of,
    each_in,
    is_data,
    is_number,
)


class Plain(NamedTuple):
    """The tables of the file: names with a space between them."""

    libraries: dict[str, str]
    results: dict[str, str]
    reading: dict[str, str]
    attributes: dict[str, str]
    methods: dict[str, str]


_PLAIN = read("plain.toml", Plain)
_NUMBERS = frozenset(_PLAIN.libraries["numbers"].split())
_OTHERS = frozenset(_PLAIN.libraries["others"].split())
_TABLES = frozenset(f"pandas.read_{kind}" for kind in "csv excel feather fwf orc parquet stata table".split())
_STAY = frozenset(
    f"numpy.{name}"
    for name in "abs array asarray ascontiguousarray clip exp float32 float64 log log10 log1p nan_to_num sqrt".split()
)
"""Functions whose result has the shape of what they get."""
_FLOATS = frozenset(f"numpy.{name}" for name in "exp log log10 log1p sqrt".split())
"""Functions that give a float64 for a number of Python."""
_DEEPEST = 3
"""The parts of the longest name of a library."""
_READING = {
    name: effect
    for kind, effect in (("arrays", read_numbers), ("shows", show))
    for name in _PLAIN.reading[kind].split()
}


def done(made: Call, result: Value) -> Value:
    """A call of such a function: it may call functions that it gets, and gives this."""
    functions: list[Value] = [one for one in made.values() if isinstance(one, Function)]
    hand_over(made.machine, functions, made.function, made.node)
    if made.function in _READING:
        for one in made.values():
            _READING[made.function](made, one)
    return result


def numbers(made: Call) -> Value:
    """Numbers and text."""
    outputs.used(made, outputs.NUMBERS, made.values())
    own = of_function(made.values())
    shape = (
        TABLE
        if made.function in _TABLES
        else sizes.of(made.given(0, "a"))
        if made.function in _STAY
        else None
    )
    why, cuts = f"what {made.function} gives", cuts_of(*made.values())
    is_float = made.function in _FLOATS and bool(made.args) and all(map(is_number, made.values()))
    kind = NUMPY_FLOAT if is_float else DATA
    return done(made, Unknown(why, kind, cuts=cuts, amount=own, shape=shape))


def handed_on(made: Call) -> Value:
    """Numbers and text, unless it gets something else, which it may hand on."""
    plain = all(map(_holds_none, each_in(made.values()))) and not made.loose
    kind, got = (DATA, ()) if plain else (None, tuple(made.values()))
    return done(made, Unknown(f"what {made.function} gives", kind, cuts=cuts_of(*made.values()), got=got))


def _holds_none(value: Value) -> bool:
    """Whether a value is no tensor, module or optimizer."""
    return is_data(value) or value == NONE or isinstance(value, Function | Native | Class | External)


def _of_library(name: str) -> Value | None:
    """A function; a class, or a constant, if its name is written like one."""
    parts = name.split(".")
    above = [".".join(parts[:count]) for count in range(1, min(len(parts), _DEEPEST + 1))]
    if not any(one in _NUMBERS or one in _OTHERS for one in above):
        return None
    effect = numbers if any(one in _NUMBERS for one in above) else handed_on
    last = parts[-1].lstrip("_")
    if last.isupper():
        return Unknown(name, DATA)
    return _class(name, effect) if last[:1].isupper() else Native(name, effect)


def _class(name: str, effect: object) -> Class:
    """A class of such a library; nothing is known of what an instance holds."""
    cls = Class(name, (OBJECT,))

    def new(made: Call) -> Value:
        own = made.args[0]
        inner = Call(made.machine, made.node, made.args[1:], made.kwargs, made.loose, name)
        return effect(inner) if own is cls else Object(own, made.place)  # type: ignore[operator, arg-type]

    def attribute(made: Call) -> Value:
        return Native(f"{name}.{made.constant(1, 'name')}", handed_on)

    method(cls, "__new__")(new)
    method(cls, "__init__")(_init)
    method(cls, *_PLAIN.methods.get(name, "").split())(numbers)
    method(cls, "__class_getattr__")(attribute)
    method(cls, "__getattr__")(lambda made: Unknown(f"{name}.{made.constant(1, 'name')} is out of sight"))
    return cls


def _init(made: Call) -> Value:
    """Of a class of the program that derives from one of these: what it gets by name becomes attributes, as of a `BaseModel`."""
    own = made.own()
    for key, value in made.kwargs.items():
        made.machine.state.write(own.fields, key, value)
    return NONE


def _result(name: str, kind: str) -> None:
    compute = getattr(math, name.removeprefix("math."), None) if name.startswith("math.") else None

    def run(made: Call) -> Value:
        if kind == "none":
            return done(made, NONE)
        if kind == "first":
            return made.args[0] if made.args and isinstance(made.args[0], Object) else KEEPS
        given = [one.value for one in made.args if isinstance(one, Known)]
        if compute is not None and len(given) == len(made.args) and not made.kwargs:
            try:
                return Known(compute(*given))
            except (ArithmeticError, TypeError, ValueError):
                pass
        why, cuts = f"what {name} gives", cuts_of(*made.values())
        factors = factors_of(made.args[0]) if name in ("math.ceil", "math.floor") and made.args else None
        own = of_function(made.values()) if kind == "float" else None
        return done(made, number(why, kind, factors, cuts=cuts, amount=own))

    stub(name)(run)


for _kind, _names in _PLAIN.results.items():
    for _name in _names.split():
        _result(_name, _kind)
for _name in _PLAIN.attributes["data"].split():
    define(Unknown(_name, DATA), _name)
for _name in _PLAIN.attributes["none"].split():
    define(NONE, _name)
for _name in _PLAIN.attributes["classes"].split():
    new_class(_name)
family("", _of_library, of_last_resort=True)
