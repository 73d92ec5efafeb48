"""The records of two runs side by side, column by column: no row becomes a Python object until it is asked for."""

import functools
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from ta_lint.core.errors import UsageError
from ta_runtime.runs import Run
from ta_runtime.runs.schema import KINDS

EQUAL, DIFFERS, ONLY_A, ONLY_B, UNSURE, UNSEEN = range(6)
"""How two records of one thing compare. UNSURE: their digests cannot be compared, so their values decide; UNSEEN: of this
kind, step or rank the other run has no record at all."""

_LIGHT = ("step", "rank", "kind", "order", "name", "text", "dtype", "shape", "digest", "algorithm")
_WHICH = ("rank", "step", "kind", "name", "occurrence")
"""What makes two records those of one thing. A layer that ran twice in a step has two occurrences."""
_COMPARED = ("text", "dtype", "shape", "digest", "algorithm")


def light(run: Run) -> pa.Table:
    """Of each record what tells whether it is equal to another, its `occurrence`, and its `row` in `records`.

    Kinds are numbers, the places of their names in `KINDS`.
    """
    table = run.read("records", _LIGHT).combine_chunks()
    known = pc.index_in(table["kind"].cast(pa.string()), pa.array(KINDS))
    if known.null_count:
        odd = table["kind"].filter(pc.is_null(known))[0]
        raise UsageError(f"{run.folder}: holds records of the kind {odd}, which a newer version wrote")
    columns = {
        "rank": table["rank"],
        "row": count(len(table)),
        "step": table["step"],
        "kind": known,
        "order": pc.fill_null(table["order"], 0),
        "name": table["name"],
        "text": table["text"],
        "dtype": table["dtype"],
        "shape": pc.binary_join(table["shape"].cast(pa.list_(pa.string())), "x"),
        "digest": table["digest"],
        "algorithm": table["algorithm"],
    }
    return _numbered(pa.table(columns))


def paired(a: pa.Table, b: pa.Table) -> pa.Table:
    """Each record of either with its partner in the other, and how the two compare: `state`."""
    (names_a, names_b), words = _coded([a["name"], b["name"]])
    left, right = (
        table.set_column(table.column_names.index("name"), "name", names)
        for table, names in ((a, names_a), (b, names_b))
    )
    rows_a, rows_b = (
        table.select(_WHICH).append_column("place", count(len(table))) for table in (left, right)
    )
    joined = rows_a.join(rows_b, list(_WHICH), None, "full outer", "_a", "_b").combine_chunks()
    a, b = a.take(joined["place_a"]), b.take(joined["place_b"])
    kept = {
        "rank": joined["rank"],
        "step": joined["step"],
        "kind": joined["kind"],
        "order": pc.coalesce(a["order"], b["order"]),
        "name": pa.DictionaryArray.from_arrays(joined["name"].combine_chunks().cast(pa.int32()), words),
        "occurrence": joined["occurrence"],
        "tensor": pc.and_(pc.is_valid(a["dtype"]), pc.is_valid(b["dtype"])),
        "text_a": a["text"],
        "text_b": b["text"],
        "row_a": a["row"],
        "row_b": b["row"],
        "state": _states(a, b),
    }
    return pa.table(kept)


def unseen(pairs: pa.Table, a: pa.Table, b: pa.Table) -> pa.Table:
    """The same, where what one run did not look at in a step is UNSEEN instead of ONLY in the other."""
    state = pairs["state"]
    for only, other in ((ONLY_A, b), (ONLY_B, a)):
        looked = pc.is_in(_moment(pairs), value_set=pc.unique(_moment(other)))
        missed = pc.and_(pc.equal(state, only), pc.invert(looked))
        state = pc.if_else(missed, pa.scalar(UNSEEN, pa.int8()), state)
    return pairs.set_column(pairs.column_names.index("state"), "state", state)


def cut(pairs: pa.Table) -> pa.Table:
    """The same, where a run that ended within a step, as one that was stopped, does not miss what it did not come to."""
    state = pairs["state"]
    for only, own, other in ((ONLY_A, "row_a", "row_b"), (ONLY_B, "row_b", "row_a")):
        ends = [pc.max(pairs["step"].filter(pc.is_valid(pairs[row]))).as_py() for row in (own, other)]
        if None in ends or ends[0] <= ends[1]:
            continue
        last = pc.equal(pairs["step"], ends[1])
        if pc.any(pc.and_(last, pc.and_(pc.equal(state, UNSEEN), pc.is_valid(pairs[own])))).as_py():
            state = pc.if_else(pc.and_(last, pc.equal(state, only)), pa.scalar(UNSEEN, pa.int8()), state)
    return pairs.set_column(pairs.column_names.index("state"), "state", state)


def _states(a: pa.Table, b: pa.Table) -> pa.ChunkedArray:
    """How the rows of two tables compare, one by one; of what a table lacks all is null."""
    same = {column: _same(a[column], b[column]) for column in _COMPARED}
    plain = functools.reduce(pc.and_, (same["text"], same["dtype"], same["shape"]))
    digested = pc.and_(pc.is_valid(a["digest"]), pc.is_valid(b["digest"]))
    comparable = pc.or_(pc.is_null(a["dtype"]), pc.and_(digested, same["algorithm"]))
    number = functools.partial(pa.scalar, type=pa.int8())
    state = pc.if_else(pc.and_(plain, same["digest"]), number(EQUAL), number(DIFFERS))
    state = pc.if_else(pc.and_(plain, pc.invert(comparable)), number(UNSURE), state)
    state = pc.if_else(pc.is_null(b["row"]), number(ONLY_A), state)
    return pc.if_else(pc.is_null(a["row"]), number(ONLY_B), state)


def _same(a: pa.ChunkedArray, b: pa.ChunkedArray) -> pa.ChunkedArray:
    """Whether two columns agree, row by row; two that are null do."""
    a, b = a.cast(pa.string()), b.cast(pa.string())
    both = pc.and_(pc.is_null(a), pc.is_null(b))
    return pc.or_(pc.fill_null(pc.equal(a, b), False), both)


def _moment(table: pa.Table) -> pa.ChunkedArray:
    """Rank, step and kind as one number, for which steps may go up to 2**44."""
    place = pc.add(pc.multiply(table["step"], len(KINDS)), pc.cast(table["kind"], pa.int64()))
    return pc.add(pc.multiply(pc.cast(table["rank"], pa.int64()), 1 << 48), place)


def _numbered(table: pa.Table) -> pa.Table:
    """With the column `occurrence`: how often there was a record of that name before in its rank, step and kind."""
    codes = _codes(table["name"])
    keys = table.select(["rank", "step", "kind", "order", "row"]).append_column("code", codes)
    by = [(key, "ascending") for key in ("rank", "step", "kind", "code", "order", "row")]
    places = pc.sort_indices(keys, by)
    table, keys = table.take(places), keys.take(places).combine_chunks()
    fresh = pa.array([True] * min(1, len(table)), pa.bool_())
    if len(table) > 1:
        unlike = [
            pc.not_equal(column[1:], column[:-1])
            for column in (keys[key].combine_chunks() for key in ("rank", "step", "kind", "code"))
        ]
        fresh = pa.concat_arrays([fresh, functools.reduce(pc.or_, unlike)])
    place = count(len(table))
    first = pc.cumulative_max(pc.if_else(fresh, place, 0))
    return table.append_column("occurrence", pc.subtract(place, first))


def count(rows: int) -> pa.Array:
    """0, 1, 2, ..."""
    return pc.subtract(pc.cumulative_sum(pa.repeat(pa.scalar(1, pa.int64()), rows)), 1)


def _coded(columns: Sequence[pa.ChunkedArray]) -> tuple[list[pa.Array], pa.Array]:
    """Columns of words as numbers, and the dictionary of all."""
    chunks = [chunk for column in columns for chunk in column.chunks]
    together = pa.chunked_array(chunks, columns[0].type).unify_dictionaries()
    if not together.num_chunks:
        return [pa.array([], pa.int64()) for _ in columns], pa.array([], pa.string())
    codes = _codes(together)
    middle = len(columns[0])
    return [codes[:middle], codes[middle:]], together.chunk(0).dictionary


def _codes(words: pa.ChunkedArray) -> pa.Array:
    """Words of one dictionary as numbers."""
    codes = [chunk.indices.cast(pa.int64()) for chunk in words.chunks]
    return pa.concat_arrays(codes) if codes else pa.array([], pa.int64())
