"""The events of several traces as one table, which DuckDB scans where it lies: no more than a query asks for is read,
and what does not fit into memory goes to a temporary folder.
"""

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from ta_lint.core.errors import UsageError, oneline
from ta_runtime.extras import needs
from ta_runtime.invariants import invariant
from ta_runtime.invariants.attributes import NAMED
from ta_runtime.trace.event import Flag

if TYPE_CHECKING:
    from ta_runtime.runs import Run

MEMORY = "2GB"
"""What a query may take before it spills."""
ROWS = 1 << 12
"""Rows of an answer that are fetched at a time."""
COLUMNS = 'rank, step, phase, seq, "end", parent, kind, name, subject, inputs, dtype, shape, arguments, digest, value, flags'
"""Those of `runs.schema.EVENTS` that templates look at."""

NAMES = ("phase", "first", "class", "autocast", "requires_grad")
"""The columns of `events` that are the attributes of `invariant.ATTRIBUTES`, in their order."""
ATTRIBUTES = ", ".join(NAMES)
"""The same, for a `select`."""
SEVERAL_RANKS = "run in (select run from events group by run having max(rank) > min(rank))"
"""The condition that a trace has more than one rank: what compares ranks looks at no other, which is half of all cost."""


class Events:
    """A DuckDB database with the view `events`: columns as in `runs.schema.EVENTS`, and

        run              integer, the number of the trace from 0, whatever it is called: `(run, rank, seq)` is an event
        first            `first` or `other`: the attribute `rank`
        class            the attribute `class`, empty where an event has none
        autocast, requires_grad
                         `yes` or `no`
        whole            boolean: `Flag.WHOLE`

    Raises:
        UsageError: DuckDB is not installed; a trace holds no events, or a file of it is damaged.
    """

    def __init__(self, traces: Sequence["Run"], *, memory: str = MEMORY, threads: int | None = None) -> None:
        with needs("duckdb", "invariants", "invariants are inferred by duckdb"):
            import duckdb
        self.traces = list(traces)
        self._folder = tempfile.TemporaryDirectory(prefix="ta-infer-")
        try:
            self._database = duckdb.connect(
                config={
                    "memory_limit": memory,
                    "temp_directory": self._folder.name,
                    "threads": threads or os.cpu_count() or 1,
                    "preserve_insertion_order": False,
                }
            )
        except duckdb.Error as error:
            self._folder.cleanup()
            raise UsageError(f"--memory {memory}: {oneline(error)}; write it as 4GB") from error
        try:
            with self._reading():
                self._database.execute(
                    f"create view events as {' union all '.join(map(self._scan, range(len(traces)), traces))}"
                )
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Drop the database, and what it keeps on disk."""
        self._database.close()
        self._folder.cleanup()

    @property
    def count(self) -> int:
        """How many events there are."""
        ((count,),) = self.rows("select count(*) from events")
        return int(count)

    def rows(self, query: str) -> Iterator[tuple[Any, ...]]:
        """The rows of an answer, which is small where a query groups."""
        with self._reading():
            answer = self._database.cursor().execute(query)
            rows = answer.fetchmany(ROWS)
        while rows:
            yield from rows
            with self._reading():
                rows = answer.fetchmany(ROWS)

    def keep(self, table: str, query: str) -> None:
        """Keep an answer as a table, for templates that ask further; once, however often it is said."""
        with self._reading():
            self._database.execute(f"create table if not exists {table} as {query}")

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """What DuckDB cannot read is a damaged file, if there is one: it does not say which, and looks at no checksum."""
        import duckdb

        try:
            yield
        except duckdb.Error:
            for trace in self.traces:
                trace.verify("events")
            raise

    def _scan(self, number: int, trace: "Run") -> str:
        parts = trace.parts("events")
        if not parts:
            raise UsageError(
                f"{trace.folder}: has no events; make a trace with `ta-runtime collect SCRIPT -o TRACE`"
            )
        filesystem = getattr(trace.folder, "filesystem", None)
        if filesystem is not None and not self._database.filesystem_is_registered(_protocol(filesystem)):
            self._database.register_filesystem(filesystem)
        files = ", ".join("'" + part.replace("'", "''") + "'" for part in parts)
        kinds = ", ".join(f"'{kind}'" for kind in sorted(NAMED))
        return (
            f"select {number} as run, {COLUMNS}, if(rank = 0, 'first', 'other') as first, "
            f"if(kind in ({kinds}), name, '') as class, {_word('autocast', Flag.AUTOCAST)}, "
            f"{_word('requires_grad', Flag.REQUIRES_GRAD)}, {has(Flag.WHOLE)} as whole from read_parquet([{files}])"
        )


def has(flag: Flag) -> str:
    """The condition, in SQL, that one of the flags is set."""
    return f"(flags & {int(flag)} <> 0)"


def attributes(values: Sequence[str]) -> dict[str, str]:
    """The attributes by name, from the columns `NAMES` of a row."""
    return dict(zip(invariant.ATTRIBUTES, values, strict=True))


def _protocol(filesystem: Any) -> str:
    protocol = filesystem.protocol
    return str(protocol if isinstance(protocol, str) else protocol[0])


def _word(name: str, flag: Flag) -> str:
    return f"if({has(flag)}, 'yes', 'no') as {name}"
