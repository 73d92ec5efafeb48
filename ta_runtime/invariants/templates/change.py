"""A call always does something to the state of training: a step moves parameters, `zero_grad` clears gradients.

TrainCheck's EventContain, where the child is a change of a variable. In `terms`, `call` does something to `state`, which `is`
then so:

    a parameter        changed, of those that require a gradient and have one
    every gradient     there, as the step finds it; cleared, as `zero_grad` leaves it
    every buffer       changed or unchanged; `of` a class and its attribute: `torch.nn.BatchNorm1d.running_mean`
    every parameter    unchanged; `of` a module by its path, of which nothing is trained

That every parameter is changed is never learned: a gradient that is rounding noise, or a small learning rate at the end of a
schedule, leaves the bits of one as they are. A step whose learning rate is zero, as in a warm-up, need not change any. That a
step changes some parameter is learned of the runs that were traced: one that goes on for longer, until it has converged to the
last bit, breaks it in good health.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from ta_runtime.invariants.attributes import meets
from ta_runtime.invariants.events import NAMES, Events, has
from ta_runtime.invariants.invariant import Invariant
from ta_runtime.invariants.template import BrokenInvariant, Candidate, Group
from ta_runtime.invariants.words import quoted, under
from ta_runtime.trace.event import Event, Flag

_STATES = ("parameter", "buffer", "gradient")
KINDS = frozenset({"loop", *_STATES})

_NONE, _CHANGED, _UNSEEN, _REQUIRES_GRAD = map(
    int, (Flag.NONE, Flag.CHANGED, Flag.UNSEEN, Flag.REQUIRES_GRAD)
)  # a `Flag` costs more than all else in the run
_ABSENT, _WHOLE, _RAISED = int(Flag.NONE | Flag.ZERO), int(Flag.WHOLE), int(Flag.RAISED)
_ATTRIBUTES = ", ".join(f"call.{name}" for name in NAMES)
_ME = "(call.run, call.rank, call.seq)"

_CALLS = f"""
select run, rank, seq, name, value is not distinct from 0 as rests, {", ".join(NAMES)}
from events where kind = 'loop' and whole and not {has(Flag.RAISED)}
"""

# Of each call and parameter; it is looked at where it requires a gradient and has one.
_TENSORS = f"""
select run, rank, parent, subject,
    coalesce(bool_or({has(Flag.CHANGED)}) filter (kind = 'parameter'), false) as changed,
    coalesce(bool_and({has(Flag.REQUIRES_GRAD)} and not {has(Flag.UNSEEN)}) filter (kind = 'parameter'), false)
        and coalesce(bool_and(not {has(Flag.NONE | Flag.ZERO)}) filter (kind = 'gradient'), false) as is_trained,
    bool_or(kind = 'gradient') as has_gradient,
    coalesce(bool_or({has(Flag.NONE | Flag.ZERO)}) filter (kind = 'gradient'), false) as cleared,
    coalesce(bool_or({has(Flag.NONE)}) filter (kind = 'gradient'), false) as missing,
from events where kind in ('parameter', 'gradient') and parent >= 0 group by all
"""

_COUNTS = f"""
select call.name, {_ATTRIBUTES}, count(distinct call.run) as runs,
    count(*) filter (trained > 0 and moved > 0 and not rests), count(*) filter (trained > 0 and moved = 0 and not rests),
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


class _States:
    """What was told inside of one call, of each state what came last."""

    def __init__(self, call: Event, told: Iterable[Event]) -> None:
        inside = [each for each in told if each.parent == call.seq]
        self.parameters, self.buffers, self.gradients = (
            {each.subject: each for each in inside if each.kind == kind} for kind in _STATES
        )


class Watcher:
    """Keeps the states that are told inside of a call until it is over."""

    def __init__(self, invariants: Sequence[Invariant]) -> None:
        self._of: dict[str, list[Invariant]] = defaultdict(list)
        for invariant in invariants:
            self._of[str(invariant.terms["call"])].append(invariant)
        self._told: dict[int, list[Event]] = defaultdict(list)  # by rank
        self.seen: set[str] = set()
        self.wanted = frozenset((kind, "") for kind in KINDS)

    def see(self, event: Event, rank: int) -> Iterable[BrokenInvariant]:
        """What a call does not do."""
        if event.kind != "loop":
            self._told[rank].append(event)
            return ()
        told = self._told[rank]
        if not told:
            return ()
        self._told[rank] = [each for each in told if each.parent < event.seq]
        invariants = self._of.get(event.name)
        if invariants is None or not event.flags & _WHOLE or event.flags & _RAISED:
            return ()
        inside = _States(event, told)
        return [
            violation
            for invariant in invariants
            if meets(invariant.where, event, rank)
            for violation in self._judged(invariant, event, inside, rank)
        ]

    def _judged(
        self, invariant: Invariant, call: Event, inside: _States, rank: int
    ) -> Iterator[BrokenInvariant]:
        looked_at, wrong = _counted(invariant.terms, call, inside)
        if not looked_at:
            return
        self.seen.add(invariant.id)
        if len(wrong) == looked_at or (wrong and invariant.terms["state"] != "a parameter"):
            evidence: dict[str, int | str] = {
                "looked_at": looked_at,
                "wrong": len(wrong),
                "first": wrong[0].subject,
            }
            yield BrokenInvariant(
                invariant, call, f"{quoted(call.name)} {_denied(invariant.terms)}", evidence, rank
            )

    def step_over(self, step: int, rank: int) -> Iterator[BrokenInvariant]:
        """What was told outside of all calls goes."""
        self._told[rank].clear()
        return iter(())

    def over(self) -> Iterator[BrokenInvariant]:
        """All calls were judged."""
        return iter(())


def _counted(terms: Mapping[str, str | int | float], call: Event, inside: _States) -> tuple[int, list[Event]]:
    """How many states of a call an invariant is about, and those of them that are not as it says."""
    state, how, of = terms["state"], terms["is"], str(terms.get("of", ""))
    if state == "every gradient":
        absent = _ABSENT if how == "cleared" else _NONE
        found = list(inside.gradients.values())
        return len(found), [each for each in found if bool(each.flags & absent) != (how == "cleared")]
    states = inside.buffers if state == "every buffer" else inside.parameters
    found = [each for each in states.values() if not each.flags & _UNSEEN]
    if state == "every buffer":
        found = [each for each in found if f"{each.name}.{each.subject.rpartition('.')[2]}" == of]
    elif state == "every parameter":
        found = [each for each in found if each.subject == of or each.subject.startswith(f"{of}.")]
    elif call.value == 0:
        found = []
    else:
        trained = {name for name, each in inside.gradients.items() if not each.flags & _ABSENT}
        found = [each for each in found if each.flags & _REQUIRES_GRAD and each.subject in trained]
    return len(found), [each for each in found if bool(each.flags & _CHANGED) != (how == "changed")]


def _denied(terms: Mapping[str, str | int | float]) -> str:
    state, how, of = (str(terms.get(key, "")) for key in ("state", "is", "of"))
    if of:
        what = f"parameters of `{of}`" if state == "every parameter" else f"the buffer {quoted(of)}"
        return f"changes {what}" if how == "unchanged" else f"leaves {what} alone"
    return {
        "changed": "changes no parameter",
        "cleared": "leaves gradients in place",
        "there": "finds parameters without a gradient",
    }[how]
