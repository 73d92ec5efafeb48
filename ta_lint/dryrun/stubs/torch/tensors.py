"""Tensors: which parameters autograd leads to from one, where that was lost, and what its numbers are."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeGuard

from ta_lint.dryrun.machine.batches import either
from ta_lint.dryrun.machine.library import new_class
from ta_lint.dryrun.machine.machine import Machine
from ta_lint.dryrun.machine.sizes import common
from ta_lint.dryrun.sources import alone
from ta_lint.dryrun.stubs.torch.devices import together
from ta_lint.dryrun.stubs.torch.graphs import NO_GRAPH, Graph, made_of, started
from ta_lint.dryrun.stubs.torch.terms import Term, Terms, united
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
    each_in,
    latest,
)

TENSOR = new_class(
    "torch.Tensor", "torch.FloatTensor", "torch.LongTensor", "torch.cuda.FloatTensor", "torch.BoolTensor"
)
PARAMETER = new_class("torch.nn.Parameter", "torch.nn.parameter.Parameter", bases=(TENSOR,))
GRADIENT = new_class("torch.Tensor.grad", bases=(TENSOR,))
BUFFER = new_class("torch.nn.Buffer", "torch.nn.parameter.Buffer", bases=(TENSOR,))

NOTHING: frozenset[Any] = frozenset()

Shape = tuple[Any, ...]
"""Sizes: a number, a name, or None if it is not known."""


MOST_BEFORE = 64
"""Cuts before another one that are counted."""


@dataclass(frozen=True, slots=True)
class Cut:
    """Where a graph was lost: by `detach`, by an operation in steps such as `argmax`, by `autograd.grad` without `create_graph`, or because
    autograd does not record.

    `roots` are the leaves that it led to, certainly or perhaps; empty if nobody knows them. `after` counts the cuts before it, on the way
    on which there are the most. `outputs` are the calls of models that gave what was read here as an array.
    """

    how: str
    place: Place
    roots: "frozenset[Tensor]"
    after: int = 0
    outputs: "tuple[ModelCall, ...]" = ()


@dataclass(frozen=True, slots=True)
class Forced:
    """Where a tensor that was computed from parameters is told to require a gradient."""

    tensor: "Tensor"
    place: Place


BOUNDED = "bounded"
"""What the numbers of a tensor are that was cut off at a limit."""


@dataclass(frozen=True, slots=True)
class ModelCall:
    """A call of a model that puts something out: where, in which mode, and whether autograd records, if that is known."""

    place: Place
    training: bool | None
    recording: bool | None


DETACHED = "detached"
FIRST_ORDER = "without the graph of a gradient"
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
    ends: tuple[int, int | None] | None = None
    """Where its shape is not known: how many dimensions it has at least, and the size of the last."""
    dtype: str | None = None
    scale: tuple[str, Any] | None = None
    """What its numbers are: `("probabilities", dim)`, `("logits", None)`, `("log-probabilities", dim)`, `("indices", None)`."""
    source: Any = None
    """What it was read from, such as the loader of its batch, and computed from alone; `SEVERAL` if there is more of that."""
    again: tuple[Any, ...] = ()
    """The calls that backward makes again, as checkpointing has kept nothing of them."""
    half: bool = False
    """Whether a part of its graph was computed in float16, as autocast chose, and nothing has multiplied it with something large since."""
    scaled: bool | None = False
    """Of a loss: whether a gradient scaler has multiplied it; None if something has been computed from that, or nobody knows."""
    graph: Graph = NO_GRAPH
    """Where its graph starts."""
    outputs: "tuple[ModelCall, ...]" = ()
    """The calls of models from whose outputs it was computed."""
    batch_of: Any = None
    """The loader whose batch it is in, as that gives it."""
    amount: Any = None
    """What its numbers are made of, batch by batch: a `machine.amounts.Amount`, if that is known."""
    grows: bool | None = None
    """Whether twice as many samples make it twice as large, as a sum over them, and not their mean; None if nobody knows."""
    terms: Terms = ()
    """What it is the sum of; empty if it is a term itself."""
    form: Any = None
    """What it is of a distribution, a `likelihoods.Form`."""
    chosen: bool = False
    """Whether it is computed from the log-probability of an action that was chosen."""
    differs: bool = False
    """Whether it is computed from a difference of two values from which autograd leads on."""
    difference: Any = None
    """The difference of which its numbers are computed one by one, a `pairs.Difference`."""
    output: Any = None
    """What gave it its numbers, an `activations.Activation`, if one did and nothing has changed them since."""
    where: Any = None
    """The device that it is on, as the program names it: see `devices`."""

    @property
    def reached(self) -> "frozenset[Tensor]":
        """The leaves that a gradient other than zero goes to, or may go to."""
        return (self.roots | self.perhaps) - self.flat

    @property
    def is_constant(self) -> bool:
        """Whether it is computed from nothing."""
        known = self.outputs or self.cuts or self.open or self.source or self.batch_of or self.amount
        return not known and self.requires is False

    def either(self, other: "Facts") -> "Facts":
        """What is known of a tensor that has these facts or others."""
        return joined_facts(self, other)

    def renewed(self, machine: Machine, since: int, made: dict[Any, Any]) -> "Facts":
        """The same with new starts of graphs."""
        graph = self.graph.renewed(machine, since, made)
        amount = self.amount and self.amount.of_another(machine)
        return (
            self
            if graph is self.graph and amount == self.amount
            else replace(self, graph=graph, amount=amount)
        )


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
    def amount(self) -> Any:
        """What its numbers are made of, batch by batch."""
        return self.facts.amount

    @property
    def is_constant(self) -> bool:
        """Whether it is computed from nothing."""
        return self.facts.is_constant

    @property
    def takes_gradient(self) -> bool:
        """Whether it is a leaf that certainly takes a gradient."""
        return self.facts.leaf and self.facts.requires is True

    def alike(self) -> Facts | None:
        """Its facts, unless it may be a leaf that gets a gradient."""
        facts = self.facts
        return None if len(self.fields) > 1 or (facts.leaf and facts.requires is not False) else facts

    def copied(self) -> Value:
        """The same numbers elsewhere."""
        return Tensor(self.facts, self.made, self.cls)

    def merged(self, other: Value) -> Value | None:
        """One tensor for two that may be meant; leaves with a gradient stay apart."""
        if (
            not isinstance(other, Tensor)
            or self.takes_gradient
            or other.takes_gradient
            or self.cls is not other.cls
        ):
            return None
        facts = joined_facts(self.facts, other.facts)
        if self.facts.terms or other.facts.terms:
            facts = replace(facts, terms=united((*terms_of(self), *terms_of(other)), joined_facts))
        return Tensor(facts, self.made)


FACTS = Hidden("the facts of a tensor")
STATE_OF = Hidden("the state of a module that a tensor is in")


def joined_facts(one: Facts, other: Facts) -> Facts:
    """What is known of a tensor that is one of two."""
    roots = one.roots if other.is_constant else other.roots if one.is_constant else one.roots & other.roots
    every = one.roots | other.roots | one.perhaps | other.perhaps
    return Facts(
        roots,
        every - roots,
        few(one.open, other.open),
        every - one.reached - other.reached if one.flat or other.flat else NOTHING,
        latest((*one.cuts, *other.cuts)),
        few(one.forced, other.forced),
        one.requires if one.requires == other.requires else None,
        one.leaf and other.leaf,
        common(one.shape, other.shape),
        one.ends if one.ends == other.ends else None,
        one.dtype if one.dtype == other.dtype else None,
        one.scale if one.scale == other.scale else None,
        alone((one.source, other.source)) if one.source is not None and other.source is not None else None,
        few(one.again, other.again),
        one.half or other.half,
        one.scaled if one.scaled is other.scaled else None,
        one.graph.either(other.graph),
        calls_of([one, other]),
        one.batch_of if one.batch_of is other.batch_of else None,
        amount=other.amount
        if one.is_constant
        else one.amount
        if other.is_constant
        else either(one.amount, other.amount),
        grows=_grow([one, other]),
        terms=united((*one.terms, *other.terms), joined_facts) if one.terms and other.terms else (),
        form=one.form if one.form == other.form else None,
        chosen=one.chosen and other.chosen,
        differs=one.differs and other.differs,
        difference=one.difference if one.difference == other.difference else None,
        output=one.output if one.output == other.output else None,
        where=one.where if one.where == other.where else None,
    )


def _grow(several: list[Facts]) -> bool | None:
    """Whether one of these, or what is computed from them, grows with the number of samples."""
    found = {one.grows for one in several}
    return True if True in found else None if None in found or not found else False


def terms_of(value: Value) -> Terms:
    """What a value is the sum of: itself, if it is no sum. A number that is known is no term."""
    if isinstance(value, Tensor):
        place = value.made
        return value.facts.terms or (() if place is None else (Term(place, value.facts),))
    if isinstance(value, Unknown) and value.cuts:
        return (Term(value.cuts[-1].place, Facts(cuts=value.cuts)),)
    return ()


def is_parameter(value: Value | None) -> TypeGuard[Tensor]:
    """Whether it is a `torch.nn.Parameter`."""
    return isinstance(value, Tensor) and value.cls is PARAMETER


def tensors_in(values: Iterable[Value]) -> Iterator[Tensor]:
    """The tensors among values, and in lists, tuples and dictionaries of them."""
    return (one for one in each_in(values) if isinstance(one, Tensor))


def roots_of(tensor: Tensor) -> "frozenset[Tensor]":
    """The leaves that a gradient of this tensor goes to: itself, if it is one."""
    return tensor.facts.roots | {tensor} if tensor.takes_gradient else tensor.facts.roots


def perhaps_of(tensor: Tensor) -> "frozenset[Tensor]":
    """The leaves that it goes to perhaps: itself, if it may be frozen."""
    facts = tensor.facts
    return facts.perhaps | {tensor} if facts.leaf and facts.requires is None else facts.perhaps


Reach = tuple["frozenset[Tensor]", "frozenset[Tensor]"]
"""The leaves that a gradient goes to, and those that it goes to perhaps."""


def reach_of(values: Iterable[Value], known: dict[int, Reach] | None = None) -> Reach:
    """Where a gradient of all these values goes; of a choice, it goes to one of them. `known` has the containers seen so far."""
    known = {} if known is None else known
    roots, perhaps = [NOTHING], [NOTHING]
    for value in values:
        if isinstance(value, Tensor):
            roots.append(roots_of(value))
            perhaps.append(perhaps_of(value))
        elif isinstance(value, Choice):
            several = [reach_of((one,), known) for one in value.options]
            roots.append(frozenset.intersection(*(one for one, _ in several)))
            perhaps += [one | other for one, other in several]
        elif isinstance(value, Sequence | Table):
            if id(value) not in known:
                known[id(value)] = NOTHING, NOTHING  # of one that holds itself
                known[id(value)] = reach_of(value.every, known)
            of_roots, of_perhaps = known[id(value)]
            roots.append(of_roots)
            perhaps.append(of_perhaps)
    certain = _union(roots)
    return certain, _union(perhaps) - certain


def _union(sets: "list[frozenset[Tensor]]") -> "frozenset[Tensor]":
    """All in some sets; the largest of them is copied only if the others have more."""
    largest = max(sets, key=len)
    others = [one for one in sets if one is not largest and not one <= largest]
    return largest.union(*others) if others else largest


def computed(machine: Machine, inputs: Iterable[Value], place: Place, **known: Any) -> Tensor:
    """A tensor that is computed from these values, so that autograd leads to what it led to from them."""
    values = list(inputs)
    found = list(tensors_in(values))
    every = [one.facts for one in found]
    for one in every:
        if one.output is not None and one.output.layer is not None:
            machine.emit("output used", place.node, one.output.layer)
    roots, perhaps = reach_of(values)
    is_flat = any(one.flat for one in every)
    flat = (roots | perhaps).difference(*map(reached_from, found)) if is_flat else NOTHING
    why = few(*(one.open for one in every), *map(why_unknown, values))
    cuts = latest([*(cut for one in every for cut in one.cuts), *cuts_of(*values)])
    again = few(*(one.again for one in every))
    outputs = calls_of(every)
    recording = machine.mode("recording")
    if recording is not True:
        if roots or (recording is False and (perhaps or why)):
            cuts = _and(cuts, UNRECORDED, place, roots | perhaps)
        roots, perhaps = NOTHING, NOTHING if recording is False else roots | perhaps
        flat = NOTHING if recording is False else flat
        why, again = ((), ()) if recording is False else (why, again)
    source = alone(one.source for one in every)
    requires = True if roots else None if why or perhaps else False
    leaf = not roots and not perhaps and not why
    graph = NO_GRAPH
    if recording is True:
        leaves = frozenset(one for one in found if one.takes_gradient)
        graph = made_of(machine, [one.graph for one in every], place, leaves)
    leads_on = bool(roots or perhaps or why)
    half = leads_on and (machine.modes["half"].on or any(one.half for one in every))
    facts: dict[str, Any] = {
        "roots": roots, "perhaps": perhaps, "open": why, "flat": flat, "cuts": cuts, "requires": requires,
        "leaf": leaf, "source": source, "again": again, "scaled": None if any(one.scaled is not False for one in every) else False, "graph": graph,
        "outputs": outputs, "half": half, "chosen": any(one.chosen for one in every),
        "differs": leads_on and any(one.differs for one in every),
        "grows": _grow([one for one in every if not one.is_constant]), "where": together(one.where for one in every),
    }  # fmt: skip
    return Tensor(Facts(**(facts | known)), place)


def may_be_loss(value: Value) -> bool:
    """Whether a value may be a loss of which nobody knows what it leads to."""
    if isinstance(value, Tensor):
        return bool(value.facts.open) and not value.facts.graph.starts and value.facts.requires is not False
    return isinstance(value, Unknown) and value.type is None


def some_loss(machine: Machine, value: Value, place: Place) -> Tensor:
    """A loss that goes back, and of which nobody knows what it leads to."""
    why = getattr(value, "why", "") or "a loss that is not known"
    facts = value.facts if isinstance(value, Tensor) else Facts(open=(why,), requires=None, leaf=False)
    return Tensor(replace(facts, graph=started(machine, place)), getattr(value, "made", None) or place)


MOST_CALLS = 64
"""Calls of models that a tensor is known to come from."""


def calls_of(several: Iterable[Facts]) -> "tuple[ModelCall, ...]":
    """The calls of models from whose outputs tensors with these facts were computed."""
    every = list(dict.fromkeys(one.outputs for one in several if one.outputs))
    found = every[0] if len(every) == 1 else tuple(dict.fromkeys(call for some in every for call in some))
    return found[:MOST_CALLS]


def few(*reasons: tuple[Any, ...]) -> tuple[Any, ...]:
    """The first of these together, each once."""
    some = [one for one in reasons if one]
    every = some[0] if len(some) == 1 else tuple(dict.fromkeys(each for one in some for each in one))
    return every[:MOST_CUTS]


def why_unknown(value: Value) -> tuple[str, ...]:
    """Why a value may be a tensor of which nothing is known, or hold one; empty if it certainly is none."""
    unknown = (one for one in each_in((value,)) if isinstance(one, Unknown) and one.type is None)
    return few(tuple(one.why or "a value that is not known" for one in unknown))


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
    computed_from = facts.roots or facts.perhaps or facts.open or any(cut.roots for cut in facts.cuts)
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
        "graph": NO_GRAPH,
        "half": False,
        "differs": False,
        "terms": _without_graph(tensor, how, place) if how == DETACHED else (),
    }
    result = Tensor(replace(facts, **(lost | known)), place)  # type: ignore[arg-type]
    if how == DETACHED and STATE_OF in tensor.fields:
        result.fields[STATE_OF] = tensor.fields[STATE_OF]
    return result


def _without_graph(tensor: Tensor, how: str, place: Place) -> Terms:
    """The terms of a sum whose graph is cut off: the same numbers, from the same places."""
    return tuple(replace(one, facts=_alone(one.facts, how, place)) for one in terms_of(tensor))


def _alone(facts: Facts, how: str, place: Place) -> Facts:
    """What is left of a term."""
    lost = facts.roots | facts.perhaps
    cuts = _and(facts.cuts, how, place, lost) if lost or facts.open else facts.cuts
    return Facts(cuts=cuts, form=facts.form, outputs=facts.outputs)


def written_to(value: Value | None) -> Value | None:
    """What changes if a value is written to: of `p.data`, the parameter."""
    return value.fields.get("of", value) if isinstance(value, Tensor) else value
