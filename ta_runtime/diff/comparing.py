"""Compares runs: walks their records in the order in which cause comes before effect, and says where they part."""

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from ta_lint.core.errors import UsageError
from ta_runtime.diff import firsts
from ta_runtime.diff.causes import Seen
from ta_runtime.diff.comparison import Comparison, Repeated, Setting
from ta_runtime.diff.coverage import missing
from ta_runtime.diff.pairing import UNSEEN, cut, light, paired, unseen
from ta_runtime.diff.settings import SETTINGS
from ta_runtime.diff.walk import BATCH, Walk, drop, leave_idle, leave_out, settle, where
from ta_runtime.runs import Run
from ta_runtime.runs.schema import KINDS

_REPLICATED = (*SETTINGS, "parameter", "buffer", "gradient", "optimizer")
"""What data parallelism keeps equal on all ranks."""
_SHARD = r" \[\d+/\d+ of dim \d+.*\]$"
_OF_ITS_BATCHES = r"\.running_(mean|var)$"


def compare(
    a: Run, b: Run, *, ignore: Sequence[str] = (), strict: bool = False, tolerance: float | None = None
) -> Comparison:
    """Compare two runs, rank by rank, at the steps that both recorded.

    Args:
        ignore: patterns as of a shell, of names such as `SLURM_*` or of kind and name such as `optimizer/*`: not compared.
        strict: count as well what differs and means nothing: names such as `PWD`, generators that nothing draws from.
        tolerance: of what counts as equal, the difference relative to the norm; None: bit for bit, and where digests are
            of different algorithms, as of a CPU and of a GPU, up to the rounding of the dtype.

    Raises:
        UsageError: a file is damaged, or there is nothing that both recorded.
    """
    left, right = light(a), light(b)
    pairs = cut(unseen(paired(left, right), left, right))
    walk = Walk(a, b, pairs, tuple(sorted(a.about.keys() & b.about.keys())), batches=where(right, kind=BATCH))
    walk.notes += missing(a, b, left, right, pairs)
    extra = []
    sizes = [str(next(iter(run.about.values()))["world_size"]) for run in (a, b)]
    if sizes[0] != sizes[1]:
        extra.append(firsts.setting(-1, 0, "configuration", "world_size", *sizes))
        drop(walk, _SHARD, "shards, whose sizes depend on the number of ranks")
    settle(walk, tolerance)
    leave_out(walk, ignore, strict)
    if not strict:
        leave_idle(walk, left, right)
    steps = [set(pc.unique(table["step"]).to_pylist()) - {-1} for table in (left, right)]
    return _comparison(walk, extra, unmatched=all(steps) and not steps[0] & steps[1])


def compare_ranks(
    run: Run, *, ignore: Sequence[str] = (), strict: bool = False, tolerance: float | None = None
) -> Comparison:
    """Compare each rank of a run with its first: what data parallelism keeps equal must be, and batches must not.

    Shards, as of FSDP, are left out. The arguments are those of `compare`.

    Raises:
        UsageError: a file is damaged, or the run has one rank.
    """
    base, *others = sorted(run.about)
    if not others:
        raise UsageError(f"{run.folder}: has only one rank; --ranks is for distributed runs")
    table = light(run)
    of_base = where(table, rank=base)
    parts = []
    for rank in others:
        left = of_base.set_column(0, "rank", pa.repeat(pa.scalar(rank, pa.int32()), len(of_base)))
        right = where(table, rank=rank)
        parts.append(unseen(paired(left, right), left, right))
    pairs = pa.concat_tables(parts).unify_dictionaries().combine_chunks()
    wanted = pa.array(map(KINDS.index, _REPLICATED), pairs["kind"].type)
    walk = Walk(run, run, pairs.filter(pc.is_in(pairs["kind"], value_set=wanted)), (base, *others), base)
    drop(walk, _SHARD, "shards, as of FSDP, of which each rank has its own")
    drop(
        walk,
        _OF_ITS_BATCHES,
        "statistics of each rank's own batches, which DDP replaces by those of rank 0 before the next forward pass"
        " (`SyncBatchNorm` keeps them equal)",
    )
    settle(walk, tolerance)
    leave_out(walk, ignore, strict)
    return _comparison(walk, repeated=tuple(firsts.repeated(where(pairs, kind=BATCH), others)))


def _comparison(
    walk: Walk, extra: Sequence[Setting] = (), *, repeated: tuple[Repeated, ...] = (), unmatched: bool = False
) -> Comparison:
    walk.pairs = walk.pairs.filter(pc.not_equal(walk.pairs["state"], UNSEEN))
    if not len(walk.pairs):
        folders = " and ".join(dict.fromkeys([str(walk.a.folder), str(walk.b.folder)]))
        raise UsageError(
            f"{folders}: no records to compare; make them with `ta-runtime run --record DIR --snapshots 'first 3' SCRIPT`"
        )
    counted = walk.pairs.select(["step", "kind"]).append_column("unlike", pc.cast(walk.unlike, pa.int64()))
    grid = counted.group_by(["step", "kind"]).aggregate([("unlike", "count"), ("unlike", "sum")])
    grid = grid.rename_columns(["step", "kind", "compared", "differing"])
    different = walk.pairs.filter(walk.unlike)
    settings = sorted([*extra, *firsts.settings(different)], key=firsts.weight)
    numbers = firsts.first_number(walk, different)
    first = numbers
    if settings and (numbers is None or firsts.when(settings[0]) < firsts.when(numbers)):
        seen = Seen(across_ranks=walk.base is not None, harmless=numbers is None)
        first = firsts.of_setting(settings[0], seen)
    return Comparison(
        walk.a,
        walk.b,
        walk.ranks,
        first,
        numbers,
        tuple(settings),
        walk.ignored,
        walk.idle,
        grid.sort_by([("step", "ascending"), ("kind", "ascending")]),
        tuple(walk.notes),
        repeated,
        across_ranks=walk.base is not None,
        unmatched=unmatched,
    )
