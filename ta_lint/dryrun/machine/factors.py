"""Numbers that nobody knows, as products: a schedule for `epochs * len(loader)` steps counts batches, one for `epochs` does not."""

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ta_lint.dryrun.values import Known, Object, Setting, Unknown, Value


class Count(NamedTuple):
    """How many of something there are, such as the batches of a loader."""

    of: Value


@dataclass(frozen=True, slots=True)
class Factors:
    """A constant, None if nobody knows it, times numbers that nobody knows, each with its power."""

    constant: float | None = 1.0
    powers: Mapping[Value | Count, int] = field(default_factory=dict)

    def times(self, other: "Factors", sign: int = 1) -> "Factors":
        """The product with another one, or the quotient for a sign of -1. What is rounded on the way does not matter."""
        constant = None
        if self.constant is not None and other.constant:
            constant = self.constant * other.constant**sign
        powers = dict(self.powers)
        for one, power in other.powers.items():
            powers[one] = powers.get(one, 0) + sign * power
        return Factors(constant, {one: power for one, power in powers.items() if power})

    @property
    def counted(self) -> list[Value]:
        """What it counts."""
        return [one.of for one, power in self.powers.items() if isinstance(one, Count) and power == 1]


class Multiple(Unknown):
    """A number that nobody knows, made of others."""

    __slots__ = ("factors",)

    def __init__(self, why: str, type: str | None, factors: Factors, **known: Any) -> None:
        super().__init__(why, type, **known)
        self.factors = factors


class Quotient(Known):
    """A number that another one has divided."""

    __slots__ = ("by",)

    def __init__(self, value: Any, by: Value) -> None:
        super().__init__(value)
        self.by = by


def is_divided_by(value: Value, divisor: Value) -> bool:
    """Whether a number was divided by another one, or may have been."""
    if isinstance(value, Quotient):
        return value.by == divisor
    is_share = isinstance(value, Multiple) and value.factors.powers.get(divisor, 0) < 0
    return is_share or (isinstance(value, Unknown) and divisor in value.got)


def is_open(number: Value) -> bool:
    """Whether a number may be another one, as an option may that is off by default."""
    return (
        is_open(number.by) if isinstance(number, Quotient) else isinstance(number, Setting) and number.is_open
    )


def may_divide(factor: Value) -> bool:
    """Whether a number that nobody knows may be the inverse of another one: something divides in it, or code out of sight has computed it."""
    if isinstance(factor, Quotient):
        return is_open(factor)
    if isinstance(factor, Multiple):
        return any(power < 0 for power in factor.factors.powers.values())
    return isinstance(factor, Unknown) and bool(factor.got)


def number(why: str, type: str | None, factors: Factors | None, **known: Any) -> Unknown:
    """A number that nobody knows, with its factors if it has some, and what else is `known` of it."""
    return Unknown(why, type, **known) if factors is None else Multiple(why, type, factors, **known)


def factors_of(value: Value) -> Factors | None:
    """The factors of a number, None if it is none."""
    if isinstance(value, Known):
        number = value.value
        return Factors(float(number)) if isinstance(number, (int, float)) and abs(number) < 1e12 else None
    if isinstance(value, Multiple):
        return value.factors
    # an object that a number is multiplied by is only guessed, by its name
    return Factors(1.0, {value: 1}) if isinstance(value, (Unknown, Object)) else None


def combined(kind: ast.AST, left: Value, right: Value) -> Factors | None:
    """The factors of a product, a quotient or a sum; None of anything else. A sum is so many of what its first summand counts."""
    one, other = factors_of(left), factors_of(right)
    if one is None or other is None:
        return None
    if isinstance(kind, (ast.Mult, ast.Div, ast.FloorDiv)):
        return one.times(other, 1 if isinstance(kind, ast.Mult) else -1)
    if not isinstance(kind, (ast.Add, ast.Sub)):
        return None
    if isinstance(right, Known):
        return one
    if isinstance(left, Known) and isinstance(kind, ast.Add):
        return other
    return Factors(None, (other if other.counted and not one.counted else one).powers)
