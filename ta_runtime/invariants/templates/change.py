"""A call always does something to the state of training: a step moves parameters, `zero_grad` clears gradients.

TrainCheck's EventContain, where the child is a change of a variable. In `terms`, `call` does something to `state`, which `is`
then so:

    every parameter, a parameter    changed, of those that require a gradient and have one
    every gradient                  there, as the step finds it; cleared, as `zero_grad` leaves it
    every buffer                    changed or unchanged; `of` a class and its attribute: `torch.nn.BatchNorm1d.running_mean`
    every parameter                 unchanged; `of` a module by its path, of which nothing is trained
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ta_runtime.invariants.attributes import meets
from ta_runtime.invariants.events import NAMES, Events, has
from ta_runtime.invariants.invariant import Invariant
from ta_runtime.invariants.template import Candidate, Group, Violation
from ta_runtime.invariants.words import quoted, under
from ta_runtime.trace.event import Event, Flag

KINDS = frozenset({"loop", "parameter", "buffer", "gradient"})

_KINDS_OF_STATE = ("parameter", "buffer", "gradient")
_ABSENT = Flag.NONE | Flag.ZERO
_ATTRIBUTES = ", ".join(f"call.{name}" for name in NAMES)
_ME = "(call.run, call.rank, call.seq)"

_CALLS = f"""
select run, rank, seq, name, {", ".join(NAMES)} from events where kind = 'loop' and whole and not {has(Flag.RAISED)}
"""

# Of each call and parameter; it is looked at where it requires a gradient and has one.
_TENSORS = f"""
select run, rank, parent, subject,
    coalesce(bool_or({has(Flag.CHANGED)}) filter (kind = 'parameter'), false) as changed,
    coalesce(bool_and({has(Flag.REQUIRES_GRAD)} and not {has(Flag.UNSEEN)}) filter (kind = 'parameter'), false)
        and coalesce(bool_and(not {has(_ABSENT)}) filter (kind = 'gradient'), false) as is_trained,
    bool_or(kind = 'gradient') as has_gradient,
    coalesce(bool_or({has(_ABSENT)}) filter (kind = 'gradient'), false) as cleared,
    coalesce(bool_or({has(Flag.NONE)}) filter (kind = 'gradient'), false) as missing,
from events where kind in ('parameter', 'gradient') and parent >= 0 group by all
"""

_COUNTS = f"""
select call.name, {_ATTRIBUTES}, count(distinct call.run) as runs,
    count(*) filter (trained > 0 and moved > 0), count(*) filter (trained > 0 and moved = 0),
    count(*) filter (trained > 0 and moved = trained), count(*) filter (trained > 0 and moved < trained),
    count(*) filter (gradients > 0 and cleared = gradients), count(*) filter (cleared < gradients),
    count(*) filter (gradients > 0 and missing = 0), count(*) filter (gradients > 0 and missing > 0)
from (
    select run, rank, parent, count(*) filter (is_trained) as trained, count(*) filter (is_trained and changed) as moved,
        count(*) filter (has_gradient) as gradients, count(*) filter (cleared) as cleared,
        count(*) filter (missing) as missing
    from ({_TENSORS}) group by all
) as states join calls_of_loop as call on {_ME} = (states.run, states.rank, states.parent)
group by all
"""
"""Of each call, on how many occasions what `_SAID` says, in its order, was so and was not so."""

_SAID = (
    ("a parameter", "changed"),
    ("every parameter", "changed"),
    ("every gradient", "cleared"),
    ("every gradient", "there"),
)

_BUFFERS = f"""
select call.name, of, {_ATTRIBUTES}, count(distinct call.run), count(*) filter (changed = buffers), count(*) filter (changed = 0),
    count(*)
from (
    select run, rank, parent, name || '.' || split_part(subject, '.', -1) as of, count(*) as buffers,
        count(*) filter ({has(Flag.CHANGED)}) as changed
    from events where kind = 'buffer' and parent >= 0 and not {has(Flag.UNSEEN)} group by all
) as states join calls_of_loop as call on {_ME} = (states.run, states.rank, states.parent)
group by all
"""

_FROZEN = f"""
select call.name, subject, count(distinct call.run), count(*), bool_or({has(Flag.CHANGED | Flag.REQUIRES_GRAD)})
from (select run, rank, parent, subject, flags from events where kind = 'parameter' and not {has(Flag.UNSEEN)}) as states
join calls_of_loop as call on {_ME} = (states.run, states.rank, states.parent)
group by all
"""


def candidates(events: Events) -> Iterator[Candidate]:
    """What each call may always do to states."""
    events.keep("calls_of_loop", _CALLS)
    groups: dict[tuple[str, str, str], list[Group]] = defaultdict(list)
    for row in events.rows(_COUNTS):
        name, values, runs, counts = row[0], row[1:6], row[6], row[7:]
        for (state, how), holds, fails in zip(_SAID, counts[::2], counts[1::2], strict=True):
            if (how == "cleared") == name.endswith(".zero_grad"):
                groups[name, state, how].append(Group(_attributes(values), holds, fails, runs))
    for (call, state, how), found in sorted(groups.items()):
        yield Candidate("change", {"call": call, "state": state, "is": how}, found)
    yield from _of_buffers(events)
    yield from _of_frozen(events)


def _of_buffers(events: Events) -> Iterator[Candidate]:
    groups: dict[tuple[str, str, str], list[Group]] = defaultdict(list)
    for row in events.rows(_BUFFERS):
        name, of, values, (runs, changed, unchanged, total) = row[0], row[1], row[2:7], row[7:]
        for how, holds in (("changed", changed), ("unchanged", unchanged)):
            groups[name, of, how].append(Group(_attributes(values), holds, total - holds, runs))
    for (call, of, how), found in sorted(groups.items()):
        yield Candidate("change", {"call": call, "state": "every buffer", "of": of, "is": how}, found)


def _of_frozen(events: Events) -> Iterator[Candidate]:
    """Of each call the modules, as large as can be, all of whose parameters neither train nor change."""
    by_call: dict[str, dict[str, tuple[int, int, bool]]] = defaultdict(dict)
    for call, subject, runs, count, is_trained in events.rows(_FROZEN):
        by_call[call][subject] = runs, count, is_trained
    for call, parameters in sorted(by_call.items()):
        trained = {
            path for name, (*_, is_trained) in parameters.items() if is_trained for path in _paths(name)
        }
        frozen: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for name, (runs, count, is_trained) in parameters.items():
            if not is_trained:
                frozen[next(path for path in _paths(name) if path not in trained)].append((runs, count))
        for path, counts in sorted(frozen.items()):
            runs, count = max(counts)
            terms = {"call": call, "state": "every parameter", "of": path, "is": "unchanged"}
            yield Candidate("change", terms, [Group({}, count, 0, runs)])


def _paths(name: str) -> Iterator[str]:
    """Of `a.b.weight`: `a`, `a.b`, `a.b.weight`."""
    parts = name.split(".")
    return (".".join(parts[: count + 1]) for count in range(len(parts)))


def _attributes(values: Sequence[str]) -> dict[str, str]:
    """Those that a call of the loop has."""
    phase, rank, _, autocast, _ = values
    return {"phase": phase, "rank": rank, "autocast": autocast}


def sentence(terms: Mapping[str, str | int | float], where: Mapping[str, str]) -> str:
    """What people read."""
    said = _said(str(terms["state"]), str(terms["is"]), str(terms.get("of", "")))
    return f"{quoted(str(terms['call']))} always {said}{under(where)}"


def _said(state: str, how: str, of: str) -> str:
    what = (
        f"the parameters of `{of}`"
        if state == "every parameter"
        else f"the buffer {quoted(of)}"
        if of
        else state
    )
    if of:
        return f"changes {what}" if how == "changed" else f"leaves {what} alone"
    verb = {"changed": "changes", "cleared": "clears", "there": "finds"}[how]
    return f"{verb} {state}{' that has a gradient' if how == 'changed' else ''}"


@dataclass
class _States:
    """The states of one rank as they were told last, by their names."""

    parameters: dict[str, Event] = field(default_factory=dict)
    gradients: dict[str, Event] = field(default_factory=dict)
    buffers: dict[str, Event] = field(default_factory=dict)


class Watcher:
    """Keeps each state as it was told last: those that a call has changed are told before it is over."""

    def __init__(self, invariants: Sequence[Invariant]) -> None:
        self._of: dict[str, list[Invariant]] = defaultdict(list)
        for invariant in invariants:
            self._of[str(invariant.terms["call"])].append(invariant)
        self._told: dict[int, _States] = defaultdict(_States)
        self.seen: set[str] = set()
        self.wanted = frozenset(
            {*((kind, "") for kind in _KINDS_OF_STATE), *(("loop", name) for name in self._of)}
        )

    def see(self, event: Event, rank: int) -> Iterator[Violation]:
        """What a call does not do."""
        told = self._told[rank]
        if event.kind != "loop":
            getattr(told, f"{event.kind}s")[event.subject] = event
            return
        if event.flags & Flag.WHOLE and not event.flags & Flag.RAISED:
            for invariant in self._of.get(event.name, ()):
                if meets(invariant.where, event, rank):
                    yield from self._judged(invariant, event, told, rank)

    def _judged(self, invariant: Invariant, call: Event, told: _States, rank: int) -> Iterator[Violation]:
        looked_at, wrong = _counted(invariant.terms, call, told)
        if not looked_at:
            return
        self.seen.add(invariant.id)
        if len(wrong) == looked_at or (wrong and invariant.terms["state"] != "a parameter"):
            evidence: dict[str, int | str] = {
                "looked_at": looked_at,
                "wrong": len(wrong),
                "first": wrong[0].subject,
            }
            yield Violation(
                invariant, call, f"{quoted(call.name)} {_denied(invariant.terms)}", evidence, rank
            )

    def step_over(self, step: int, rank: int) -> Iterator[Violation]:
        """What is kept is overwritten by the next step."""
        return iter(())

    def over(self) -> Iterator[Violation]:
        """All calls were judged."""
        return iter(())


def _counted(terms: Mapping[str, str | int | float], call: Event, told: _States) -> tuple[int, list[Event]]:
    """How many states of a call an invariant is about, and those of them that are not as it says."""
    how, of = terms["is"], str(terms.get("of", ""))
    if terms["state"] == "every gradient":
        absent = _ABSENT if how == "cleared" else Flag.NONE
        found = _told_in(call, told.gradients.values())
        return len(found), [each for each in found if bool(each.flags & absent) != (how == "cleared")]
    states = told.buffers if terms["state"] == "every buffer" else told.parameters
    found = [each for each in _told_in(call, states.values()) if not each.flags & Flag.UNSEEN]
    if terms["state"] == "every buffer":
        found = [each for each in found if f"{each.name}.{each.subject.rpartition('.')[2]}" == of]
    elif of:
        found = [each for each in found if each.subject == of or each.subject.startswith(f"{of}.")]
    else:
        trained = {
            each.subject for each in _told_in(call, told.gradients.values()) if not each.flags & _ABSENT
        }
        found = [each for each in found if each.flags & Flag.REQUIRES_GRAD and each.subject in trained]
    return len(found), [each for each in found if bool(each.flags & Flag.CHANGED) != (how == "changed")]


def _told_in(call: Event, states: Iterable[Event]) -> list[Event]:
    return [each for each in states if each.parent == call.seq]


def _denied(terms: Mapping[str, str | int | float]) -> str:
    state, how, of = (str(terms.get(key, "")) for key in ("state", "is", "of"))
    if of:
        what = f"parameters of `{of}`" if state == "every parameter" else f"the buffer {quoted(of)}"
        return f"changes {what}" if how == "unchanged" else f"leaves {what} alone"
    if state == "a parameter":
        return "changes no parameter"
    return {
        "changed": "leaves parameters alone that have a gradient",
        "cleared": "leaves gradients in place",
        "there": "finds parameters without a gradient",
    }[how]
