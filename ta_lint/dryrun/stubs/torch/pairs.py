"""Differences of a column and a row, which broadcast to all pairs, until they are averaged or summed as a loss; and how shapes end that are not known."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from ta_lint.dryrun.machine import sizes
from ta_lint.dryrun.machine.call import Call, Effect
from ta_lint.dryrun.machine.library import new_class
from ta_lint.dryrun.stubs.torch.tensors import Facts, Shape, Tensor
from ta_lint.dryrun.values import NONE, Known, Native, Object, Place, Unknown, Value

BATCH: tuple[int, int | None] = (1, None)
"""How the shape ends of a batch of samples of which nobody knows more."""
ROWS = "rows"
"""The name of a size that is that of a batch, and not known."""
OUT_OF_SIGHT = new_class("a batch out of sight")


def grows(loader: Value | None) -> bool:
    """Whether samples get one more dimension where they become a batch of this loader."""
    if not isinstance(loader, Object):
        return loader is None
    collates = loader.fields.get("collate_fn", NONE)
    return loader.fields.get("batch_size") != NONE and (collates == NONE or isinstance(collates, Native))


def ending(value: Value | None) -> tuple[int, int | None] | None:
    """How many dimensions a tensor has at least, and the size of the last one; None if nobody knows."""
    if isinstance(value, Object) and value.cls is OUT_OF_SIGHT:
        return BATCH if grows(value.fields["of"]) else None
    if not isinstance(value, Tensor):
        return None
    shape = value.facts.shape
    return value.facts.ends if shape is None else (len(shape), shape[-1]) if shape else None


def kept(made: Call) -> tuple[int, int | None] | None:
    """The same of what is computed number by number from a single tensor."""
    given = made.values()
    tensors = [one for one in given if isinstance(one, Tensor)]
    return tensors[0].facts.ends if len(tensors) == 1 else None


def reduced(made: Call) -> tuple[int, int | None] | None:
    """The same of what is reduced over its last dimension, which stays as one: that of a batch has another before it."""
    dim = made.constant(1, "dim", None)
    is_kept = made.constant(2, "keepdim", False) is True and dim in (1, -1) and not isinstance(dim, bool)
    return (2, 1) if is_kept else None


def shape_of(value: Value | None) -> Shape | None:
    """The shape of a tensor, or of a number; one that is known in part begins with `...`."""
    if isinstance(value, Tensor):
        facts = value.facts
        if facts.shape is None and facts.ends is not None and facts.ends[0] > 1:
            return (..., facts.ends[1])
        return facts.shape and tuple(size if isinstance(size, int) else None for size in facts.shape)
    return sizes.of(value)


@dataclass(frozen=True, slots=True)
class Difference:
    """A difference of two tensors of several dimensions, of which a tensor is computed number by number."""

    place: Place
    given: Shape
    target: Shape
    of_models: bool
    """Whether models compute the side with fewer dimensions."""
    is_distance: bool = False
    """Whether it is squared, or a magnitude."""


def _subtracted(made: Call) -> Difference | None:
    one, other = [*made.args, *made.kwargs.values()][:2]
    sides = [(shape_of(side), side) for side in (one, other)]
    (given, _), (target, _) = sides
    if given is None or target is None or made.loose:
        return None
    short = min(sides, key=lambda side: (... in side[0], len(side[0])))[1]  # type: ignore[arg-type, operator]
    of_models = isinstance(short, Tensor) and bool(short.facts.outputs)
    return Difference(made.place, given, target, of_models)


def _difference(value: Value | None) -> Difference | None:
    return value.facts.difference if isinstance(value, Tensor) else None


def _same(made: Call) -> Difference | None:
    return _difference(made.args[0]) if made.args else None


def _distance(made: Call) -> Difference | None:
    found = _same(made)
    return None if found is None else replace(found, is_distance=True)


def _power(made: Call) -> Difference | None:
    return _distance(made) if isinstance(made.given(1, "exponent"), Known) else None


def _product(made: Call) -> Difference | None:
    one, other = made.args[:2]
    if one is other:
        return _distance(made)
    for value, factor in ((one, other), (other, one)):
        if _is_number(factor):
            return _difference(value)
    return None


def _quotient(made: Call) -> Difference | None:
    return _difference(made.args[0]) if _is_number(made.args[1]) else None


def _is_number(value: Value) -> bool:
    is_known = isinstance(value, Known) or (isinstance(value, Unknown) and value.type in ("int", "float"))
    return is_known or (isinstance(value, Tensor) and value.facts.shape == ())


_RULES: dict[str, Callable[[Call], Difference | None]] = {
    **dict.fromkeys("__sub__ __rsub__ rsub sub subtract".split(), _subtracted),
    **dict.fromkeys("abs absolute __abs__ square".split(), _distance),
    **dict.fromkeys("__pow__ pow".split(), _power),
    **dict.fromkeys("__mul__ __rmul__ mul multiply".split(), _product),
    **dict.fromkeys("__truediv__ div divide true_divide".split(), _quotient),
    **dict.fromkeys("__neg__ neg negative float double clone contiguous cpu cuda to".split(), _same),
}
_LEAST = 2
_REDUCES = frozenset({"mean", "sum", "nanmean", "nansum"})


def comparing(name: str, effect: Effect) -> Effect:
    """What an operation does, and of which difference its result is computed; what averages or sums one compares its sides."""
    if name in _REDUCES:
        return _reducing(effect)
    rule = _RULES.get(name)
    if rule is None:
        return effect

    def run(made: Call) -> Value:
        found = None if len(made.args) + len(made.kwargs) < 1 or made.machine.by_library else _of(rule, made)
        result = effect(made)
        if found is not None and isinstance(result, Tensor) and not any(result is one for one in made.args):
            return Tensor(replace(result.facts, difference=found), result.made, result.cls)
        return result

    return run


def _of(rule: Callable[[Call], Difference | None], made: Call) -> Difference | None:
    try:
        return rule(made)
    except (IndexError, ValueError):  # too few arguments
        return None


def _reducing(effect: Effect) -> Effect:
    def run(made: Call) -> Value:
        found = _same(made)
        if found is not None and (found.is_distance or "mean" in made.name):
            wanted = found.is_distance and found.of_models  # all differences of two sets of outputs
            how, target = "distance" if found.is_distance else "mean", found.given if wanted else found.target
            made.emit("compared", None, at=found.place, how=how, given=found.given, target=target)
        return effect(made)

    return run


def with_ends(facts: Facts, ends: Any) -> Facts:
    """These facts, with how the shape ends, where it is not known."""
    return facts if ends is None or facts.shape is not None else replace(facts, ends=ends)
