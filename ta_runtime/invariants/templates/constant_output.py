"""What comes out of a call is always of one kind: its dtype, whether it requires a gradient, its number of dimensions.

Sizes are never part of it, as another batch has others. Of functions and modules of torch nothing is learned where all of
them are alike: the user's own say the same. The number of dimensions is that of the user's own alone, as modules of torch
have as many as they are given. TrainCheck (OSDI'25) calls it APIOutput.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from ta_runtime.invariants.attributes import meets
from ta_runtime.invariants.counting import Tally
from ta_runtime.invariants.events import Events, has
from ta_runtime.invariants.invariant import Invariant
from ta_runtime.invariants.signatures import is_float, outputs
from ta_runtime.invariants.template import BrokenInvariant, Candidate, QuietWatcher, by_call
from ta_runtime.invariants.words import quoted, under
from ta_runtime.trace.event import Event, Flag

KINDS = frozenset({"module", "op", "batch"})
_WHAT = ("dtype", "requires_grad", "dimensions")
_REMEMBERED = 1 << 12
_RAISED, _GRAD, _REQUIRES_GRAD = int(Flag.RAISED), int(Flag.GRAD), int(Flag.REQUIRES_GRAD)
_MOST = 4
"""Values of a call that are candidates: with more it is certainly not constant."""

_QUERY = f"""
select run, phase, first, autocast, kind, name, subject = '' as outermost, dtype, shape,
       flags & {int(Flag.REQUIRES_GRAD | Flag.GRAD)} as gradient, count(*) as times
from events
where kind in ('module', 'op', 'batch') and dtype <> '' and not {has(Flag.RAISED)}
group by all
"""


def candidates(events: Events) -> Iterator[Candidate]:
    """What may be constant of the results of a call."""
    seen: dict[tuple[str, str, str], dict[str, list[tuple[dict[str, str], int, int]]]] = defaultdict(
        lambda: defaultdict(list)
    )
    of_torch: dict[str, set[str]] = defaultdict(set)
    outermosts: set[tuple[str, str]] = set()
    for row in events.rows(_QUERY):
        run, phase, rank, autocast, kind, name, outermost, dtype, shape, gradient, times = row
        attributes = {"phase": phase, "rank": rank, "autocast": autocast}
        outermosts |= {(kind, name)} if outermost else set()
        for what in _WHAT:
            value = _value(what, kind, name, outermost, dtype, shape, gradient)
            if value is not None:
                if not _is_own(kind, name, outermost):
                    of_torch[what].add(value)
                seen[kind, name, what][value].append((attributes, run, times))
    tally = Tally("constant_output")
    for (kind, name, what), values in seen.items():
        alike = len(of_torch[what]) < 2 and not _is_own(kind, name, (kind, name) in outermosts)
        if alike or len(values) > _MOST:
            continue
        for value in values:
            terms = {"kind": kind, "call": name, "what": what, "value": value}
            for other, groups in values.items():
                for attributes, run, times in groups:
                    count = {"holds": times} if other == value else {"fails": times}
                    tally.add(terms, attributes, run, **count)
    yield from tally.candidates()


def sentence(terms: Mapping[str, str | int | float], where: Mapping[str, str]) -> str:
    """What people read."""
    verb, _, rest = _said(terms["what"], str(terms["value"])).partition(" ")
    always = f"{verb} always" if verb == "is" else f"always {verb}"
    return f"{_result(terms)} {always} {rest}{under(where)}"


class Watcher(QuietWatcher):
    """Looks at each result."""

    def __init__(self, invariants: Sequence[Invariant]) -> None:
        super().__init__()
        self._by_call = by_call(invariants)
        self.wanted = frozenset(self._by_call)
        self._fine = set[tuple[object, ...]]()  # results that broke nothing: there are few different ones

    def see(self, event: Event, rank: int) -> Iterable[BrokenInvariant]:
        """What its result is and always was not."""
        result = (
            rank,
            event.phase,
            event.kind,
            event.name,
            event.subject == "",
            event.dtype,
            event.shape,
            event.flags,
        )
        if result in self._fine or not event.dtype or event.flags & _RAISED:
            return ()
        found = [*self._judged(event, rank)]
        if not found and len(self._fine) < _REMEMBERED:
            self._fine.add(result)
        return found

    def _judged(self, event: Event, rank: int) -> Iterator[BrokenInvariant]:
        for invariant in self._by_call.get((event.kind, event.name), ()):
            terms = invariant.terms
            value = _value(
                str(terms["what"]),
                event.kind,
                event.name,
                event.subject == "",
                event.dtype,
                event.shape,
                event.flags,
            )
            if value is None or not meets(invariant.where, event, rank):
                continue
            self.seen.add(invariant.id)
            if value != terms["value"]:
                evidence = {"was": value, "always": str(terms["value"])}
                message = f"{_result(terms)} {_said(terms['what'], value)}"
                yield BrokenInvariant(invariant, event, message, evidence, rank)


def _value(
    what: str, kind: str, name: str, outermost: bool, dtype: str, shape: str, flags: int
) -> str | None:
    """What is compared; None where it says nothing."""
    if what == "dtype":
        return dtype if kind != "op" or is_float(dtype) else None
    if what == "requires_grad":
        if kind != "module" or not flags & _GRAD or not is_float(dtype):
            return None
        return "yes" if flags & _REQUIRES_GRAD else "no"
    if _is_own(kind, name, outermost):
        return "; ".join(str(len(sizes)) for _, sizes in outputs(dtype, shape))
    return None


def _is_own(kind: str, name: str, outermost: bool) -> bool:
    """Whether the user made it: a batch, or a module that is the model or of the user's own class."""
    return kind == "batch" or (kind == "module" and (outermost or not name.startswith("torch.")))


def _result(terms: Mapping[str, str | int | float]) -> str:
    call = quoted(str(terms["call"]))
    return f"a batch of {call}" if terms["kind"] == "batch" else f"the result of {call}"


def _said(what: str | float, value: str) -> str:
    if what == "dtype":
        return f"is {value.replace('; ', ' and ')}"
    if what == "requires_grad":
        return "requires a gradient" if value == "yes" else "requires no gradient"
    return f"has {value.replace('; ', ' and ')} dimension{'s' * (value != '1')}"
