"""Learns from healthy runs what always holds: counts in one pass for each template, and keeps what never failed."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ta_lint.core.errors import UsageError
from ta_runtime.invariants import replay
from ta_runtime.invariants import support as sure
from ta_runtime.invariants import templates as all_templates
from ta_runtime.invariants.checking import Checker, template
from ta_runtime.invariants.events import MEMORY, Events
from ta_runtime.invariants.invariant import Invariant
from ta_runtime.invariants.preconditions import met, weakest
from ta_runtime.invariants.reduction import reduced
from ta_runtime.invariants.template import Candidate

if TYPE_CHECKING:
    from ta_runtime.runs import Run


def infer(
    traces: Sequence["Run"],
    *,
    support: float = sure.LEAST,
    templates: Collection[str] | None = None,
    memory: str = MEMORY,
    threads: int | None = None,
    known: Iterable[Invariant] = (),
    progress: Callable[[str], object] = lambda template: None,
) -> list[Invariant]:
    """What always held in all traces, each in its weakest form, without what follows from others.

    A counterexample in any trace is enough to drop a candidate or to narrow where it holds: so each trace holds out what
    the others would teach. The method is TrainCheck's (OSDI 2025), with counts in place of comparisons.

    Args:
        traces: the folders of healthy runs of one program, or of several.
        support: the least lower bound of the share of cases in which it holds (`support.wilson`), from 0 to 1.
        templates: names of `templates.NAMES`; None: all.
        memory: what the database may take before it spills, as `2GB`.
        threads: of the database; None: one for each core.
        known: invariants learned before; those that no trace breaks stay, and so does what a person wrote to them.
        progress: called with the name of each template before its pass.

    Returns:
        Invariants in a stable order: by template, then as they read.

    Raises:
        UsageError: there is no such template; DuckDB is not installed; a trace holds no events or is damaged.
    """
    with Events(traces, memory=memory, threads=threads) as events:
        return inferred(events, support=support, templates=templates, known=known, progress=progress)


def inferred(
    events: Events,
    *,
    support: float = sure.LEAST,
    templates: Collection[str] | None = None,
    known: Iterable[Invariant] = (),
    progress: Callable[[str], object] = lambda template: None,
) -> list[Invariant]:
    """`infer`, of traces that are open already."""
    known = list(known)
    found: list[Invariant] = []
    for name in named(templates):
        progress(name)
        found += learned(template(name).candidates(events), support)
    return merged(reduced(found), _unbroken(known, events) if known else [])


def learned(candidates: Iterable[Candidate], support: float) -> Iterator[Invariant]:
    """Those that never fail, under the weakest condition."""
    for candidate in candidates:
        where = weakest(candidate.groups, support)
        if where is not None:
            groups = met(candidate.groups, where)
            holds, runs = sum(group.holds for group in groups), max(group.runs for group in groups)
            yield Invariant(candidate.template, candidate.terms, where, holds, runs)


def merged(found: Iterable[Invariant], known: Iterable[Invariant]) -> list[Invariant]:
    """All of both, each once, with the marks and notes of `known`; in the order of a file. What was known of fewer cases than
    is found now, and has no mark of a person, gives way."""
    by_id = {each.id: each for each in known}
    found = [_with_marks(each, by_id.get(each.id, each)) for each in found]
    wider: dict[tuple[str, str], list[Invariant]] = defaultdict(list)
    for each in found:
        wider[each.template, str(sorted(each.terms.items()))].append(each)
    kept = [
        each
        for each in by_id.values()
        if each.suppressed
        or each.note
        or not any(
            other.where.items() < each.where.items()
            for other in wider[each.template, str(sorted(each.terms.items()))]
        )
    ]
    return sorted({each.id: each for each in (*kept, *found)}.values(), key=_reading)


def _with_marks(invariant: Invariant, known: Invariant) -> Invariant:
    return replace(invariant, suppressed=known.suppressed, note=known.note)


def _reading(invariant: Invariant) -> tuple[str, str, str]:
    return invariant.template, str(list(invariant.terms.values())), str(sorted(invariant.where.items()))


def _unbroken(known: Sequence[Invariant], events: Events) -> list[Invariant]:
    """Those that no trace breaks; of those that a person has suppressed, nothing is asked."""
    broken = {
        violation.invariant.id
        for trace in events.traces
        for violation in replay.violations(trace, Checker(known))
    }
    return [each for each in known if each.id not in broken]


def named(templates: Collection[str] | None) -> list[str]:
    """The templates that are wanted, in their order.

    Raises:
        UsageError: there is no such template.
    """
    wanted = all_templates.NAMES if templates is None else templates
    if unknown := sorted(set(wanted) - set(all_templates.NAMES)):
        raise UsageError(
            f"there is no template `{unknown[0]}`; the templates are {', '.join(all_templates.NAMES)}"
        )
    return [name for name in all_templates.NAMES if name in wanted]
