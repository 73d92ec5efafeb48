"""A trace as long as is wanted: a real one, whose second half happens again and again.

Of a run of two epochs that is the evaluation after the first, and the second epoch without its own. What a tracer writes
stays as it is: columns, compression, rows of a part, the mix of events, and how they lie in each other. What differs from
epoch to epoch in a real run does so here: steps, sequence numbers, digests and numbers.
"""

import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset
import pyarrow.parquet as pq
from numpy.typing import NDArray

from ta_runtime.runs.schema import EVENTS
from ta_runtime.runs.writer import ROWS

_SEED = 7


def write(trace: Path, events: int, folder: Path) -> int:
    """Write a trace of so many events, the last part cut as that of a killed run is; returns how many bytes it has."""
    table = events_of(trace)
    steps = pc.max(table["step"]).as_py()
    before = pc.less(table["step"], steps // 2)
    again = table.filter(pc.and_(pc.invert(before), pc.less(table["step"], steps)))
    (folder / "events").mkdir(parents=True)
    shutil.copy(trace / "rank0.json", folder)
    written = 0
    for number, part in enumerate(_parts(table.filter(before), again, events)):
        path = folder / "events" / f"rank0-{number:05}.parquet"
        pq.write_table(part, path, compression="zstd", write_page_checksum=True)
        written += path.stat().st_size
    return written


def events_of(trace: Path) -> pa.Table:
    """All events of a trace in order, each column in one piece."""
    dataset = pyarrow.dataset.dataset(sorted(map(str, (trace / "events").glob("*.parquet"))))
    return dataset.to_table().cast(EVENTS).unify_dictionaries().combine_chunks()


def _parts(first: pa.Table, again: pa.Table, events: int) -> Iterator[pa.Table]:
    """The first half, and then as many parts of whole repetitions of the second as are needed."""
    yield first.slice(0, events)
    each = max(ROWS // again.num_rows, 1)
    left, done = events - first.num_rows, 0
    while left > 0:
        part = _repeated(again, range(done, done + each))
        yield part.slice(0, left)
        left -= part.num_rows
        done += each


def _repeated(again: pa.Table, times: range) -> pa.Table:
    """These repetitions, one after the other."""
    steps, span = (_length(again[first], again[last]) for first, last in (("step", "step"), ("seq", "end")))
    number = np.repeat(np.fromiter(times, np.int64), again.num_rows)
    table = pa.concat_tables([again] * len(times)).combine_chunks()
    random = np.random.default_rng(_SEED + times.start)
    other = random.integers(-(1 << 62), 1 << 62, len(times))[number - times.start]
    parent = table["parent"].to_numpy()
    columns: dict[str, NDArray[np.int64]] = {
        "step": table["step"].to_numpy() + number * steps,
        "seq": table["seq"].to_numpy() + number * span,
        "end": table["end"].to_numpy() + number * span,
        "parent": np.where(parent < 0, parent, parent + number * span),
    }
    for name, values in columns.items():
        table = table.set_column(table.column_names.index(name), name, pa.array(values))
    digests = pc.bit_wise_xor(table["digest"], pa.array(other))
    noise = pa.array(1 + 0.01 * random.standard_normal(table.num_rows))
    table = table.set_column(table.column_names.index("digest"), "digest", digests)
    table = table.set_column(table.column_names.index("value"), "value", pc.multiply(table["value"], noise))
    return table.cast(EVENTS)


def _length(first: pa.ChunkedArray, last: pa.ChunkedArray) -> int:
    length: int = pc.max(last).as_py() - pc.min(first).as_py() + 1
    return length
