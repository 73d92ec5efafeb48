"""Tensors: which parameters autograd leads to from one, where that was lost, and what its numbers are."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from ta_lint.dryrun.machine.library import new_class
from ta_lint.dryrun.machine.machine import Machine
from ta_lint.dryrun.values import (
    MOST_CUTS,
    Choice,
    Class,
    Hidden,
    Mergeable,
    Object,
    Place,
    Sequence,
    Table,
    Unknown,
    Value,
    cuts_of,
    latest,
)

TENSOR = new_class(
    "torch.Tensor", "torch.FloatTensor", "torch.LongTensor", "torch.cuda.FloatTensor", "torch.BoolTensor"
)
PARAMETER = new_class("torch.nn.Parameter", "torch.nn.parameter.Parameter", bases=(TENSOR,))
BUFFER = new_class("torch.nn.Buffer", "torch.nn.parameter.Buffer", bases=(TENSOR,))

NOTHING: frozenset[Any] = frozenset()

Shape = tuple[Any, ...]
"""Sizes: a number, a name, or None if it is not known."""


MOST_BEFORE = 64
"""Cuts before another one that are counted."""


@dataclass(frozen=True, slots=True)
class Cut:
    """Where a graph was lost: by `detach`, by an operation in steps such as `argmax`, or because autograd does not record.

    `roots` are the leaves that it led to, certainly or perhaps; empty if nobody knows them. `after` counts the cuts before it, on the way
    on which there are the most.
    """

    how: str
    place: Place
    roots: "frozenset[Tensor]"
    after: int = 0


@dataclass(frozen=True, slots=True)
class Forced:
    """Where a tensor that was computed from parameters is told to require a gradient."""

    tensor: "Tensor"
    place: Place


DETACHED = "detached"
IN_STEPS = "in steps"
ZERO = "a gradient of zero"
UNRECORDED = "without recording"


@dataclass(frozen=True, slots=True)
class Facts(Mergeable):
    """What is known of a tensor."""

    roots: "frozenset[Tensor]" = NOTHING
    """The leaves that autograd leads to and that take a gradient."""
    perhaps: "frozenset[Tensor]" = NOTHING
    """Leaves that it leads to on some paths, or if they take a gradient."""
    open: tuple[str, ...] = ()
    """Why autograd may lead to others as well, which nobody knows; empty if it does not."""
    flat: "frozenset[Tensor]" = NOTHING
    """Those of `roots` and `perhaps` to which only gradients of zero go, as all ways there lead through a rounding."""
    cuts: tuple[Cut, ...] = ()
    """Where a graph to leaves was lost on the way to this tensor."""
    forced: tuple[Forced, ...] = ()
    """Of a loss: the parts of its sum that were told to require a gradient."""
    requires: bool | None = False
    """Of a leaf: whether it takes a gradient."""
    leaf: bool = True
    shape: Shape | None = None
    dtype: str | None = None
    scale: tuple[str, Any] | None = None
    """What its numbers are: `("probabilities", dim)`, `("logits", None)`, `("log-probabilities", dim)`, `("indices", None)`."""
    source: Any = None
    """What it was read from, such as the loader of its batch."""
    again: tuple[Any, ...] = ()
    """The calls that backward makes again, as checkpointing has kept nothing of them."""

    @property
    def reached(self) -> "frozenset[Tensor]":
        """The leaves that a gradient other than zero goes to, or may go to."""
        return (self.roots | self.perhaps) - self.flat

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

    def alike(self) -> Facts | None:
        """Its facts, unless it may be a leaf that gets a gradient."""
        facts = self.facts
        return None if len(self.fields) > 1 or (facts.leaf and facts.requires is not False) else facts

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


FACTS = Hidden("the facts of a tensor")


def joined_facts(one: Facts, other: Facts) -> Facts:
    """What is known of a tensor that is one of two."""
    roots = one.roots & other.roots
    every = one.roots | other.roots | one.perhaps | other.perhaps
    return Facts(
        roots,
        every - roots,
        _few(one.open, other.open),
        every - one.reached - other.reached if one.flat or other.flat else NOTHING,
        latest((*one.cuts, *other.cuts)),
        _few(one.forced, other.forced),
        one.requires if one.requires == other.requires else None,
        one.leaf and other.leaf,
        one.shape if one.shape == other.shape else None,
        one.dtype if one.dtype == other.dtype else None,
        one.scale if one.scale == other.scale else None,
        one.source if one.source is other.source else None,
        _few(one.again, other.again),
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


def perhaps_of(tensor: Tensor) -> "frozenset[Tensor]":
    """The leaves that it goes to perhaps: itself, if it may be frozen."""
    facts = tensor.facts
    return facts.perhaps | {tensor} if facts.leaf and facts.requires is None else facts.perhaps


Reach = tuple["frozenset[Tensor]", "frozenset[Tensor]"]
"""The leaves that a gradient goes to, and those that it goes to perhaps."""


def reach_of(values: Iterable[Value]) -> Reach:
    """Where a gradient of all these values goes; of a choice, it goes to one of them."""
    roots, perhaps = set[Tensor](), set[Tensor]()
    for value in values:
        if isinstance(value, Tensor):
            roots |= roots_of(value)
            perhaps |= perhaps_of(value)
        elif isinstance(value, Choice):
            several = [reach_of((one,)) for one in value.options]
            roots |= frozenset.intersection(*(one for one, _ in several))
            perhaps |= frozenset().union(*(one | other for one, other in several))
        elif isinstance(value, Sequence | Table):
            inner = value.every if isinstance(value, Sequence) else value.fields.values()
            of_roots, of_perhaps = reach_of(inner)
            roots |= of_roots
            perhaps |= of_perhaps
    return frozenset(roots), frozenset(perhaps - roots)


def computed(machine: Machine, inputs: Iterable[Value], place: Place, **known: Any) -> Tensor:
    """A tensor that is computed from these values, so that autograd leads to what it led to from them."""
    values = list(inputs)
    found = list(tensors_in(values))
    every = [one.facts for one in found]
    roots, perhaps = reach_of(values)
    flat = NOTHING
    if any(one.flat for one in every):
        flat = (roots | perhaps).difference(*map(reached_from, found))
    why = _few(*(one.open for one in every), *map(why_unknown, values))
    cuts = latest([*(cut for one in every for cut in one.cuts), *cuts_of(*values)])
    again = _few(*(one.again for one in every))
    recording = machine.mode("recording")
    if recording is not True:
        if roots or (recording is False and (perhaps or why)):
            cuts = _and(cuts, UNRECORDED, place, roots | perhaps)
        roots, perhaps = NOTHING, NOTHING if recording is False else roots | perhaps
        flat = NOTHING if recording is False else flat
        why, again = ((), ()) if recording is False else (why, again)
    sources = {id(one.source): one.source for one in every if one.source is not None}
    source = next(iter(sources.values())) if len(sources) == 1 else None
    requires = True if roots else None if why or perhaps else False
    leaf = not roots and not perhaps and not why
    facts: dict[str, Any] = {
        "roots": roots, "perhaps": perhaps, "open": why, "flat": flat, "cuts": cuts, "requires": requires,
        "leaf": leaf, "source": source, "again": again,
    }  # fmt: skip
    return Tensor(Facts(**(facts | known)), place)


def in_outline(machine: Machine) -> bool:
    """Whether a program of `stubs/programs` runs: what it computes stands for what happens to the graph, and for nothing else."""
    return bool(machine.frames) and machine.frames[-1].site is not None


def _few(*reasons: tuple[Any, ...]) -> tuple[Any, ...]:
    reasons = tuple(filter(None, reasons))
    if len(reasons) < 2:
        return reasons[0][:MOST_CUTS] if reasons else ()
    return tuple(dict.fromkeys(one for some in reasons for one in some))[:MOST_CUTS]


def why_unknown(value: Value) -> tuple[str, ...]:
    """Why a value may be a tensor of which nothing is known; empty if it is none."""
    if isinstance(value, Unknown) and value.type is None:
        return (value.why or "a value that is not known",)
    if isinstance(value, Sequence | Table):
        inner = value.every if isinstance(value, Sequence) else value.fields.values()
        return _few(*map(why_unknown, inner))
    if isinstance(value, Choice):
        return _few(*map(why_unknown, value.options))
    return ()


def reached_from(tensor: Tensor) -> "frozenset[Tensor]":
    """The leaves that a gradient of this tensor, other than zero, goes to, or may go to: itself, if it is one."""
    return (roots_of(tensor) | perhaps_of(tensor)) - tensor.facts.flat


def ended(tensor: Tensor, how: str, place: Place) -> tuple[Cut, ...]:
    """Where the graph of a tensor ends, if it ends here."""
    lost = roots_of(tensor) | perhaps_of(tensor)
    if not lost and not tensor.facts.open:
        return tensor.facts.cuts
    return _and(tensor.facts.cuts, how, place, lost)


def _and(cuts: tuple[Cut, ...], how: str, place: Place, roots: "frozenset[Tensor]") -> tuple[Cut, ...]:
    """These cuts and another one after them."""
    after = max((one.after + 1 for one in cuts), default=0)
    return latest((*cuts, Cut(how, place, roots, min(after, MOST_BEFORE))))


def forced(tensor: Tensor, place: Place) -> tuple[Forced, ...]:
    """The parts of a tensor that were told to require a gradient, if it is told so here. One that no parameter leads to may want it."""
    facts = tensor.facts
    computed_from = facts.roots or facts.perhaps or any(cut.roots for cut in facts.cuts)
    if tensor.cls is PARAMETER or not computed_from:
        return facts.forced
    return (*facts.forced, Forced(tensor, place))


def flattened(facts: Facts, place: Place) -> Facts:
    """The facts of a tensor from which gradients go on as zeros."""
    leaves = facts.roots | facts.perhaps
    if not leaves:
        return facts
    return replace(facts, flat=leaves, cuts=_and(facts.cuts, ZERO, place, leaves))


def cut(tensor: Tensor, how: str, place: Place, **known: Any) -> Tensor:
    """A tensor with the same numbers, or numbers in steps, that has no graph."""
    facts = tensor.facts
    lost = {
        "roots": NOTHING,
        "perhaps": NOTHING,
        "open": (),
        "flat": NOTHING,
        "forced": (),
        "cuts": ended(tensor, how, place),
        "requires": False,
        "leaf": True,
        "again": (),
    }
    return Tensor(replace(facts, **(lost | known)), place)  # type: ignore[arg-type]


def kept_nothing_of(value: Value, again: tuple[Any, ...]) -> Value:
    """The result of a call that backward makes again."""
    if isinstance(value, Tensor) and not value.facts.leaf:
        return Tensor(replace(value.facts, again=_few(value.facts.again, again)), value.made, value.cls)
    if isinstance(value, Sequence):
        rest = None if value.rest is None else kept_nothing_of(value.rest, again)
        return Sequence(
            value.cls, tuple(kept_nothing_of(one, again) for one in value.items), rest, value.made
        )
    return value


def written_to(value: Value | None) -> Value | None:
    """What changes if a value is written to: of `p.data`, the parameter."""
    return value.fields.get("of", value) if isinstance(value, Tensor) else value
