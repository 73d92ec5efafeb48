"""Writes the folder of a run while it runs, each rank its own files.

Nothing here stops a training: what cannot be written is said once on standard error, and no more is recorded.
"""

import json
import os
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
from ta_lint.core.errors import UsageError, oneline
from ta_lint.core.files import display
from ta_runtime import ranks, reports
from ta_runtime.runs import schema

ROWS = 1 << 16
"""Rows that are kept in memory before they are written."""
SECONDS = 30.0
"""How long a row waits for others at most, as long as more are added: what a killed job loses."""
SHARE = 0.01
"""The same as a share of the time since the start, once that is more: a run of ten days has hundreds of parts, not tens
of thousands."""


class RunWriter:
    """The files of one rank in the folder of a run, which is made if need be.

    `rank` and `world_size` are, unless they are given, those that the process has when it first writes: it may join its
    process group only then. A process that is forked off writes nothing.

    Raises:
        UsageError: the folder cannot be written to, or holds a run already.
    """

    def __init__(self, folder: Path, *, rank: int | None = None, world_size: int | None = None) -> None:
        self.folder = folder = _of_this_attempt(folder.absolute())
        self.complaint: str | None = None
        """Why nothing is recorded any more, if so."""
        self.metrics = TableWriter(self, "metrics")
        self.records = TableWriter(self, "records")
        self._rank, self._world_size = rank, world_size
        self._process = os.getpid()
        self.begun = False
        """Whether the folder says who writes here, so that the rank is settled."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except FileExistsError as error:
            raise UsageError(f"{display(folder)}: is a file; name a folder for the run") from error
        except OSError as error:
            raise UsageError(
                f"{display(folder)}: {error.strerror}; name another folder for the run"
            ) from error
        if not os.access(self.folder, os.W_OK | os.X_OK):
            raise UsageError(
                f"{display(folder)}: no permission to write in it; name another folder for the run"
            )
        is_of_loader = self._rank is None and reports.is_child()  # as far as is known: it may never train
        if not is_of_loader and self._about.exists():
            raise UsageError(_taken(folder))

    @property
    def rank(self) -> int:
        return ranks.rank() if self._rank is None else self._rank

    @property
    def open(self) -> bool:
        """Whether what is added is recorded."""
        return self.complaint is None and os.getpid() == self._process

    def begin(self) -> bool:
        """Say in the folder who writes here, unless that was done; returns `open`. Rows do so when they are written."""
        if self.begun or not self.open:
            return self.open
        self.begun, self._rank = True, self.rank
        try:
            with self._about.open("x", encoding="utf-8") as stream:
                stream.write(
                    json.dumps(_description(self.rank, self._world_size or ranks.world_size()), indent=2)
                )
        except FileExistsError:  # another process came first
            self.give_up(_taken(self.folder))
        except OSError as error:
            self.give_up(oneline(error))
        return self.open

    def flush(self) -> None:
        """Write what is waiting."""
        self.metrics.flush()
        self.records.flush()

    def give_up(self, why: str) -> None:
        """Let go of what is waiting and record no more."""
        if self.complaint is None:
            self.complaint = f"cannot record the run in {display(self.folder)}: {why}"
            reports.error_line(f"{self.complaint}; the training goes on, and no more of it is recorded")
            self.metrics.drop()
            self.records.drop()

    @property
    def _about(self) -> Path:
        return self.folder / f"rank{self.rank}.json"


class TableWriter:
    """One table of a run, as this rank sees it. Rows are dictionaries by column; what is left out is null."""

    def __init__(self, run: RunWriter, name: str) -> None:
        self._run = run
        self._folder = run.folder / name
        self._schema = schema.TABLES[name]
        self._columns: dict[str, list[Any]] = {
            column: [] for column in self._schema.names if column != "rank"
        }
        self._steps = self._columns["step"]
        self._parts = 0
        self._started = self._written = time.monotonic()

    def add(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Add rows; they are written with others, by `flush` at the latest."""
        if not self._run.open:
            return
        self._align()
        for column, values in self._columns.items():
            values.extend([row.get(column) for row in rows])
        if len(self._steps) >= ROWS or self._is_late:
            self.flush()

    def flush(self) -> None:
        """Write what is waiting, as one more part."""
        if not self._run.open:
            return
        self._written = time.monotonic()
        if not self._steps or (self._steps[-1] < 0 and not self._run.begun and reports.is_child()):
            return  # a child process of which nobody knows its rank yet, or whether it will train at all
        if self._run.begin():
            try:
                self._write()
            except (OSError, pa.ArrowException) as error:
                self._run.give_up(oneline(error))
        self.drop()

    def _align(self) -> None:
        """Forget rows that Ctrl-C left unfinished: the columns are filled in order."""
        *_, last = self._columns.values()
        if len(self._steps) != len(last):
            for values in self._columns.values():
                del values[len(last) :]

    def drop(self) -> None:
        """Forget what is waiting."""
        for values in self._columns.values():
            values.clear()

    @property
    def _is_late(self) -> bool:
        now = time.monotonic()
        return now - self._written >= max(SECONDS, SHARE * (now - self._started))

    def _write(self) -> None:
        self._align()
        rank = self._run.rank
        table = pa.table({**self._columns, "rank": [rank] * len(self._steps)}, schema=self._schema)
        self._folder.mkdir(exist_ok=True)
        part = self._folder / f"rank{rank}-{self._parts:05}.parquet"
        unfinished = part.with_suffix(".part")
        pq.write_table(table, unfinished, compression="zstd", write_page_checksum=True)
        unfinished.replace(part)
        self._parts += 1


def _of_this_attempt(folder: Path) -> Path:
    """torchrun starts a job that failed anew, by the same command: each attempt then has a folder of its own."""
    attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
    return folder if attempt == "0" else folder.with_name(f"{folder.name}.restart{attempt}")


def _taken(folder: Path) -> str:
    return f"{display(folder)}: holds a run already; name another folder, or delete it"


def _description(rank: int, world_size: int) -> dict[str, Any]:
    return {
        "schema": schema.VERSION,
        "tool": f"ta-lint {__version__}",
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": sys.orig_argv,
        "rank": rank,
        "world_size": world_size,
        "python": platform.python_version(),
        "torch": torch.__version__,
    }
