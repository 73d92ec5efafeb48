"""What two runs, or the ranks of one, have in common, and where they part."""

from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc

from ta_runtime.diff.settings import SETTINGS
from ta_runtime.diff.sizes import Size
from ta_runtime.runs import Run
from ta_runtime.runs.schema import KINDS


@dataclass(frozen=True, slots=True)
class Record:
    """What one run has of it."""

    text: str | None
    dtype: str | None = None
    shape: tuple[int, ...] | None = None
    digest: str | None = None
    algorithm: str | None = None
    norm: float | None = None


@dataclass(frozen=True, slots=True)
class Divergence:
    """One thing that differs; of a run that has no record of it, `a` or `b` is None."""

    step: int
    rank: int
    kind: str
    name: str
    occurrence: int
    """How often the run had recorded it before in this step: of a layer that runs twice."""
    a: Record | None
    b: Record | None
    cause: str
    """What follows from it: sentences."""
    size: Size | None = None
    differing: int = 1
    """Records of its kind that differ at its step and rank."""
    compared: int = 1
    """Of how many."""
    ranks: tuple[int, ...] = ()
    """On which it differs at this step."""

    @property
    def change(self) -> str:
        if self.a is None or self.b is None:
            return "only in B" if self.a is None else "only in A"
        if self.a.dtype != self.b.dtype:
            return "dtype"
        if self.a.shape != self.b.shape:
            return "shape"
        return "setting" if self.a.dtype is None else "values"


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting that differs, first at `step` and `rank`."""

    step: int
    rank: int
    kind: str
    name: str
    a: str | None
    b: str | None
    effect: str | None
    """What it is known to change."""


@dataclass(frozen=True, slots=True)
class Repeated:
    """A rank that trains on the batches of the first: first at `step`, at `steps` steps of `compared`."""

    rank: int
    step: int
    steps: int
    compared: int


@dataclass(frozen=True, slots=True)
class Count:
    """Records of one kind: how many were compared, and how many differ, the first at `step`."""

    kind: str
    compared: int
    differing: int
    step: int


@dataclass(frozen=True)
class Comparison:
    """What `compare` and `compare_ranks` find."""

    a: Run
    b: Run
    """Of ranks, the same run."""
    ranks: tuple[int, ...]
    """That were compared."""
    first: Divergence | None
    """The first record that differs, be it a setting."""
    numbers: Divergence | None
    """The first that is no setting."""
    settings: tuple[Setting, ...]
    """Those that differ, what is known to matter first."""
    ignored: tuple[str, ...]
    """Names of settings that differ and are not counted, as they always do."""
    idle: tuple[str, ...]
    """Random generators that differ and are not counted, as nothing draws from them while the runs train."""
    grid: pa.Table
    """By `step` and `kind`, a number of `KINDS`, how many records were `compared`, and how many are `differing`."""
    notes: tuple[str, ...] = ()
    """What could not be compared, and what was compared otherwise: sentences."""
    repeated: tuple[Repeated, ...] = ()
    across_ranks: bool = False
    unmatched: bool = False
    """The runs recorded no step in common."""

    @property
    def equal(self) -> bool:
        return self.first is None and not self.repeated and not self.unmatched

    @cached_property
    def steps(self) -> list[int]:
        """Those that were compared, without the time before the first."""
        steps = pc.unique(self.grid["step"])
        return sorted(steps.filter(pc.greater_equal(steps, 0)).to_pylist())

    @property
    def equal_through(self) -> int | None:
        """The last step that was compared before the numbers differ, or before the end."""
        before = [step for step in self.steps if self.numbers is None or step < self.numbers.step]
        return before[-1] if before else None

    @property
    def equal_before(self) -> list[Count]:
        """What is equal at the step of the first different number: the kinds that come before its own."""
        if self.numbers is None:
            return []
        here = self.grid.filter(pc.equal(self.grid["step"], self.numbers.step))
        end = KINDS.index(self.numbers.kind)
        return [count for count in self._by_kind(here) if KINDS.index(count.kind) < end]

    @property
    def later(self) -> list[Count]:
        """Numbers that differ beside the first, by kind."""
        found = [count for count in self._by_kind(self.grid) if count.kind not in SETTINGS]
        if self.numbers is not None:
            own = self.numbers.kind
            found = [
                Count(c.kind, c.compared, c.differing - len(self.numbers.ranks), c.step)
                if c.kind == own
                else c
                for c in found
            ]
        return [count for count in found if count.differing > 0]

    @property
    def counts(self) -> list[Count]:
        """All that was compared, by kind."""
        return self._by_kind(self.grid)

    def _by_kind(self, grid: pa.Table) -> list[Count]:
        counts = grid.group_by("kind").aggregate([("compared", "sum"), ("differing", "sum")])
        unlike = grid.filter(pc.greater(grid["differing"], 0)).group_by("kind").aggregate([("step", "min")])
        steps = dict(zip(unlike["kind"].to_pylist(), unlike["step_min"].to_pylist(), strict=True))
        rows = counts.sort_by("kind").to_pylist()
        return [
            Count(KINDS[row["kind"]], row["compared_sum"], row["differing_sum"], steps.get(row["kind"], -1))
            for row in rows
        ]
