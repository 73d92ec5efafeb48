"""What is known of Python and of libraries: names, with what a call of each does. The modules of `ta_lint.dryrun.stubs` fill it."""

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from ta_lint.dryrun.machine.call import Call, Effect
from ta_lint.dryrun.values import (
    NONE,
    Choice,
    Class,
    External,
    Hidden,
    Known,
    Native,
    Object,
    Place,
    Sequence,
    Table,
    Unknown,
    Value,
    options,
)

E = TypeVar("E", bound=Effect)

_NAMES: dict[str, Value] = {}
_FAMILIES: list[tuple[str, Callable[[str], Value | None]]] = []
_LAST: list[tuple[str, Callable[[str], Value | None]]] = []
_STANDING_FOR_ALL: set[Class] = set()
"""Classes whose objects may be of any class that derives from them."""

WITHIN = "the name of a parameter within a network"
"""Why a name is not known that has several parts: of the layers above the parameter, and its own."""

TYPE = Class("type")
OBJECT = Class("object")
NUMBER = Class("float", (OBJECT,))
ARRAY = Class("data")
"""What is known of the methods of data, such as an array of numpy."""
STRING = Class("str", (OBJECT,))
LIST = Class("list", (OBJECT,))
TUPLE = Class("tuple", (OBJECT,))
SET = Class("set", (OBJECT,))
DICT = Class("dict", (OBJECT,))
STREAM = Class("generator", (OBJECT,))
FUNCTION = Class("function", (OBJECT,))
PROPERTY = Class("property", (OBJECT,))
COMPUTED = Class("a computed attribute", (PROPERTY,))
"""A property of one object alone."""
STATICMETHOD = Class("staticmethod", (OBJECT,))
CLASSMETHOD = Class("classmethod", (OBJECT,))
EXCEPTION = Class("BaseException", (OBJECT,))
SUPER = Class("super", (OBJECT,))
UNSEEN = Class("something out of sight")
"""What nobody knows, which has the methods that tell what they do by their names alone, such as `backward`."""
BASES = {
    "int": Class("int", (NUMBER,)), "float": NUMBER, "bool": Class("bool", (NUMBER,)), "complex": Class("complex", (OBJECT,)),
    "str": STRING, "bytes": Class("bytes", (OBJECT,)), "list": LIST, "tuple": TUPLE, "set": SET, "dict": DICT, "object": OBJECT,
    "BaseException": EXCEPTION, "super": SUPER,
}  # fmt: skip
"""Python's types by their names."""


def find(name: str) -> Value:
    """What a full name of a library means, such as `torch.nn.Linear`."""
    known = _NAMES.get(name)
    if known is None:
        for prefix, make in (*_FAMILIES, *_LAST):
            if name.startswith(prefix):
                known = make(name)
                if known is not None:
                    break
        known = _NAMES[name] = External(name) if known is None else known
    return known


def known_names() -> list[str]:
    """The full names that mean something by now, but for methods."""
    return [name for name, value in _NAMES.items() if not isinstance(value, External)]


def define(value: Value, *names: str) -> None:
    """These full names mean this value."""
    _NAMES.update(dict.fromkeys(names, value))


def stub(*names: str) -> Callable[[E], E]:
    """The function below is what a call of these full names does."""

    def register(effect: E) -> E:
        for name in names:
            _NAMES[name] = Native(name, effect)
        return effect

    return register


def family(prefix: str, make: Callable[[str], Value | None], *, of_last_resort: bool = False) -> None:
    """What any full name means that begins so, unless `make` gives None. One that takes any name is asked after all others."""
    (_LAST if of_last_resort else _FAMILIES).append((prefix, make))


def new_class(*names: str, bases: Iterable[Class] = (OBJECT,)) -> Class:
    """A class of a library, under all its full names; the first is its own. One that ends in `*` is what a module has under any name, so
    that the class stands for all that derive from it.
    """
    cls = Class(names[0], tuple(bases))
    define(cls, *names)
    if any(name.endswith(".*") for name in names):
        _STANDING_FOR_ALL.add(cls)
    return cls


def method(cls: Class, *names: str) -> Callable[[E], E]:
    """The function below is what these methods of a class do; their first argument is the object."""

    def register(effect: E) -> E:
        for name in names:
            cls.fields[name] = Native(f"{cls.name}.{name}", effect)
        return effect

    return register


def keeps(cls: Class, *names: str) -> None:
    """Objects of a class keep what they are made of, under these names."""

    @method(cls, "__init__")
    def keep(made: Call) -> Value:
        for index, name in enumerate(names, 1):
            made.machine.state.write(made.own().fields, name, made.argument(index, name))
        return NONE


def attribute_of(cls: Class, *names: str) -> Callable[[E], E]:
    """The function below computes these attributes of objects of a class."""

    def register(effect: E) -> E:
        for name in names:
            cls.fields[name] = Object(PROPERTY, None, {"get": Native(f"{cls.name}.{name}", effect)})
        return effect

    return register


def class_of(value: Value) -> Class | None:
    """The class of a value, None if nobody knows."""
    if isinstance(value, Object):
        return value.cls
    if isinstance(value, Known):
        return (
            STRING
            if isinstance(value.value, str)
            else NUMBER
            if isinstance(value.value, (int, float))
            else None
        )
    if isinstance(value, Unknown):
        return {"str": STRING, "int": NUMBER, "float": NUMBER}.get(value.type or "")
    return None


def find_method(value: Value, name: str) -> Value | None:
    """A method of Python's protocols, such as `__add__`, if the class of the value defines it."""
    return value.cls.find(name) if isinstance(value, Object) else None


def type_name(value: Value) -> str | None:
    """`int`, `float`, `bool`, `str`, for a number or string, known or not."""
    if isinstance(value, Known):
        return type(value.value).__name__
    return value.type if isinstance(value, Unknown) else None


def is_instance(value: Value, kinds: Value) -> bool | None:
    """What `isinstance` says, None if nobody knows."""
    if isinstance(value, Choice):
        verdicts = {is_instance(one, kinds) for one in value.options}
        return verdicts.pop() if len(verdicts) == 1 else None
    wanted = kinds.items if isinstance(kinds, Sequence) and kinds.rest is None else options(kinds)
    verdicts = {_is_instance(value, kind) for kind in wanted}
    return True if True in verdicts else None if None in verdicts else False


_CONSTANTS: dict[str, Any] = {"int": int, "float": float, "str": str, "bool": bool, "bytes": bytes}


def _is_instance(value: Value, kind: Value) -> bool | None:
    if isinstance(kind, Native) and kind.name == "builtins.type":
        return None if isinstance(value, (Unknown, External)) else isinstance(value, Class)
    if not isinstance(kind, Class):
        return False if isinstance(value, Known) and isinstance(kind, External) else None
    if isinstance(value, Known):
        return isinstance(value.value, _CONSTANTS.get(kind.name, ()))
    if isinstance(value, Object):
        if value.cls.is_a(kind):
            return True
        unclear = value.cls.out_of_sight or kind.out_of_sight or kind.find("__class_getattr__") is not None
        may_be_one = value.cls in _STANDING_FOR_ALL and kind.is_a(value.cls)
        return None if unclear or may_be_one else False
    if isinstance(value, Unknown) and value.type is not None:
        return value.type == kind.name or None
    return None


def list_of(items: Iterable[Value], rest: Value | None = None) -> Sequence:
    """A list of these."""
    return Sequence(LIST, tuple(items), rest)


ONCE = Hidden("that it is a generator, which can be gone over once")


def once(value: Value) -> Value:
    """Elements that a generator gives."""
    if isinstance(value, Sequence):
        value.fields[ONCE] = Known(True)
    return value


def is_once(value: Value) -> bool:
    """Whether it is a generator, of which nothing is left when something has gone over it."""
    return isinstance(value, Sequence) and ONCE in value.fields


def tuple_of(items: Iterable[Value], rest: Value | None = None) -> Sequence:
    """A tuple of these."""
    return Sequence(TUPLE, tuple(items), rest)


def mapped(value: Value, change: Callable[[Value], Value], place: Place | None = None) -> Value:
    """What `change` makes of a value: of a list or tuple, of each in it. One that is inside itself stays what it is there."""
    return _mapped(value, change, place, frozenset())


def _mapped(
    value: Value, change: Callable[[Value], Value], place: Place | None, outer: frozenset[int]
) -> Value:
    if not isinstance(value, Sequence):
        return change(value)
    if id(value) in outer:
        return value
    inside = outer | {id(value)}
    items = tuple(_mapped(one, change, place, inside) for one in value.items)
    rest = None if value.rest is None else _mapped(value.rest, change, place, inside)
    return Sequence(value.cls, items, rest, place or value.made)


def table_of(entries: dict[Any, Value]) -> Table:
    """A dictionary of these."""
    return Table(DICT, None, dict(entries))
