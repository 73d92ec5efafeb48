"""Writes the folder of a run while it runs, one rank its own files."""

import json
import platform
import sys
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import torch

from ta_lint import __version__
from ta_lint.core.errors import UsageError
from ta_runtime.runs import schema

ROWS = 1 << 16
"""Rows that are kept in memory before they are written."""
SECONDS = 30.0
"""How long a row waits for others at most, as long as more are added: what a killed job loses."""


class RunWriter:
    """The files of one rank in the folder of a run.

    Raises:
        UsageError: the folder cannot be written to, or holds a run already.
    """

    def __init__(self, folder: Path, *, rank: int = 0, world_size: int = 1) -> None:
        self.folder = folder.absolute()
        self.rank = rank
        self.metrics = TableWriter(self.folder, "metrics", rank)
        self.records = TableWriter(self.folder, "records", rank)
        about = self.folder / f"rank{rank}.json"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with about.open("x", encoding="utf-8") as stream:
                json.dump(_about(rank, world_size), stream, indent=2)
        except FileExistsError as error:
            raise UsageError(f"{folder}: holds a run already; name another folder, or delete it") from error
        except OSError as error:
            raise UsageError(f"{folder}: {error.strerror}") from error

    def flush(self) -> None:
        self.metrics.flush()
        self.records.flush()


class TableWriter:
    """One table of a run, as this rank sees it. Rows are dictionaries by column; what is left out is null."""

    def __init__(self, folder: Path, name: str, rank: int) -> None:
        self._folder = folder / name
        self._schema = schema.TABLES[name]
        self._rank = rank
        self._columns: dict[str, list[Any]] = {column: [] for column in self._schema.names}
        self._parts = 0
        self._since = time.monotonic()

    def add(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Add rows; they are written with others, by `flush` at the latest."""
        for column, values in self._columns.items():
            if column == "rank":
                values.extend([self._rank] * len(rows))
            else:
                values.extend([row.get(column) for row in rows])
        if len(self._columns["rank"]) >= ROWS or time.monotonic() - self._since >= SECONDS:
            self.flush()

    def flush(self) -> None:
        """Write what is waiting.

        Raises:
            OSError: it cannot be written; the rows keep waiting.
        """
        self._since = time.monotonic()
        if not self._columns["rank"]:
            return
        table = pa.table(self._columns, schema=self._schema)
        self._folder.mkdir(exist_ok=True)
        part = self._folder / f"rank{self._rank}-{self._parts:05}.parquet"
        unfinished = part.with_suffix(".part")
        try:
            pq.write_table(table, unfinished, compression="zstd")
            unfinished.replace(part)
        except BaseException:
            unfinished.unlink(missing_ok=True)
            raise
        self._parts += 1
        for values in self._columns.values():
            values.clear()


def _about(rank: int, world_size: int) -> dict[str, Any]:
    return {
        "schema": schema.VERSION,
        "tool": f"ta-lint {__version__}",
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": sys.argv,
        "rank": rank,
        "world_size": world_size,
        "python": platform.python_version(),
        "torch": torch.__version__,
    }
