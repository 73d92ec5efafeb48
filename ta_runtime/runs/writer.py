"""Writes the folder of a run while it runs, each rank its own files.

Nothing here stops a training: what cannot be written is said once on standard error, and no more is recorded.
"""

import contextlib
import json
import os
import platform
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import torch

from ta_lint import __version__
from ta_lint.core.errors import UsageError, oneline
from ta_runtime import ranks, reports, storage
from ta_runtime.runs import masking, schema, trackers
from ta_runtime.storage import Place, located, shown

pa.array(
    []
)  # with its first array pyarrow loads pandas, where it is: not in the middle of a run, whose warnings that resets

_STARTED = time.time()
ROWS = 1 << 16
"""Rows that are kept in memory before they are written."""
SECONDS = 30.0
"""How long a row waits for others at most, as long as more are added: what a killed job loses."""
SHARE = 0.01
"""The same as a share of the time since the start, once that is more: a run of ten days has hundreds of parts, not tens
of thousands."""

_ENCODED: dict[str, dict[str, Any]] = {
    "events": {
        "use_dictionary": [field.name for field in schema.EVENTS if pa.types.is_dictionary(field.type)],
        "column_encoding": dict.fromkeys(
            ("step", "seq", "end", "parent", "flags", "line"), "DELTA_BINARY_PACKED"
        ),
    }
}
"""How a table is written where the numbers of a row are close to those of the row before: an eighth of the bytes."""


class RunWriter:
    """The files of one rank in the folder of a run, which is made if need be: a path, or a URL that fsspec knows.

    A folder that holds a run already is left alone: this one then goes to the next, such as `run-2`.

    `rank` and `world_size` are, unless they are given, those that the process has when it first writes: it may join its
    process group only then. A process that is forked off writes nothing. `about` is what `Run.about` says of it besides.

    Raises:
        UsageError: the folder cannot be written to.
    """

    def __init__(
        self,
        folder: str | Place,
        *,
        rank: int | None = None,
        world_size: int | None = None,
        about: Mapping[str, Any] | None = None,
    ) -> None:
        self.folder = folder = _of_this_attempt(located(folder).absolute())
        self.complaint: str | None = None
        """Why nothing is recorded any more, if so."""
        self.id = f"{folder.name}-{datetime.now(UTC):%Y%m%dT%H%M%S%f}"
        """Of this run and no other; of all its ranks the same once they have written, if they are connected by then."""
        self.metrics = TableWriter(self, "metrics")
        self.records = TableWriter(self, "records")
        self._rank, self._world_size, self._more = rank, world_size, dict(about or {})
        self._process = os.getpid()
        self._described: dict[str, Any] = {}
        self.begun = False
        """Whether the folder says who writes here, so that the rank is settled."""
        storage.prepare(folder)
        is_of_loader = self._rank is None and reports.is_child()  # as far as is known: it may never train
        number = 1
        while not is_of_loader and self._is_taken:
            number += 1
            self.folder = folder.with_name(f"{folder.name}-{number}")
        if number > 1:
            storage.prepare(self.folder)
            if self.rank == 0:
                reports.error_line(
                    f"{shown(folder)} holds a run already; this one goes to {shown(self.folder)}"
                )

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
        self.id = ranks.agreed(f"run {self.folder}", self.id)
        self._described = _description(self.rank, self._world_size or ranks.world_size())
        self._described |= {"run": self.id, **self._more, "trackers": trackers.opened()}
        try:
            storage.create(self._about, json.dumps(self._described, indent=2))
        except FileExistsError:  # another process came first
            self.give_up(_taken(self.folder))
        except OSError as error:
            self.give_up(oneline(error))
        return self.open

    def flush(self) -> None:
        """Write what is waiting."""
        self.metrics.flush()
        self.records.flush()

    def describe(self, facts: Mapping[str, Any]) -> None:
        """Say more of the run, in what `Run.about` says of it."""
        self._more |= facts
        told = {**self._described, **facts}
        if self.begun and self.open and told != self._described:
            self._described = told
            try:
                storage.replace(self._about, json.dumps(told, indent=2), private=True)
            except UsageError as error:
                self.give_up(str(error))

    def end(self) -> None:
        """Write what is waiting, and where else the run was told of, if that began after its first step."""
        self.flush()
        if self.begun:
            self.describe(
                {"trackers": trackers.joined(self._described.get("trackers", []), trackers.opened())}
            )

    def give_up(self, why: str) -> None:
        """Let go of what is waiting and record no more."""
        if self.complaint is None:
            self.complaint = f"cannot record the run in {shown(self.folder)}: {why}"
            reports.error_line(f"{self.complaint}; the training goes on, and no more of it is recorded")
            self.metrics.drop()
            self.records.drop()

    @property
    def _is_taken(self) -> bool:
        """Whether the folder holds an earlier run: this rank's file, or that of any rank from before this process."""
        if self._about.exists():
            return True
        if not isinstance(self.folder, Path):
            return False
        with contextlib.suppress(OSError):
            return any(path.stat().st_mtime < _STARTED for path in self.folder.glob("rank*.json"))
        return False

    @property
    def _about(self) -> Place:
        return self.folder / f"rank{self.rank}.json"


@dataclass(frozen=True)
class Part:
    """A file of a table: its place, its rows, the step of the last of them, and its size in bytes."""

    path: Place
    rows: int
    step: int
    size: int


class _Whole(pq.ParquetWriter):  # type: ignore[misc]
    """One that is closed before it goes."""

    # in C alone: Python would swallow what a signal handler of the run's raises in a destructor
    __del__ = staticmethod(int)


class TableWriter:
    """One table of a run, as this rank sees it, in parts that are each whole or not there at all.

    Rows are dictionaries by column, and what is left out is null; or all columns of many rows are given at once.
    """

    def __init__(self, run: RunWriter, name: str, *, share: float = SHARE, trained_from: int = 0) -> None:
        """`share` takes the place of `SHARE`. A row of the step `trained_from` or a later one shows that this process trains:
        of a child process nobody knows before whether it will, and its rank may not be settled."""
        self._run = run
        self._name = name
        self._schema = schema.TABLES[name]
        self._share = share
        self._trained_from = trained_from
        self._columns: dict[str, list[Any]] = {
            column: [] for column in self._schema.names if column not in ("run", "rank")
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
        if self.due:
            self.flush()

    def extend(self, columns: Mapping[str, Sequence[Any]]) -> None:
        """Add rows that are given by column, all but `run` and `rank`; they wait for `flush`."""
        if not self._run.open:
            return
        self._align()
        for column, values in self._columns.items():
            values.extend(columns[column])

    @property
    def due(self) -> bool:
        """Whether so much waits, or for so long, that it should be written."""
        now = time.monotonic()
        late = now - self._written >= max(SECONDS, self._share * (now - self._started))
        return late or len(self._steps) >= ROWS

    @property
    def steps(self) -> Sequence[int]:
        """Those of the rows that wait."""
        return self._steps

    def flush(self, rows: int | None = None) -> Part | None:
        """Write what is waiting, or the first so many rows of it, as one more part, and return it."""
        if not self._run.open:
            return None
        self._written = time.monotonic()
        self._align()
        if not self._steps:
            return None
        if self._steps[-1] < self._trained_from and not self._run.begun and reports.is_child():
            if len(self._steps) >= ROWS:
                self.drop()
            return None
        part = None
        if self._run.begin():
            try:
                part = self._write(rows)
            except (OSError, pa.ArrowException) as error:
                self._run.give_up(oneline(error))
        self.drop(rows)
        return part

    def drop(self, rows: int | None = None) -> None:
        """Forget what is waiting, or the first so many rows of it."""
        for values in self._columns.values():
            del values[:rows]

    def _align(self) -> None:
        """Forget rows that Ctrl-C left unfinished: the columns are filled in order."""
        *_, last = self._columns.values()
        if len(self._steps) != len(last):
            for values in self._columns.values():
                del values[len(last) :]

    def _write(self, rows: int | None) -> Part:
        columns: dict[str, Any] = dict(self._columns)
        if rows is not None:
            columns = {column: values[:rows] for column, values in columns.items()}
        count = len(columns["step"])
        rank = self._run.rank
        columns["rank"] = pa.repeat(pa.scalar(rank, pa.int32()), count)
        if "run" in self._schema.names:
            columns["run"] = pa.repeat(self._run.id, count).dictionary_encode()
        with pa.BufferOutputStream() as stream:
            table = pa.table(columns, schema=self._schema)
            options = {"compression": "zstd", "write_page_checksum": True, **_ENCODED.get(self._name, {})}
            with _Whole(stream, self._schema, **options) as writer:
                writer.write_table(table)
            data = stream.getvalue().to_pybytes()
        path = self._run.folder / self._name / f"rank{rank}-{self._parts:05}.parquet"
        storage.write_whole(path, data)
        self._parts += 1
        return Part(path, count, columns["step"][-1], len(data))


def _of_this_attempt(folder: Place) -> Place:
    """torchrun starts a job that failed anew, by the same command: each attempt then has a folder of its own."""
    attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
    return folder if attempt == "0" else folder.with_name(f"{folder.name}.restart{attempt}")


def _taken(folder: Place) -> str:
    return f"{shown(folder)}: holds a run already; name another folder, or delete it"


def _description(rank: int, world_size: int) -> dict[str, Any]:
    return {
        "schema": schema.VERSION,
        "tool": f"ta-lint {__version__}",
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": list(masking.command(sys.orig_argv)),
        "rank": rank,
        "world_size": world_size,
        "python": platform.python_version(),
        "torch": torch.__version__,
    }
