"""The shapes of arrays, of tables of pandas, and of tensors of which nobody knows more."""

from dataclasses import dataclass
from typing import Any

from ta_lint.dryrun.values import Hidden, Known, Object, Sequence, Unknown, Value

Sizes = tuple[Any, ...]
"""Sizes; None for one that is not known."""

TABLE: Sizes = (None, None)
OF_PART = Hidden("the shape of a part of an array")

_STAY = frozenset(
    "abs array astype bfill clip copy cpu cuda diff double dropna fillna ffill float head iloc interpolate loc log1p numpy reset_index round "
    "sample set_index sort_index sort_values tail to to_numpy values where".split()
)
"""Attributes, and methods whose results have as many dimensions; some have fewer rows."""
_COLUMNS = frozenset({"assign", "drop", "rename", "select_dtypes"})
"""Methods that may change how many columns a table has."""
_FITS = frozenset({"fit_transform", "transform"})
_RESHAPES = frozenset({"flatten", "ravel", "reshape", "view"})


@dataclass(frozen=True, slots=True)
class Asked:
    """A method that is about to be called, of something with this shape."""

    name: str
    shape: Sizes | None


def of_attribute(shape: Any, name: str) -> Any:
    """What is known of the shape of an attribute, or of what it gives if it is a method."""
    shape = shape if isinstance(shape, tuple) else None
    if name in _RESHAPES or name in _FITS:
        return Asked(name, shape)
    if shape is None:
        return None
    if name in _STAY:
        return (None,) * len(shape)
    return shape if name in _COLUMNS else None


def of_call(shape: Any, args: list[Value]) -> Sizes | None:
    """The shape of what a method gives."""
    if not isinstance(shape, Asked):
        return shape if isinstance(shape, tuple) else None
    if shape.name in _FITS:
        given = of(args[0]) if args else None
        return None if given is None else (None,) * len(given)
    if not args:
        return (None,) if shape.name in ("flatten", "ravel") else None
    if shape.name in ("reshape", "view"):
        first = args[0]
        several = [*first.items] if isinstance(first, Sequence) and first.rest is None else args
        if all(isinstance(one, Known) and isinstance(one.value, int) for one in several):
            return tuple(None if one.value == -1 else one.value for one in several)  # type: ignore[attr-defined]
    return None


def of_item(shape: Any, key: Value) -> Sizes | None:
    """The shape of what stands under a key: a name of a column, names of several, or what an array takes."""
    if not isinstance(shape, tuple):
        return None
    if isinstance(key, Sequence) and key.cls.name == "tuple" and key.rest is None:
        left = [_left(one) for one in key.items]
        if len(left) > len(shape) or None in left:
            return None
        return (None,) * (sum(map(bool, left)) + len(shape) - len(left))
    if isinstance(key, Known) and isinstance(key.value, str):
        return (None,) if len(shape) == len(TABLE) else None
    left_one = _left(key)
    return None if left_one is None else (None,) * (len(shape) - (not left_one))


def _left(key: Value) -> bool | None:
    """Whether a dimension is left of one that a key is for; None if nobody knows."""
    if isinstance(key, Sequence):
        return key.cls.name == "list" or None
    if isinstance(key, Known):
        return True if isinstance(key.value, slice) else False if isinstance(key.value, int | str) else None
    return {"int": False, "str": False, "slice": True}.get(getattr(key, "type", None) or "")


def of(value: Value | None) -> Sizes | None:
    """The shape of an array or a table, or of a part of one."""
    shape = value.shape if isinstance(value, Unknown) else None
    if isinstance(value, Object):
        shape = value.fields.get(OF_PART)
    return shape if isinstance(shape, tuple) else None


def common(one: Sizes | None, other: Sizes | None) -> Sizes | None:
    """The sizes that two shapes have in common; None if they differ in how many there are."""
    if one == other or one is None or other is None or len(one) != len(other):
        return one if one == other else None
    return tuple(size if size == wanted else None for size, wanted in zip(one, other, strict=True))
