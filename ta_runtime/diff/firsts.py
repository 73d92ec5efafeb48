"""The first record that differs, and the settings that do."""

import re
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ta_runtime.diff.causes import Seen, follows
from ta_runtime.diff.comparison import Divergence, Record, Repeated, Setting
from ta_runtime.diff.pairing import EQUAL, UNSEEN, count
from ta_runtime.diff.settings import effect
from ta_runtime.diff.sizes import size
from ta_runtime.diff.walk import ACTIVATION, BATCH, DIFFERENT, FIRST_NUMBER, GRADIENT, RNG, Walk, where
from ta_runtime.runs import Run
from ta_runtime.runs.schema import KINDS

_MASKED = re.compile(r"<masked \w+, key (\w+)>")


def settings(different: pa.Table) -> Iterator[Setting]:
    """Each setting that differs, where it does so first."""
    rows = different.filter(pc.less(different["kind"], FIRST_NUMBER))
    rows = rows.sort_by([(key, "ascending") for key in ("step", "kind", "order", "rank", "state")])
    places = (
        rows.append_column("place", count(len(rows))).group_by(["kind", "name"]).aggregate([("place", "min")])
    )
    for row in rows.take(pa.array(sorted(places["place_min"].to_pylist()), pa.int64())).to_pylist():
        if _otherwise_masked(row["text_a"], row["text_b"]):
            continue
        yield setting(row["step"], row["rank"], KINDS[row["kind"]], row["name"], row["text_a"], row["text_b"])


def _otherwise_masked(a: str | None, b: str | None) -> bool:
    """Whether both are secrets that were masked with different keys, so that nobody can tell whether they differ."""
    keys = [match[1] if text is not None and (match := _MASKED.fullmatch(text)) else None for text in (a, b)]
    return None not in keys and keys[0] != keys[1]


def first_number(walk: Walk, different: pa.Table) -> Divergence | None:
    rows = different.filter(pc.greater_equal(different["kind"], FIRST_NUMBER))
    if not len(rows):
        return None
    for column in ("step", "kind"):
        rows = rows.filter(pc.equal(rows[column], pc.min(rows[column])))
    # a backward pass begins at the last layer; of the generators torch's, which models draw from, are last
    backwards = rows["kind"][0].as_py() in (RNG, GRADIENT)
    direction = "descending" if backwards else "ascending"
    rows = rows.sort_by([("order", direction), ("rank", "ascending"), ("state", "ascending")])
    found = rows.slice(0, 1).to_pylist()[0]
    place = (found["step"], found["rank"], KINDS[found["kind"]], found["name"], found["occurrence"])
    here = walk.only(step=found["step"], rank=found["rank"])
    own = where(here, kind=found["kind"])
    differing = pc.sum(pc.is_in(own["state"], value_set=DIFFERENT)).as_py()
    a = _record(walk.a, found, found["rank"] if walk.base is None else walk.base)
    b = _record(walk.b, found, found["rank"])
    sized = size(a, b) if a is not None and b is not None else None
    steps = walk.pairs["step"]
    earlier = steps.filter(pc.and_(pc.less(steps, found["step"]), pc.greater_equal(steps, 0)))
    seen = Seen(
        equal=frozenset(KINDS[kind] for kind in pc.unique(here["kind"]).to_pylist() if kind < found["kind"]),
        idle=walk.idle,
        previous=pc.max(earlier).as_py(),
        differing=differing,
        compared=len(own),
        elsewhere=_elsewhere(walk, a, found),
        across_ranks=walk.base is not None,
        last=_last(own, found),
        module=_module(walk, found),
    )
    cause = follows(*place[2:4], found["step"], a, b, sized, seen)
    same = where(rows, name=found["name"], occurrence=found["occurrence"])
    ranks = tuple(sorted(same["rank"].to_pylist()))
    return Divergence(*place, _short(a), _short(b), cause, sized, differing, len(own), ranks)


def _record(run: Run, found: dict[str, Any], rank: int) -> dict[str, Any] | None:
    """The whole record of what was found, as a row; None if the run has none."""
    here = (pc.field("step") == found["step"]) & (pc.field("rank") == rank)
    rows = run.read("records", where=here)
    rows = where(rows, kind=KINDS[found["kind"]], name=found["name"]).sort_by("order")
    rows = rows.slice(found["occurrence"], 1).to_pylist()
    return rows[0] if rows else None


def _elsewhere(walk: Walk, a: dict[str, Any] | None, found: dict[str, Any]) -> tuple[int, int] | None:
    """The step and rank at which B has the batch that A has here."""
    if walk.batches is None or a is None or found["kind"] != BATCH or a["digest"] is None:
        return None
    same = where(walk.batches, name=found["name"], digest=a["digest"]).sort_by("step").slice(0, 1).to_pylist()
    return (same[0]["step"], same[0]["rank"]) if same else None


def _last(own: pa.Table, found: dict[str, Any]) -> str:
    """The activation before the one that was found."""
    before = own.filter(pc.less(own["order"], found["order"]))
    if found["kind"] != ACTIVATION or not len(before):
        return ""
    name: str = before.sort_by([("order", "descending")])["name"][0].as_py()
    return name


def _module(walk: Walk, found: dict[str, Any]) -> str:
    """What the module is in A whose output was found, such as `Dropout(p=0.5)`."""
    name = "module." + found["name"].partition("#")[0].partition(":")[0]
    known = walk.a.read("records", ("kind", "name", "text"), pc.field("step") <= found["step"])
    texts = where(known, kind="configuration", name=name)["text"].to_pylist()
    return texts[-1] or "" if texts else ""


def repeated(batches: pa.Table, ranks: Sequence[int]) -> Iterator[Repeated]:
    """The ranks that have the batches of the first."""
    for rank in ranks:
        own = where(batches, rank=rank)
        own = own.filter(pc.not_equal(own["state"], UNSEEN))
        own = own.append_column("other", pc.cast(pc.not_equal(own["state"], EQUAL), pa.int64()))
        steps = own.group_by("step").aggregate([("other", "sum")])
        same = steps.filter(pc.equal(steps["other_sum"], 0))["step"]
        if len(same):
            yield Repeated(rank, pc.min(same).as_py(), len(same), len(steps))


def setting(step: int, rank: int, kind: str, name: str, a: str | None, b: str | None) -> Setting:
    return Setting(step, rank, kind, name, a, b, effect(kind, name))


def of_setting(setting: Setting, seen: Seen) -> Divergence:
    a, b = (Record(text) if text is not None else None for text in (setting.a, setting.b))
    cause = follows(setting.kind, setting.name, setting.step, None, None, None, seen)
    return Divergence(
        setting.step, setting.rank, setting.kind, setting.name, 0, a, b, cause, ranks=(setting.rank,)
    )


def _short(row: dict[str, Any] | None) -> Record | None:
    if row is None:
        return None
    shape = tuple(row["shape"]) if row["shape"] is not None else None
    return Record(row["text"], row["dtype"], shape, row["digest"], row["algorithm"], row["norm"])


def when(found: Setting | Divergence) -> tuple[int, int]:
    return found.step, KINDS.index(found.kind)


def weight(setting: Setting) -> tuple[int, bool, int]:
    """What comes first, and before others of the same time what is known to matter."""
    return setting.step, setting.effect is None, KINDS.index(setting.kind)
