"""What one run recorded and the other did not, and so is not compared: told in sentences."""

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from ta_runtime.diff.pairing import UNSEEN
from ta_runtime.runs import Run
from ta_runtime.runs.schema import KINDS

_SHOWN = 4


def missing(a: Run, b: Run, left: pa.Table, right: pa.Table, pairs: pa.Table) -> Iterator[str]:
    """A sentence, without its end, for each rank, step and kind that only one of two runs has."""
    for run, partner, label in ((a, b, "A"), (b, a, "B")):
        if alone := sorted(run.about.keys() - partner.about.keys()):
            yield f"{listed('rank', alone)} {_is(alone)} in {label} alone"
    steps = [set(pc.unique(table["step"]).to_pylist()) - {-1} for table in (left, right)]
    for own, others, label, last in ((steps[0], steps[1], "A", "B"), (steps[1], steps[0], "B", "A")):
        alone = sorted(own - others)
        late = [step for step in alone if others and step > max(others)]
        if late:
            yield f"{last} ends after step {max(others)}; {listed('step', late)} of {label} {_is(late)} not compared"
        if early := alone[: len(alone) - len(late)]:
            yield f"{listed('step', early)} {_is(early)} in {label} alone, by another schedule"
    yield from _kinds(pairs, steps[0] & steps[1] | {-1}, a.about.keys() & b.about.keys())


def _kinds(pairs: pa.Table, steps: set[int], ranks: set[int]) -> Iterator[str]:
    """Kinds that only one run looked at, at steps and ranks of both."""
    missed = pairs.filter(pc.equal(pairs["state"], UNSEEN))
    missed = missed.filter(pc.is_in(missed["step"], value_set=pa.array(sorted(steps), pa.int64())))
    missed = missed.filter(pc.is_in(missed["rank"], value_set=pa.array(sorted(ranks), pa.int32())))
    for label, row in (("A", "row_a"), ("B", "row_b")):
        own = missed.filter(pc.is_valid(missed[row]))
        by_kind = (
            own.group_by("kind").aggregate([("step", "count_distinct"), ("step", "min")]).sort_by("kind")
        )
        for found in by_kind.to_pylist():
            count = found["step_count_distinct"]
            when = "before the first step" if found["step_min"] < 0 else f"at step {found['step_min']}"
            when += f" and {count - 1} more" if count > 1 else ""
            yield f"{KINDS[found['kind']]} records are in {label} alone {when}"


def counted(records: int) -> str:
    return "1 record" if records == 1 else f"{records:,} records"


def listed(noun: str, numbers: Sequence[int]) -> str:
    """Such as `steps 1, 2, 3, ... 90 (40 in all)`."""
    if len(numbers) == 1:
        return f"{noun} {numbers[0]}"
    if len(numbers) <= _SHOWN + 1:
        return f"{noun}s {', '.join(map(str, numbers))}"
    return f"{noun}s {', '.join(map(str, numbers[:_SHOWN]))}, ... {numbers[-1]} ({len(numbers)} in all)"


def _is(numbers: Sequence[int]) -> str:
    return "is" if len(numbers) == 1 else "are"
