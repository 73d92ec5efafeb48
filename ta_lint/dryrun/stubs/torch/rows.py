"""A row of the tables of operations: what a call does to the graph, to shape and dtype, and what it gives."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from ta_lint.dryrun.machine.call import Call
from ta_lint.dryrun.machine.library import method, new_class, stub, tuple_of
from ta_lint.dryrun.stubs.torch import outputs
from ta_lint.dryrun.stubs.torch.activations import activated, scored
from ta_lint.dryrun.stubs.torch.amounts import growth, of_operation
from ta_lint.dryrun.stubs.torch.discards import ONLY_TENSORS, noting_discards, of_tensors
from ta_lint.dryrun.stubs.torch.dtypes import Dtype, steady
from ta_lint.dryrun.stubs.torch.likelihoods import telling
from ta_lint.dryrun.stubs.torch.pairs import comparing, kept, reduced, with_ends
from ta_lint.dryrun.stubs.torch.shapes import Rule, broadcast, own
from ta_lint.dryrun.stubs.torch.shapes import reduced as reduced_to
from ta_lint.dryrun.stubs.torch.summing import taking_apart
from ta_lint.dryrun.stubs.torch.tensors import (
    IN_STEPS,
    TENSOR,
    Forced,
    Tensor,
    computed,
    cut,
    flattened,
    tensors_in,
)
from ta_lint.dryrun.values import Known, Object, Unknown, Value, is_number, joined

FOLLOWS = "autograd goes through it"
FLAT = "autograd goes through it, and every gradient is zero"
CUTS = "its result has no graph"

TORCH = ("torch.", "torch.Tensor.")
FUNCTION = ("torch.",)
METHOD = ("torch.Tensor.",)
FUNCTIONAL = ("torch.nn.functional.",)
EVERYWHERE = (*TORCH, *FUNCTIONAL)


@dataclass(frozen=True, slots=True)
class Row:
    """Operations that do the same: `names` with the prefixes of `where`.

    `parts` are the names of what it gives, if that are several tensors: `#` is before indices, `~` before what has no graph and a dtype of
    its own. `*` are any number of tensors.
    `means` is what the numbers are, such as probabilities, over the dimension that the second argument says.
    """

    graph: str
    shape: Rule
    dtype: Dtype
    names: str
    where: tuple[str, ...] = TORCH
    parts: str = ""
    means: str = ""

    def run(self, made: Call) -> Value:
        """What a call gives."""
        if self.parts == "*":
            return tuple_of((), self._tensor(made))
        if self.parts:
            fields: dict[Any, Value] = {
                name.lstrip("#~"): self._part(made, name[0]) for name in self.parts.split()
            }
            return Object(PARTS, made.place, fields)
        return self._tensor(made)

    def _part(self, made: Call, sign: str) -> Tensor:
        result = self._tensor(made)
        if sign == "~":
            return cut(result, IN_STEPS, made.place, shape=None, dtype=None)
        return as_indices(made, result) if sign == "#" else result

    def _ends(self, made: Call) -> tuple[int, int | None] | None:
        if self.shape is own or self.shape is broadcast:
            return kept(made)
        return reduced(made) if self.shape is reduced_to else None

    def _dtype(self, made: Call) -> str | None:
        dtype = self.dtype(made)
        return None if dtype in ("float16", "bfloat16") and not steady(made) else dtype

    def _tensor(self, made: Call) -> Tensor:
        shape, dtype = (None, None) if made.machine.by_library else (self.shape(made), self._dtype(made))
        result = computed(made.machine, made.values(), made.place, shape=shape, dtype=dtype)
        if self.graph is CUTS:
            if made.name in EQUALITY and not any(isinstance(one, Known) for one in made.args):
                outputs.used(made, outputs.COMPARED, made.args)
            means = {"bool": "booleans", "int64": "indices"}.get(dtype or "", "")
            return cut(
                result,
                IN_STEPS,
                made.place,
                shape=shape,
                dtype=dtype,
                scale=(means, None) if means else None,
            )
        facts = result.facts
        if self.graph is FLAT:
            facts = flattened(facts, made.place)
        if made.name in SUMS and (parts := _parts(made)):
            facts = replace(facts, forced=parts)
        if made.name in PRODUCTS and facts.half and any(map(_is_large, made.values())):
            facts = replace(facts, half=False)
        if (own := of_operation(made)) is not None:
            facts = replace(facts, amount=own)
        if (grows := growth(made, facts.grows)) is not facts.grows:
            facts = replace(facts, grows=grows)
        if self.means:
            facts = replace(facts, scale=(self.means, made.constant(1, "dim")))
            if self.means == "log-probabilities":
                scored(made, operand(made))
        if shape is None:
            facts = with_ends(facts, self._ends(made))
        return result if facts is result.facts else Tensor(facts, made.place)


EQUALITY = frozenset("__eq__ __ne__ eq ne".split())
SUMS = frozenset("""
    __add__ __mul__ __neg__ __radd__ __rmul__ __rsub__ __sub__ __truediv__ add div mean mul neg stack sub sum
""".split())  # fmt: skip
"""What makes one loss of several, or another multiple of one."""


PRODUCTS = frozenset("__mul__ __rmul__ mul multiply".split())


def _is_large(factor: Value) -> bool:
    """Whether a factor brings small gradients of a loss into the range of float16, or may."""
    if is_number(factor):
        return bool(factor.value >= LARGE)
    return isinstance(factor, Unknown)


LARGE = 8
"""The least factor that is taken to be one against small gradients."""


def _parts(made: Call) -> tuple[Forced, ...]:
    """The parts of a sum that were told to require a gradient; a product with another tensor is no sum."""
    every = list(tensors_in(made.values()))
    if len(every) > 1 and made.name.strip("_").lstrip("r") in ("mul", "truediv", "div"):
        return ()
    return tuple(dict.fromkeys(part for one in every for part in one.facts.forced))


PARTS = new_class("torch.return_types")
"""Several results with names, such as `values` and `indices`."""


def as_indices(made: Call, tensor: Tensor) -> Tensor:
    """Indices of the elements of a tensor, in its shape."""
    return cut(tensor, IN_STEPS, made.place, dtype="int64", scale=("indices", None))


def parts_of(value: Value) -> list[Value]:
    """The results, in order."""
    assert isinstance(value, Object)
    return list(value.fields.values())


@method(PARTS, "__iter__")
def _iterated(made: Call) -> Value:
    return tuple_of(parts_of(made.args[0]))


@method(PARTS, "__getitem__")
def _one(made: Call) -> Value:
    parts, key = parts_of(made.args[0]), made.constant(1, "key")
    if isinstance(key, slice):
        return tuple_of(parts[key])
    return parts[key] if isinstance(key, int) and -len(parts) <= key < len(parts) else joined(parts)


@method(PARTS, "__len__")
def _count(made: Call) -> Value:
    return Known(len(parts_of(made.args[0])))


def define(rows: Iterable[Row]) -> None:
    """The names of these rows are known from now on."""
    for row in rows:
        register(row.names, row.run, row.where)


def register(names: str, effect: Callable[[Call], Value], where: Iterable[str] = TORCH) -> None:
    """These functions and methods have this effect."""
    for name in names.split():
        run = noting_discards(
            name, taking_apart(name, telling(name, comparing(name, activated(name, effect))))
        )
        for prefix in where:
            if prefix == "torch.Tensor.":
                method(TENSOR, name)(of_tensors(run) if name in ONLY_TENSORS else run)
            else:
                stub(f"{prefix}{name}")(of_tensors(run))


def operand(made: Call, index: int = 0) -> Tensor | None:
    """The tensor that it is about: the first argument, or the first tensor in it."""
    value = made.args[index] if index < len(made.args) else made.kwargs.get("input", made.kwargs.get("self"))
    if value is None or isinstance(value, Tensor):
        return value
    return next(tensors_in([value]), None)


def may_be_tensor(value: Value) -> bool:
    """Whether nobody knows what it is."""
    return isinstance(value, Unknown) and value.type is None
