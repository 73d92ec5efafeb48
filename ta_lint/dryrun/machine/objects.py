"""What Python's objects do: attributes, items, truth."""

import ast
from typing import Any

from ta_lint.dryrun.machine import library, sizes
from ta_lint.dryrun.machine.amounts import ITEMS, as_item
from ta_lint.dryrun.machine.call import Call
from ta_lint.dryrun.machine.calling import call, native
from ta_lint.dryrun.machine.counts import CHANGES, COUNT
from ta_lint.dryrun.machine.machine import Machine, Raised
from ta_lint.dryrun.sources import read_of
from ta_lint.dryrun.state import ABSENT
from ta_lint.dryrun.values import (
    DATA,
    FALSE,
    NONE,
    REST,
    TRUE,
    Bound,
    Choice,
    Class,
    External,
    Function,
    Known,
    Module,
    Native,
    Object,
    OnDemand,
    Place,
    Sequence,
    Setting,
    Table,
    Unknown,
    Value,
    cuts_of,
    each_in,
    is_data,
    joined,
    options,
)


def attribute(machine: Machine, value: Value, name: str, node: ast.AST) -> Value:
    """`value.name`."""
    if isinstance(value, Choice):
        found = [attribute(machine, one, name, node) for one in _there(value, name)]
        if len(found) > 1 and all(isinstance(one, Bound) for one in found):
            return Choice(tuple(dict.fromkeys(found)))  # however many: what is called may change its object
        return joined(found)
    if isinstance(value, (External, Native)):
        known = library.find(f"{value.name}.{name}")
        _noted(machine, known)
        unseen = library.UNSEEN.find(name) if isinstance(known, External) else None
        return known if unseen is None else Bound(value, unseen)
    machine.memo.named(name)
    if isinstance(value, Class):
        return _class_attribute(machine, value, name, node)
    if not isinstance(value, Object):
        out_of_sight = isinstance(value, Unknown) and value.type is None
        is_array = isinstance(value, Unknown) and value.type == DATA
        kind = library.UNSEEN if out_of_sight else library.ARRAY if is_array else library.class_of(value)
        own = None if kind is None else kind.find(name)
        return Bound(value, own) if own is not None else part_of(value, name, name)
    if value.cls is library.SUPER and "object" in value.fields:
        return _above(machine, value, name, node)
    if name in value.fields and not isinstance(value, (Sequence, Table)):
        return _field(machine, value, name, node)
    return _inherited(machine, value, name, node)


def _inherited(machine: Machine, value: Object, name: str, node: ast.AST) -> Value:
    """What an object has of its class, or of what all objects have."""
    if isinstance(value, (Module, Function)):
        machine.memo.read(value.fields, name, ABSENT)
    own = value.cls.find(name)
    if own is not None:
        _noted(machine, own)
        return _of_instance(machine, value, own, node)
    if isinstance(value, Function) and name in NAMES:
        return Known(value.name)
    if name == "__class__":
        return value.cls
    getter = value.cls.find("__getattr__")
    if getter is not None:
        return call(machine, getter, [value, Known(name)], {}, node)
    of_the_program = value.cls.node is not None  # another class that it is mixed with may have it
    unseen = library.UNSEEN.find(name) if value.cls.out_of_sight or of_the_program else None
    if unseen is not None:
        return Bound(value, unseen)
    return machine.missing.setdefault((value, name), _missing(value.cls, name, value))


def _class_attribute(machine: Machine, cls: Class, name: str, node: ast.AST) -> Value:
    found = cls.find(name)
    if found is not None:
        _noted(machine, found)
        return _of_class(cls, found)
    if name in NAMES and (cls.node is not None or cls.name.startswith("torch.")):
        return Known(cls.name.rpartition(".")[2])
    getter = cls.find("__class_getattr__")
    return _missing(cls, name) if getter is None else call(machine, getter, [cls, Known(name)], {}, node)


def _field(machine: Machine, value: Object, name: str, node: ast.AST) -> Value:
    found = value.fields[name]
    if isinstance(found, Object) and found.cls is library.COMPUTED:
        return call(machine, found.fields["get"], [value], {}, node)
    if isinstance(found, OnDemand):
        found = machine.program.demanded(machine, value.fields, name)
    if isinstance(value, (Module, Function)):
        machine.memo.read(value.fields, name, found)
    return found  # type: ignore[no-any-return]


NAMES = ("__name__", "__qualname__")
"""What a function or class is called, as it is defined."""
_WRAPPERS = (library.PROPERTY, library.STATICMETHOD, library.CLASSMETHOD)


def _noted(machine: Machine, found: Value) -> None:
    """A class gives this value to a function that may be remembered."""
    if machine.memo.recordings and not (isinstance(found, Object) and found.cls in _WRAPPERS):
        machine.memo.outside(found)


def _there(choice: Choice, name: str) -> tuple[Value, ...]:
    """Those of several values that may have an attribute: None is one of the values, but not where that is used, nor is what lacks it."""
    return (
        tuple(one for one in choice.options if one != NONE and has_attribute(one, name) is not False)
        or choice.options
    )


def _missing(cls: Class, name: str, of: Value | None = None) -> Unknown:
    beyond = next((base.name[1:] for base in cls.mro if base.name.startswith("?")), None)
    return Unknown(f"{beyond or cls.name}.{name} is out of sight", of=of)


def _above(machine: Machine, value: Object, name: str, node: ast.AST) -> Value:
    """`super().name`: what the classes after that of the method define."""
    receiver, cls = value.fields["object"], value.fields["class"]
    own = receiver if isinstance(receiver, Class) else library.class_of(receiver)
    found = None if own is None else own.find(name, cls)
    if found is None:
        return _missing(own or cls, name)
    if isinstance(receiver, Class):
        return _of_class(receiver, found)
    return _of_instance(machine, receiver, found, node)


def _of_class(cls: Class, found: Value) -> Value:
    if isinstance(found, Object) and found.cls is library.CLASSMETHOD:
        return Bound(cls, found.fields["function"])
    if isinstance(found, Object) and found.cls is library.STATICMETHOD:
        return found.fields["function"]  # type: ignore[no-any-return]
    return found


def _of_instance(machine: Machine, value: Object, found: Value, node: ast.AST) -> Value:
    if isinstance(found, (Function, Native)):
        return Bound(value, found)
    if isinstance(found, Object) and found.cls is library.PROPERTY:
        return call(machine, found.fields["get"], [value], {}, node)
    return _of_class(value.cls, found)


def has_attribute(value: Value, name: str) -> bool | None:
    """Whether a value certainly has an attribute, or certainly not."""
    if isinstance(value, External) and not isinstance(library.find(f"{value.name}.{name}"), External):
        return True
    if isinstance(value, Known):
        return hasattr(value.value, name)
    if not isinstance(value, Object) or isinstance(value, (Sequence, Table)):
        return None
    cls = value if isinstance(value, Class) else value.cls
    if name in value.fields or cls.find(name) is not None:
        return True
    return False if cls.is_whole and not cls.out_of_sight and cls.find("__getattr__") is None else None


def set_attribute(machine: Machine, value: Value, name: str, new: Value, node: ast.AST) -> None:
    """`value.name = new`."""
    setter = library.UNSEEN.find("__setattr__")
    if isinstance(value, Unknown) and value.type is None and isinstance(setter, Native):
        native(setter, Call(machine, node, [value, Known(name), new]))
    _keep(machine, value, new, node)
    _is_written(machine, value, name)
    if isinstance(value, Table):
        _set_of_table(machine, value, name, new, node)
    targets = [
        one for one in options(value) if isinstance(one, Object) and not isinstance(one, (Sequence, Table))
    ]
    for target in targets:
        if isinstance(target, Class) and target.made is None:
            machine.borrow(target, name)
        if isinstance(target, (Class, Module)):
            machine.memo.patched(name)
        elif isinstance(target, Function):
            machine.memo.spoil()
        setter = None if isinstance(target, Class) else target.cls.find("__setattr__")
        found = target.cls.find(name)
        if isinstance(setter, Native):
            native(setter, Call(machine, node, [target, Known(name), new]))
        elif isinstance(found, Object) and found.cls is library.PROPERTY:
            if "set" in found.fields:
                call(machine, found.fields["set"], [target, new], {}, node)
        else:
            if (
                name not in target.fields
                and isinstance(found, (Known, Object))
                and not isinstance(found, Function)
            ):
                target.fields[name] = found  # a branch that does not come by here leaves what the class says
            if isinstance(attached := target.cls.find("__attached__"), Native):
                native(attached, Call(machine, node, [target, Known(name), new]))
            machine.state.write(
                target.fields, name, new if len(targets) == 1 else joined([target.fields.get(name, new), new])
            )


def _set_of_table(machine: Machine, value: Table, name: str, new: Value, node: ast.AST) -> None:
    """An attribute of a dictionary is set, which may be an entry. All attributes of one that is its own `__dict__` are."""
    setter = value.cls.find("__setattr__")
    if name == "__dict__" and new is value and value.cls.node is not None and setter is None:
        for own, of_item in (("__getattr__", "__getitem__"), ("__setattr__", "__setitem__")):
            set_attribute(machine, value.cls, own, library.DICT.find(of_item) or NONE, node)
    elif setter is not None:
        call(machine, setter, [value, Known(name), new], {}, node)


def _keep(machine: Machine, holder: Value, value: Value, node: ast.AST) -> None:
    """A value is kept by `holder`: if code out of sight may see that, it has the value from here on."""
    if all(isinstance(one, Object) and not one.cls.out_of_sight for one in options(holder)):
        return
    for one in each_in((value,)):
        if isinstance(one, Object) and isinstance(kept := one.cls.find("__kept__"), Native):
            native(kept, Call(machine, node, [one]))


def item(machine: Machine, value: Value, key: Value, node: ast.AST) -> Value:
    """`value[key]`."""
    if isinstance(value, Choice):
        return joined([item(machine, one, key, node) for one in _there(value, "__getitem__")])
    if isinstance(value, Sequence):
        return _element(value, key)
    if isinstance(value, Table):
        return _entry(value, key)
    if isinstance(value, Known) and isinstance(key, Known):
        try:
            return Known(value.value[key.value])
        except Exception:  # noqa: BLE001 - whatever the program's own expression raises
            return Unknown("an index that does not fit")
    if isinstance(value, Object):
        getter = (
            (value.find("__class_getitem__") or NONE)
            if isinstance(value, Class)
            else value.cls.find("__getitem__")
        )
        if isinstance(value, Class) and getter is NONE:
            return value  # a type such as `list[int]`
        if getter is not None:
            return call(machine, getter, [value, key], {}, node)
    where = None if read_of(value) is None else machine.place(node)
    part = part_of(value, "an item of what is not known", key_of(key), where)
    if isinstance(value, Unknown) and value.shape is not None and part.shape is None:
        part.shape = sizes.of_item(value.shape, key)
    return part


OF_WHOLES: set[str] = set()
"""Why values are not known of which something is known that does not hold for what is in them."""


def part_of(value: Value, name: str, key: Any = None, where: Place | None = None) -> Unknown:
    """An attribute or item of a value that is not known, the same for the same key; that of data is data too."""
    if not isinstance(value, Unknown):
        return Unknown(name, DATA if is_data(value) else None, cuts=cuts_of(value))
    part = value.parts.get(key)
    if part is None:
        read = read_of(value)
        source = None if read is None else read.part(key, where)
        why = "" if value.why in OF_WHOLES else value.why
        shape = sizes.of_attribute(value.shape, key) if isinstance(key, str) else None
        part = Unknown(why, DATA if is_data(value) else None, cuts=cuts_of(value), source=source, shape=shape)
    if key is not None:
        value.parts[key] = part
    return part


def _is_written(machine: Machine, value: Value, key: Any) -> None:
    """A part of a value that is not known is another one now."""
    for one in options(value):
        if isinstance(one, Unknown) and key in one.parts:
            machine.state.write(one.parts, key, Unknown(one.why, DATA if is_data(one) else None))


def key_of(key: Value) -> Any:
    """What an item of a value that is not known is known again by."""
    return (key.value,) if isinstance(key, Known) and _hashable(key.value) else None


def _element(value: Sequence, key: Value) -> Value:
    if isinstance(key, Known) and isinstance(key.value, slice):
        if value.rest is None:
            try:
                return Sequence(value.cls, value.items[key.value], None, value.made)
            except (TypeError, ValueError):
                return Unknown("a slice that does not fit")
        return Sequence(value.cls, (), joined(value.every), value.made)
    if isinstance(key, Known) and isinstance(key.value, int):
        if 0 <= key.value < len(value.items) or (value.rest is None and -len(value.items) <= key.value < 0):
            return value.items[key.value]
        if value.rest is not None:
            return value.rest
        return Unknown("an index beyond the end")
    return joined(value.every)


def _entry(value: Table, key: Value) -> Value:
    if isinstance(key, Known) and _hashable(key.value) and key.value in value.fields:
        return value.fields[key.value]  # type: ignore[no-any-return]
    if isinstance(key, Known) and value.rest is not None:
        return value.rest
    if isinstance(key, Choice) and all(isinstance(one, Known) for one in key.options):
        return joined([_entry(value, one) for one in key.options])
    every = list(value.fields.values())
    if isinstance(key, Known) or not every:
        return Unknown("a key that is not known")
    return joined(every)


def set_item(machine: Machine, value: Value, key: Value, new: Value, node: ast.AST) -> None:
    """`value[key] = new`."""
    _keep(machine, value, new, node)
    setter = library.UNSEEN.find("__setitem__")
    if isinstance(value, Unknown) and value.type is None and isinstance(setter, Native):
        native(setter, Call(machine, node, [value, key, new]))
    _is_written(machine, value, key_of(key))
    for target in options(value):
        if isinstance(target, (Sequence, Table)) and machine.passes:
            _note(machine, target, key, new, node)
        if isinstance(target, Table):
            at = key.value if isinstance(key, Known) and _hashable(key.value) else REST
            old = target.fields.get(at)
            machine.state.write(
                target.fields, at, new if old is None or at is not REST else joined([old, new])
            )
            for name, held in list(target.entries()) if at is REST and is_data(new) else ():
                if isinstance(held, Known):  # a setting, which a command line may give
                    machine.state.write(target.fields, name, joined([new, held]))
        elif isinstance(target, Sequence):
            if (
                isinstance(key, Known)
                and isinstance(key.value, int)
                and -len(target.items) <= key.value < len(target.items)
            ):
                items = list(target.items)
                items[key.value] = new
                machine.state.refill(target, items, target.rest)
            else:
                machine.state.extend(target, new)
        elif isinstance(target, Object):
            setter = target.cls.find("__setitem__")
            if setter is not None:
                call(machine, setter, [target, key, new], {}, node)
        elif isinstance(target, Unknown) and (item := as_item(machine, new, node)) is not None:
            machine.state.write(target.parts, ITEMS, Unknown("items of an array", DATA, amount=item))


def _note(machine: Machine, target: Object, key: Value, new: Value, node: ast.AST) -> None:
    """A container gets an entry for each pass, or loses some."""
    if isinstance(key, Known):
        if isinstance(key.value, slice):
            machine.emit("empty", node, target)
        counts = type(key.value) is int
    else:
        counts = isinstance(key, Unknown) and key.why in (COUNT, CHANGES)
    if counts:
        machine.emit("append", node, target, value=new)


def _hashable(value: Any) -> bool:
    return not isinstance(value, slice)


def truth(machine: Machine, value: Value, node: ast.AST) -> bool | None:
    """Whether `if value` takes its branch."""
    if isinstance(value, Setting) and value.is_open:
        return None
    if isinstance(value, Known):
        return bool(value.value)
    if isinstance(value, Choice):
        verdicts = {truth(machine, one, node) for one in value.options}
        return verdicts.pop() if len(verdicts) == 1 else None
    if isinstance(value, Sequence):
        return True if value.items else False if value.rest is None else None
    if isinstance(value, Table):
        return True if any(key is not REST for key in value.fields) else False if value.rest is None else None
    if isinstance(value, Bound) and isinstance(value.receiver, (Unknown, External)):
        return None  # `state.step` may be a number
    if isinstance(value, (Class, Function, Bound, Native)):
        return True
    if isinstance(value, Object):
        for special in ("__bool__", "__len__"):
            method = value.cls.find(special)
            if method is not None:
                try:
                    said = call(machine, method, [value], {}, node)
                except Raised:
                    return None
                return bool(said.value) if isinstance(said, Known) else None
        return None if value.cls.out_of_sight else True
    return None


def boolean(verdict: bool | None) -> Value:
    """A verdict as a value."""
    return Unknown("nobody knows", "bool") if verdict is None else TRUE if verdict else FALSE
