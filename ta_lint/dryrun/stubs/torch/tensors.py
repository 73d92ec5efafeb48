"""Tensors: which parameters autograd leads to from one, where that was lost, and what its numbers are."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from ta_lint.dryrun.machine.library import OBJECT, new_class
from ta_lint.dryrun.machine.machine import Machine
from ta_lint.dryrun.values import Choice, Class, Object, Place, Sequence, Table, Unknown, Value

TENSOR = new_class("torch.Tensor", "torch.FloatTensor", "torch.LongTensor", "torch.cuda.FloatTensor", "torch.BoolTensor")
PARAMETER = new_class("torch.nn.Parameter", "torch.nn.parameter.Parameter", bases=(TENSOR,))
BUFFER = new_class("torch.nn.Buffer", "torch.nn.parameter.Buffer", bases=(TENSOR,))

NOTHING: frozenset[Any] = frozenset()
MOST_CUTS = 8

Shape = tuple[Any, ...]
"""Sizes: a number, a name, or None if it is not known."""


@dataclass(frozen=True, slots=True)
class Cut:
    """Where a graph was lost: by `detach`, by an operation in steps such as `argmax`, or because autograd does not record."""

    how: str
    place: Place
    roots: "frozenset[Tensor]"


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of a tensor."""

    roots: "frozenset[Tensor]" = NOTHING
    """The leaves that autograd leads to and that take a gradient."""
    open: bool = False
    """Whether autograd may lead to others as well, which nobody knows."""
    cuts: tuple[Cut, ...] = ()
    """Where a graph to leaves was lost on the way to this tensor."""
    requires: bool | None = False
    """Of a leaf: whether it takes a gradient."""
    leaf: bool = True
    shape: Shape | None = None
    dtype: str | None = None
    scale: tuple[str, Any] | None = None
    """What its numbers are: `("probabilities", dim)`, `("logits", None)`, `("log-probabilities", dim)`, `("indices", None)`."""
    source: Any = None
    """What it was read from, such as the loader of its batch."""


PLAIN = Facts()


class Tensor(Object):
    """A tensor of the program."""

    __slots__ = ()

    def __init__(self, facts: Facts = PLAIN, made: Place | None = None, cls: Class = TENSOR) -> None:
        super().__init__(cls, made, {FACTS: facts})

    @property
    def facts(self) -> Facts:
        """What is known of it now."""
        return self.fields[FACTS]  # type: ignore[no-any-return]

    @property
    def takes_gradient(self) -> bool:
        """Whether it is a leaf that certainly takes a gradient."""
        return self.facts.leaf and self.facts.requires is True

    def merged(self, other: Value) -> Value | None:
        """One tensor for two that may be meant; leaves with a gradient stay apart."""
        if not isinstance(other, Tensor) or self.takes_gradient or other.takes_gradient or self.cls is not other.cls:
            return None
        return Tensor(joined_facts(self.facts, other.facts), self.made)


FACTS = ("facts of a tensor",)
"""The key of a tensor's facts among its fields, which no attribute has."""


def joined_facts(one: Facts, other: Facts) -> Facts:
    """What is known of a tensor that is one of two."""
    return Facts(
        one.roots | other.roots,
        one.open or other.open,
        tuple(dict.fromkeys((*one.cuts, *other.cuts)))[:MOST_CUTS],
        one.requires if one.requires == other.requires else None,
        one.leaf and other.leaf,
        one.shape if one.shape == other.shape else None,
        one.dtype if one.dtype == other.dtype else None,
        one.scale if one.scale == other.scale else None,
        one.source if one.source is other.source else None,
    )


def tensors_in(values: Iterable[Value]) -> Iterator[Tensor]:
    """The tensors among values, and in lists, tuples and dictionaries of them."""
    for value in values:
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, Sequence):
            yield from tensors_in(value.items)
            if value.rest is not None:
                yield from tensors_in((value.rest,))
        elif isinstance(value, Table):
            yield from tensors_in(value.fields.values())
        elif isinstance(value, Choice):
            yield from tensors_in(value.options)


def roots_of(tensor: Tensor) -> "frozenset[Tensor]":
    """The leaves that a gradient of this tensor goes to: itself, if it is one."""
    return tensor.facts.roots | {tensor} if tensor.takes_gradient else tensor.facts.roots


def computed(machine: Machine, inputs: Iterable[Value], place: Place, **known: Any) -> Tensor:
    """A tensor that is computed from these values, so that autograd leads to what it led to from them."""
    values = list(inputs)
    found = list(tensors_in(values))
    roots = frozenset().union(*map(roots_of, found)) if found else NOTHING
    is_open = any(one.facts.open or (one.facts.leaf and one.facts.requires is None) for one in found) or any(map(_may_be_tensor, values))
    cuts = tuple(dict.fromkeys(cut for one in found for cut in one.facts.cuts))[:MOST_CUTS]
    recording = machine.modes["recording"]
    if recording is not True:
        if roots:
            cuts = (*cuts, Cut("without recording", place, roots))[:MOST_CUTS]
        if recording is False:
            roots, is_open = NOTHING, False
    sources = {id(one.facts.source): one.facts.source for one in found if one.facts.source is not None}
    source = next(iter(sources.values())) if len(sources) == 1 else None
    requires = True if roots else None if is_open else False
    return Tensor(replace(Facts(roots, is_open, cuts, requires, not roots and not is_open, source=source), **known), place)


def _may_be_tensor(value: Value) -> bool:
    return isinstance(value, Unknown) and value.type is None


def cut(tensor: Tensor, how: str, place: Place, **known: Any) -> Tensor:
    """A tensor with the same numbers, or numbers in steps, that has no graph."""
    facts = tensor.facts
    roots = roots_of(tensor)
    cuts = (*facts.cuts, Cut(how, place, roots))[:MOST_CUTS] if roots else facts.cuts
    return Tensor(Facts(NOTHING, False, cuts, False, True, facts.shape, facts.dtype, facts.scale, facts.source) if not known else
                  replace(Facts(NOTHING, False, cuts, False, True, facts.shape, facts.dtype, facts.scale, facts.source), **known), place)  # fmt: skip
