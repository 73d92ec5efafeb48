"""What of two runs is compared, and what counts as different: the pairs of records on their way to a comparison."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from ta_runtime.diff.coverage import counted
from ta_runtime.diff.pairing import DIFFERS, EQUAL, ONLY_A, ONLY_B, UNSEEN, UNSURE
from ta_runtime.diff.rounding import close
from ta_runtime.diff.settings import matches, varies
from ta_runtime.runs import Run
from ta_runtime.runs.schema import KINDS

DIFFERENT = pa.array([DIFFERS, ONLY_A, ONLY_B], pa.int8())
RNG, BATCH, PARAMETER, BUFFER, ACTIVATION, GRADIENT = (
    KINDS.index(kind) for kind in ("rng", "batch", "parameter", "buffer", "activation", "gradient")
)
FIRST_NUMBER = RNG
"""Kinds before it are settings."""

_SLICE = 1 << 16  # rows whose values are compared at once
_BEGUN = pa.array([BATCH, PARAMETER, BUFFER], pa.int32())
_SEEDED_APART = pa.array(["python", "numpy"])  # generators that `torch.manual_seed` leaves alone


@dataclass
class Walk:
    """The pairs of records on their way to a comparison."""

    a: Run
    b: Run
    pairs: pa.Table
    ranks: tuple[int, ...]
    base: int | None = None
    """The rank that the others are compared with; None where two runs are."""
    batches: pa.Table | None = None
    """The records of B's batches."""
    ignored: tuple[str, ...] = ()
    idle: tuple[str, ...] = ()
    """Random generators that differ and that nothing draws from."""
    notes: list[str] = field(default_factory=list)

    def only(self, **columns: object) -> pa.Table:
        """The pairs that have these values."""
        return where(self.pairs, **columns)

    @property
    def unlike(self) -> pa.ChunkedArray:
        """Which pairs differ."""
        return pc.is_in(self.pairs["state"], value_set=DIFFERENT)


def where(table: pa.Table, **columns: object) -> pa.Table:
    """The rows that have these values."""
    for column, value in columns.items():
        cells = table[column]
        cells = cells.cast(pa.string()) if pa.types.is_dictionary(cells.type) else cells
        table = table.filter(pc.equal(cells, value))
    return table


def settle(walk: Walk, tolerance: float | None) -> None:
    """Decide by values where digests cannot, or where a tolerance allows for differences."""
    state = walk.pairs["state"]
    unsure = pc.equal(state, UNSURE)
    asked = unsure
    if tolerance is not None:
        asked = pc.or_(unsure, pc.and_(pc.equal(state, DIFFERS), walk.pairs["tensor"]))
    rows = pc.indices_nonzero(asked).cast(pa.int64())
    if not len(rows):
        return
    columns = ("dtype", "norm", "values")
    values_a = walk.a.read("records", columns)
    values_b = values_a if walk.b is walk.a else walk.b.read("records", columns)
    chosen = walk.pairs.select(["row_a", "row_b"]).take(rows)
    parts = [chosen.slice(start, _SLICE) for start in range(0, len(chosen), _SLICE)]
    results = [close(values_a.take(part["row_a"]), values_b.take(part["row_b"]), tolerance) for part in parts]
    near, told = (pa.chunked_array([result[index] for result in results]) for index in (0, 1))
    told = pc.or_(told, pc.invert(unsure.take(rows)))
    equal, differs, unseen_ = (pa.scalar(number, pa.int8()) for number in (EQUAL, DIFFERS, UNSEEN))
    settled = pc.if_else(near, equal, pc.if_else(told, differs, unseen_))
    state = pc.replace_with_mask(state.combine_chunks(), asked.combine_chunks(), settled.combine_chunks())
    walk.pairs = walk.pairs.set_column(walk.pairs.column_names.index("state"), "state", state)
    if digests := pc.sum(unsure).as_py():
        walk.notes.append(
            f"the digests of {counted(digests)} cannot be compared, as they are of different algorithms, such as of a CPU and"
            " of a GPU: norms and the elements that are kept were, up to the rounding of their dtype"
        )
    if lost := pc.sum(pc.invert(told)).as_py():
        walk.notes.append(f"of {counted(lost)} nothing is recorded that could be compared")


def drop(walk: Walk, names: str, why: str) -> None:
    """Leave out the records whose names match; it is told if some of them differ."""
    those = pc.match_substring_regex(walk.pairs["name"].cast(pa.string()), names)
    if number := pc.sum(pc.and_(those, walk.unlike)).as_py():
        walk.notes.append(
            f"{counted(number)} that {'differs is' if number == 1 else 'differ are'} left out: {why}"
        )
    walk.pairs = walk.pairs.filter(pc.invert(those))


def leave_out(walk: Walk, ignore: Sequence[str], strict: bool) -> None:
    """Drop the records that are not to be compared, and count settings that always differ as unseen."""
    unlike = walk.pairs.filter(pc.is_in(walk.pairs["state"], value_set=DIFFERENT))
    names = unlike.group_by(["kind", "name"]).aggregate([]).to_pylist()
    dropped = [
        (row["kind"], row["name"]) for row in names if matches(KINDS[row["kind"]], row["name"], ignore)
    ]
    always = (
        []
        if strict
        else [(row["kind"], row["name"]) for row in names if varies(KINDS[row["kind"]], row["name"])]
    )
    walk.ignored = tuple(sorted({name for kind, name in always if (kind, name) not in dropped}))
    for kind in {kind for kind, _ in (*dropped, *always)}:
        those = pa.array([name for each, name in (*dropped, *always) if each == kind])
        out = pc.and_(
            pc.equal(walk.pairs["kind"], kind),
            pc.is_in(walk.pairs["name"].cast(pa.string()), value_set=those),
        )
        walk.pairs = walk.pairs.filter(pc.invert(out))


def leave_idle(walk: Walk, left: pa.Table, right: pa.Table) -> None:
    """Leave out random generators that differ and cannot have changed a number: nothing draws from them.

    A program that seeds torch alone begins with another state of NumPy's generator each time, which means nothing if it
    is the same at all steps of a run: unless all that differs at the first step follows from it.
    """
    rng = walk.pairs.filter(pc.and_(walk.unlike, pc.equal(walk.pairs["kind"], RNG)))
    differing = set(pc.unique(rng["name"].cast(pa.string())).to_pylist())
    idle = differing & _still(left) & _still(right)
    if not idle or idle != differing:
        return
    first = pc.min(walk.pairs["step"].filter(pc.greater_equal(walk.pairs["step"], 0)))
    begun = pc.and_(pc.equal(walk.pairs["step"], first), pc.is_in(walk.pairs["kind"], value_set=_BEGUN))
    if not idle <= set(_SEEDED_APART.to_pylist()) and pc.any(pc.and_(walk.unlike, begun)).as_py():
        return
    walk.idle = tuple(sorted(idle))
    drawn = pc.is_in(walk.pairs["name"].cast(pa.string()), value_set=pa.array(walk.idle))
    walk.pairs = walk.pairs.filter(pc.invert(pc.and_(pc.equal(walk.pairs["kind"], RNG), drawn)))


def _still(records: pa.Table) -> set[str]:
    """The random generators whose state is the same at all steps, of which there are several."""
    rng = where(records, kind=RNG)
    if pc.count_distinct(rng["step"]).as_py() < 2:
        return set()
    states = rng.group_by(["rank", "name"]).aggregate([("digest", "count_distinct")])
    moved = states.filter(pc.greater(states["digest_count_distinct"], 1))["name"].cast(pa.string())
    return set(states["name"].cast(pa.string()).to_pylist()) - set(moved.to_pylist())
