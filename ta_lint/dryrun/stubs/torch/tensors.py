"""Tensors: which parameters autograd leads to from one, where that was lost, and what its numbers are."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from ta_lint.dryrun.machine.library import new_class
from ta_lint.dryrun.machine.machine import Machine
from ta_lint.dryrun.values import Choice, Class, Mergeable, Object, Place, Sequence, Table, Unknown, Value

TENSOR = new_class(
    "torch.Tensor", "torch.FloatTensor", "torch.LongTensor", "torch.cuda.FloatTensor", "torch.BoolTensor"
)
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
class Facts(Mergeable):
    """What is known of a tensor."""

    roots: "frozenset[Tensor]" = NOTHING
    """The leaves that autograd leads to and that take a gradient."""
    open: tuple[str, ...] = ()
    """Why autograd may lead to others as well, which nobody knows; empty if it does not."""
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
    perhaps: "frozenset[Tensor]" = NOTHING
    """Those of `roots` that autograd leads to on some paths only."""

    def either(self, other: "Facts") -> "Facts":
        """What is known of a tensor that has these facts or others."""
        return joined_facts(self, other)


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
        if (
            not isinstance(other, Tensor)
            or self.takes_gradient
            or other.takes_gradient
            or self.cls is not other.cls
        ):
            return None
        return Tensor(joined_facts(self.facts, other.facts), self.made)


FACTS = ("facts of a tensor",)
"""The key of a tensor's facts among its fields, which no attribute has."""


def joined_facts(one: Facts, other: Facts) -> Facts:
    """What is known of a tensor that is one of two."""
    return Facts(
        one.roots | other.roots,
        _few(one.open, other.open),
        tuple(dict.fromkeys((*one.cuts, *other.cuts)))[:MOST_CUTS],
        one.requires if one.requires == other.requires else None,
        one.leaf and other.leaf,
        one.shape if one.shape == other.shape else None,
        one.dtype if one.dtype == other.dtype else None,
        one.scale if one.scale == other.scale else None,
        one.source if one.source is other.source else None,
        one.perhaps | other.perhaps | (one.roots ^ other.roots),
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


def certain_roots(tensor: Tensor) -> "frozenset[Tensor]":
    """Those of them that a gradient goes to on every path."""
    return roots_of(tensor) - tensor.facts.perhaps


def _led_to(value: Value) -> "tuple[frozenset[Tensor], frozenset[Tensor]]":
    """The leaves that autograd leads to from a value, and those of them that it leads to whatever the value is."""
    if isinstance(value, Tensor):
        return roots_of(value), certain_roots(value)
    if isinstance(value, Choice):
        several = [_led_to(one) for one in value.options]
        return frozenset().union(*(every for every, _ in several)), frozenset.intersection(
            *(one for _, one in several)
        )
    if isinstance(value, Sequence | Table):
        inside = value.every if isinstance(value, Sequence) else value.fields.values()
        several = [_led_to(one) for one in inside]
        return frozenset().union(*(every for every, _ in several)), frozenset().union(
            *(one for _, one in several)
        )
    return NOTHING, NOTHING


def computed(machine: Machine, inputs: Iterable[Value], place: Place, **known: Any) -> Tensor:
    """A tensor that is computed from these values, so that autograd leads to what it led to from them."""
    values = list(inputs)
    found = list(tensors_in(values))
    led = [_led_to(value) for value in values]
    roots: frozenset[Tensor] = frozenset().union(*(every for every, _ in led))
    certain: frozenset[Tensor] = frozenset().union(*(one for _, one in led))
    why = _few(*(one.facts.open for one in found), *map(_why_open, found), *map(_why_unknown, values))
    cuts = tuple(dict.fromkeys(cut for one in found for cut in one.facts.cuts))[:MOST_CUTS]
    recording = machine.modes["recording"]
    if recording is not True:
        if roots:
            cuts = (*cuts, Cut("without recording", place, roots))[:MOST_CUTS]
        certain = NOTHING
        if recording is False:
            roots, why = NOTHING, ()
    sources = {id(one.facts.source): one.facts.source for one in found if one.facts.source is not None}
    source = next(iter(sources.values())) if len(sources) == 1 else None
    requires = True if certain else None if roots or why else False
    return Tensor(
        replace(
            Facts(roots, why, cuts, requires, not roots and not why, source=source, perhaps=roots - certain),
            **known,
        ),
        place,
    )


def _few(*reasons: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(one for some in reasons for one in some))[:MOST_CUTS]


def _why_open(tensor: Tensor) -> tuple[str, ...]:
    return ("a leaf that may be frozen",) if tensor.facts.leaf and tensor.facts.requires is None else ()


def _why_unknown(value: Value) -> tuple[str, ...]:
    """Why a value may be a tensor of which nothing is known; empty if it is none."""
    if isinstance(value, Unknown) and value.type is None:
        return (value.why or "a value that is not known",)
    if isinstance(value, Sequence) and value.rest is not None:
        return _why_unknown(value.rest)
    if isinstance(value, Choice):
        return _few(*map(_why_unknown, value.options))
    return ()


def cut(tensor: Tensor, how: str, place: Place, **known: Any) -> Tensor:
    """A tensor with the same numbers, or numbers in steps, that has no graph."""
    facts = tensor.facts
    roots = roots_of(tensor)
    cuts = (*facts.cuts, Cut(how, place, roots))[:MOST_CUTS] if roots else facts.cuts
    return Tensor(Facts(NOTHING, (), cuts, False, True, facts.shape, facts.dtype, facts.scale, facts.source) if not known else
                  replace(Facts(NOTHING, (), cuts, False, True, facts.shape, facts.dtype, facts.scale, facts.source), **known), place)  # fmt: skip
