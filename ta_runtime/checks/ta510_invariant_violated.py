"""TA510: a property that always held in healthy runs is violated in this one."""

from collections.abc import Iterator

from ta_runtime.facts import Suspicion, Violation

_SHOWN = 3
"""Other invariants that are named beside the most specific one; of more there is only the number."""


def check_violation(violation: Violation) -> Iterator[Suspicion]:
    evidence: dict[str, float | int | str] = {
        "invariant": violation.invariant,
        "expected": violation.expected,
        **({} if "ranks" in violation.evidence else {"rank": violation.rank}),
        **violation.evidence,
    }
    if violation.others:
        evidence["other invariants"] = len(violation.others)
    yield Suspicion(
        violation.place,
        violation.message,
        evidence,
        subject=violation.subject,
        related=violation.others[:_SHOWN],
    )
