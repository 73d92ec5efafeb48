"""Numbers into the folder of a run, which `ta-runtime report` and `ta-runtime diff` read."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ta_runtime.runs import RunWriter


class Parquet:
    """The metrics of a run's folder, in parts: a killed job loses at most those of its last half minute.

    Args:
        run: the folder, which is made, or its URL for fsspec, or the writer of one that is in use, such as a recorder's.

    Raises:
        UsageError: the folder cannot be written to, or holds a run already; pyarrow is missing.
    """

    def __init__(self, run: "str | Path | RunWriter") -> None:
        if isinstance(run, str | Path):
            from ta_runtime.runs import RunWriter

            run = RunWriter(run)
        self.run = run

    def write(self, step: int, values: Mapping[str, float]) -> None:
        self.run.metrics.add([{"step": step, "key": key, "value": value} for key, value in values.items()])

    def flush(self) -> None:
        self.run.metrics.flush()

    def close(self) -> None:
        self.flush()

    def __str__(self) -> str:
        return f"Parquet {self.run.folder}"
