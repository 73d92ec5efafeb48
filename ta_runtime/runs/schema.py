"""What lies in the folder of a run.

    rank0.json                         who wrote it, when, with what; one file for each rank
    metrics/rank0-00000.parquet ...    numbers by step and key, such as `step/loss` or `gradient/head.weight/norm`
    records/rank0-00000.parquet ...    what a snapshot saw of each tensor and setting
    events/rank0-00000.parquet ...     what the run did, in order; `ta_runtime.trace.event` says what the columns mean
    findings.json                      the report, of rank 0 for all once they were gathered; of others findings.rank1.json

`enable(record=...)` writes these metrics, by the numbers that the audit reads anyway; what it did not read is not there:

    step/loss                          what `backward` was called on, the mean of micro-batches, without a GradScaler's factor
    step/gradient_norm                 L2, before clipping; under FSDP2 after it, and of this rank's shard alone
    step/learning_rate                 of the first group of parameters
    step/seconds                       since the end of the step before
    step/waited_seconds                of these, those in which the loop waited for a `DataLoader`
    gradient/{parameter}/norm          L2, as the optimizer sees it: on each 10th step that is looked at, and on audited ones
    activation/{module}/rms            root mean square of the output of a module without children: on audited steps
    parameter/{parameter}/norm         L2, after the step: on the first four audited ones and each fourth after them
    memory/process, memory/device      bytes: of the process now; of tensors on a CUDA device the most so far: on each 10th step
    logged/{name}                      what the script logs by a tracker or `ta_runtime.log`, the last value of a step
    update/{parameter}/ratio           norm of the change over norm before it, of weights of two or more dimensions: on these

The keys of a second optimizer end with `/1`, as `step/loss/1`, those of a third with `/2`. Of several models that train at
once, all but the first have the name of their class before their own, as `gradient/Discriminator.fc.weight/norm`.

A table is a folder of Parquet files, each whole or not there at all: what a killed job wrote is readable up to its last
part. DuckDB, Polars and pandas read such a folder as one table: `select * from 'RUN/metrics/*.parquet'`.
"""

from typing import Annotated, Any, NotRequired, TypedDict, get_type_hints

import pyarrow as pa
from msgspec import Meta

from ta_lint.core.json_report import Item

VERSION = 1


class LookedAt(TypedDict):
    """How much of the run this rank looked at, once it is over: `coverage.Coverage`."""

    steps: int
    full: int
    unjudged: list[str]


class About(TypedDict):
    """Who wrote the files of a rank."""

    schema: int
    rank: Annotated[int, Meta(ge=0, lt=1 << 31)]
    world_size: NotRequired[Annotated[int, Meta(ge=1, lt=1 << 31)]]
    command: NotRequired[list[str]]
    started: NotRequired[str]
    torch: NotRequired[str]
    python: NotRequired[str]
    tool: NotRequired[str]
    run: NotRequired[str]
    git: NotRequired[dict[str, Any] | None]
    optimizers: NotRequired[list[dict[str, Any]]]
    batch_size: NotRequired[list[int]]
    seed: NotRequired[int]
    device: NotRequired[dict[str, Any]]
    trace: NotRequired[dict[str, Any]]
    looked: NotRequired[LookedAt]


Found = TypedDict("Found", get_type_hints(Item), total=False)  # type: ignore[misc]
"""A finding of the report: fields that another version does not have may be missing."""

_WORD = pa.dictionary(pa.int32(), pa.string())

METRICS = pa.schema(
    [("step", pa.int64()), ("rank", pa.int32()), ("key", _WORD), ("value", pa.float64())],
    metadata={"ta": str(VERSION)},
)

STATISTICS = (
    "pos_infs", "neg_infs", "nans", "zeros", "med", "mean", "amean", "std", "var", "uvar", "skew", "kurt", "mode",
    "min", "max",
)  # fmt: skip
"""The statistics of a tensor that a snapshot may take, beside its shape, dtype and digest."""

KINDS = (
    "environment",
    "package",
    "configuration",
    "rng",
    "batch",
    "parameter",
    "buffer",
    "activation",
    "loss",
    "gradient",
    "optimizer",
)
"""What a record is of, in the order in which one may be the cause of another."""

RECORDS = pa.schema(
    [
        ("step", pa.int64()),  # -1: before the first
        ("rank", pa.int32()),
        ("kind", _WORD),
        ("order", pa.int32()),  # within its step and kind: of activations, that of execution
        ("name", _WORD),
        ("text", pa.string()),  # of a setting its value; null for a tensor
        ("dtype", _WORD),
        ("shape", pa.list_(pa.int64())),
        ("digest", pa.string()),
        ("algorithm", _WORD),
        ("norm", pa.float64()),  # L2, right to 1e-6
        (
            "values",
            pa.binary(),
        ),  # of a small tensor all elements, of others some, evenly spread, as they lie in memory
        (
            "blocks",
            pa.list_(pa.int64()),
        ),  # the digests of its parts, in order, to tell how much of it differs
        *((name, pa.float64()) for name in STATISTICS),
    ],
    metadata={"ta": str(VERSION)},
)

EVENTS = pa.schema(
    [
        ("run", _WORD),  # of all rows the same, so that the traces of several runs are one table
        ("rank", pa.int32()),
        ("step", pa.int64()),
        ("phase", _WORD),
        ("seq", pa.int64()),
        ("end", pa.int64()),
        ("parent", pa.int64()),
        ("kind", _WORD),
        ("name", _WORD),
        ("subject", _WORD),
        ("inputs", _WORD),
        ("dtype", _WORD),
        ("shape", _WORD),
        ("arguments", _WORD),
        ("digest", pa.int64()),
        ("value", pa.float64()),
        ("flags", pa.int32()),
        ("file", _WORD),
        ("line", pa.int32()),
    ],
    metadata={"ta": str(VERSION)},
)

NEEDED = {
    "metrics": ("step", "rank", "key", "value"),
    "records": ("step", "rank", "kind", "name"),
    "events": ("run", "rank", "step", "phase", "seq", "end", "parent", "kind", "name"),
}
"""The columns of a table that have a value in each row."""

TABLES = {"metrics": METRICS, "records": RECORDS, "events": EVENTS}
