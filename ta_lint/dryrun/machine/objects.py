"""What Python's objects do: attributes, items, operators, truth."""

import ast
import operator
import re
from collections.abc import Callable
from typing import Any

from ta_lint.dryrun.machine import library
from ta_lint.dryrun.machine.call import Call
from ta_lint.dryrun.machine.calling import call, native
from ta_lint.dryrun.machine.counts import COMPUTED, of_a_count
from ta_lint.dryrun.machine.machine import Machine, Raised
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
    Sequence,
    Table,
    Unknown,
    Value,
    cuts_of,
    is_data,
    joined,
    options,
)

LARGEST = 1 << 16
"""Of a string, list or number that is computed. A larger one is a table, and nobody asks for its parts."""

_WIDTH = re.compile(r"%[-+ #0(\w)]*?[\d*]")
"""A format that says how long the text gets."""

_OPERATORS: dict[type[ast.AST], tuple[str, Callable[[Any, Any], Any]]] = {
    ast.Add: ("add", operator.add),
    ast.Sub: ("sub", operator.sub),
    ast.Mult: ("mul", operator.mul),
    ast.Div: ("truediv", operator.truediv),
    ast.FloorDiv: ("floordiv", operator.floordiv),
    ast.Mod: ("mod", operator.mod),
    ast.Pow: ("pow", operator.pow),
    ast.MatMult: ("matmul", operator.matmul),
    ast.BitAnd: ("and", operator.and_),
    ast.BitOr: ("or", operator.or_),
    ast.BitXor: ("xor", operator.xor),
    ast.LShift: ("lshift", operator.lshift),
    ast.RShift: ("rshift", operator.rshift),
    ast.Eq: ("eq", operator.eq),
    ast.NotEq: ("ne", operator.ne),
    ast.Lt: ("lt", operator.lt),
    ast.LtE: ("le", operator.le),
    ast.Gt: ("gt", operator.gt),
    ast.GtE: ("ge", operator.ge),
}
_COMPARISONS = (ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE)


def attribute(machine: Machine, value: Value, name: str, node: ast.AST) -> Value:
    """`value.name`."""
    if isinstance(value, Choice):
        found = [attribute(machine, one, name, node) for one in _there(value)]
        if len(found) > 1 and all(isinstance(one, Bound) for one in found):
            return Choice(tuple(dict.fromkeys(found)))  # however many: what is called may change its object
        return joined(found)
    if isinstance(value, External | Native):
        known = library.find(f"{value.name}.{name}")
        _noted(machine, known)
        unseen = library.UNSEEN.find(name) if isinstance(known, External) else None
        return known if unseen is None else Bound(value, unseen)
    machine.memo.named(name)
    if isinstance(value, Class):
        return _class_attribute(machine, value, name, node)
    if not isinstance(value, Object):
        out_of_sight = isinstance(value, Unknown) and value.type is None
        kind = library.UNSEEN if out_of_sight else library.class_of(value)
        own = None if kind is None else kind.find(name)
        return Bound(value, own) if own is not None else part_of(value, name)
    if value.cls is library.SUPER and "object" in value.fields:
        return _above(machine, value, name, node)
    has_fields = not isinstance(value, Sequence | Table)
    if has_fields and name in value.fields:
        return _field(machine, value, name, node)
    if isinstance(value, Module | Function):
        machine.memo.read(value.fields, name, ABSENT)
    own = value.cls.find(name)
    if own is not None:
        _noted(machine, own)
        return _of_instance(machine, value, own, node)
    getter = value.cls.find("__getattr__")
    if getter is not None:
        return call(machine, getter, [value, Known(name)], {}, node)
    unseen = library.UNSEEN.find(name) if value.cls.out_of_sight else None
    return _missing(value.cls, name, value) if unseen is None else Bound(value, unseen)


def _class_attribute(machine: Machine, cls: Class, name: str, node: ast.AST) -> Value:
    found = cls.find(name)
    if found is not None:
        _noted(machine, found)
        return _of_class(cls, found)
    getter = cls.find("__class_getattr__")
    return _missing(cls, name) if getter is None else call(machine, getter, [cls, Known(name)], {}, node)


def _field(machine: Machine, value: Object, name: str, node: ast.AST) -> Value:
    found = value.fields[name]
    if isinstance(found, Object) and found.cls is library.COMPUTED:
        return call(machine, found.fields["get"], [value], {}, node)
    if isinstance(found, OnDemand):
        found = machine.program.demanded(machine, value.fields, name)
    if isinstance(value, Module | Function):
        machine.memo.read(value.fields, name, found)
    return found  # type: ignore[no-any-return]


_WRAPPERS = (library.PROPERTY, library.STATICMETHOD, library.CLASSMETHOD)


def _noted(machine: Machine, found: Value) -> None:
    """A class gives this value to a function that may be remembered."""
    if machine.memo.recordings and not (isinstance(found, Object) and found.cls in _WRAPPERS):
        machine.memo.outside(found)


def _there(choice: Choice) -> tuple[Value, ...]:
    """What has attributes: None is one of the values, but not where they are used."""
    return tuple(one for one in choice.options if one != NONE) or choice.options


def _missing(cls: Class, name: str, of: Value | None = None) -> Value:
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
    if isinstance(found, Function | Native):
        return Bound(value, found)
    if isinstance(found, Object) and found.cls is library.PROPERTY:
        return call(machine, found.fields["get"], [value], {}, node)
    return _of_class(value.cls, found)


def has_attribute(value: Value, name: str) -> bool | None:
    """Whether a value certainly has an attribute, or certainly not."""
    if isinstance(value, External) and not isinstance(library.find(f"{value.name}.{name}"), External):
        return True
    if not isinstance(value, Object) or isinstance(value, Sequence | Table):
        return None
    cls = value if isinstance(value, Class) else value.cls
    if name in value.fields or cls.find(name) is not None:
        return True
    return None if cls.out_of_sight or cls.find("__getattr__") is not None or cls.node is None else False


def set_attribute(machine: Machine, value: Value, name: str, new: Value, node: ast.AST) -> None:
    """`value.name = new`."""
    setter = library.UNSEEN.find("__setattr__")
    if isinstance(value, Unknown) and value.type is None and isinstance(setter, Native):
        native(setter, Call(machine, node, [value, Known(name), new]))
    _keep(machine, value, new, node)
    targets = [
        one for one in options(value) if isinstance(one, Object) and not isinstance(one, Sequence | Table)
    ]
    for target in targets:
        if isinstance(target, Class) and target.made is None:
            machine.borrow(target, name)
        if isinstance(target, Class | Module):
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
                and isinstance(found, Known | Object)
                and not isinstance(found, Function)
            ):
                target.fields[name] = found  # a branch that does not come by here leaves what the class says
            if isinstance(attached := target.cls.find("__attached__"), Native):
                native(attached, Call(machine, node, [target, Known(name), new]))
            machine.state.write(
                target.fields, name, new if len(targets) == 1 else joined([target.fields.get(name, new), new])
            )


def _keep(machine: Machine, holder: Value, value: Value, node: ast.AST) -> None:
    """A value is kept by `holder`: if code out of sight may see that, it has the value from here on."""
    if all(isinstance(one, Object) and not one.cls.out_of_sight for one in options(holder)):
        return
    for one in options(value):
        if isinstance(one, Sequence | Table):
            for part in one.every if isinstance(one, Sequence) else tuple(one.fields.values()):
                _keep(machine, holder, part, node)
        elif isinstance(one, Object) and isinstance(kept := one.cls.find("__kept__"), Native):
            native(kept, Call(machine, node, [one]))


def item(machine: Machine, value: Value, key: Value, node: ast.AST) -> Value:
    """`value[key]`."""
    if isinstance(value, Choice):
        return joined([item(machine, one, key, node) for one in _there(value)])
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
    return part_of(value, "an item of what is not known")


def part_of(value: Value, name: str) -> Unknown:
    """An attribute or item of a value that is not known; that of data is data too."""
    why = value.why if isinstance(value, Unknown) else name
    return Unknown(why, DATA if is_data(value) else None, cuts=cuts_of(value))


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
    for target in options(value):
        if isinstance(target, Table):
            at = key.value if isinstance(key, Known) and _hashable(key.value) else REST
            old = target.fields.get(at)
            machine.state.write(
                target.fields, at, new if old is None or at is not REST else joined([old, new])
            )
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


def _hashable(value: Any) -> bool:
    return not isinstance(value, slice)


def binary(
    machine: Machine, kind: ast.AST, left: Value, right: Value, node: ast.AST, *, in_place: bool = False
) -> Value:
    """`left + right`, or `left += right`."""
    name, compute = _OPERATORS[type(kind)]
    if isinstance(left, Known) and isinstance(right, Known):
        return _computed(compute, left.value, right.value)
    if isinstance(left, Choice) or isinstance(right, Choice):
        pairs = [(one, other) for one in options(left) for other in options(right)]
        return joined([binary(machine, kind, one, other, node) for one, other in pairs])
    if in_place:
        method = library.find_method(left, f"__i{name}__")
        if method is not None:
            return call(machine, method, [left, right], {}, node)
    comparison = isinstance(kind, _COMPARISONS)
    for one, other, special in (
        (left, right, f"__{name}__"),
        (right, left, f"__{name}__" if comparison else f"__r{name}__"),
    ):
        method = library.find_method(one, special)
        if method is not None:
            return call(machine, method, [one, other], {}, node)
    if (counted := of_a_count(machine, kind, left, right)) is not None:
        return counted
    if comparison:
        return Unknown("it is compared", "bool")
    kinds = {library.type_name(left), library.type_name(right)}
    if not (is_data(left) and is_data(right)):
        return Unknown(COMPUTED)
    if DATA in kinds:
        return Unknown(COMPUTED, DATA, cuts=cuts_of(left, right))
    return Unknown(
        COMPUTED,
        "float" if "float" in kinds or isinstance(kind, ast.Div) else "int" if kinds == {"int"} else DATA,
        cuts=cuts_of(left, right),
    )


def _computed(compute: Callable[[Any, Any], Any], left: Any, right: Any) -> Value:
    if compute is operator.pow and not (isinstance(right, int | float) and abs(right) < 64):
        return Unknown("a large power", "float")
    if compute is operator.mul and any(isinstance(one, str | bytes | tuple) for one in (left, right)):
        return Unknown("it is repeated")
    if compute is operator.lshift and not (isinstance(right, int) and right < 256):
        return Unknown("a large number", "int")
    if compute is operator.mod and isinstance(left, str | bytes) and _WIDTH.search(str(left)):
        return Unknown("a formatted string", "str")
    try:
        result = compute(left, right)
    except Exception:  # noqa: BLE001 - whatever the program's own expression raises
        return Unknown("it cannot be computed")
    if isinstance(result, int) and abs(result).bit_length() > 256:
        return Unknown("a large number", "int")
    return (
        Known(result)
        if not isinstance(result, str | bytes) or len(result) < LARGEST
        else Unknown("a long string", "str")
    )


def truth(machine: Machine, value: Value, node: ast.AST) -> bool | None:
    """Whether `if value` takes its branch."""
    if isinstance(value, Known):
        return bool(value.value)
    if isinstance(value, Choice):
        verdicts = {truth(machine, one, node) for one in value.options}
        return verdicts.pop() if len(verdicts) == 1 else None
    if isinstance(value, Sequence):
        return True if value.items else False if value.rest is None else None
    if isinstance(value, Table):
        return True if any(key is not REST for key in value.fields) else False if value.rest is None else None
    if isinstance(value, Bound) and isinstance(value.receiver, Unknown | External):
        return None  # `state.step` may be a number
    if isinstance(value, Class | Function | Bound | Native):
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
