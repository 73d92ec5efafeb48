"""Reads the folder of a run, also of one that still runs or was killed."""

import json
import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.fs

from ta_lint.core.errors import UsageError, oneline
from ta_runtime.runs import schema
from ta_runtime.storage import Place, Remote, located

_PART = re.compile(r"rank(\d+)-(\d+)\.parquet")
_ABOUT = re.compile(r"rank(\d+)\.json")
_FINDINGS = re.compile(r"findings(?:\.rank(\d+))?\.json")
_ROWS = 1 << 13
_DELETE = "delete it to read the rest of the run"
_MAKES_ONE = (
    "`ta-runtime run --record FOLDER SCRIPT` records one, `ta-runtime collect SCRIPT -o FOLDER` traces one"
)
_FORMAT = ds.ParquetFileFormat(
    default_fragment_scan_options=ds.ParquetFragmentScanOptions(page_checksum_verification=True)
)


class Run:
    """What lies in the folder of a run, which is named by a path or a URL that fsspec knows.

    Raises:
        UsageError: it is not the folder of a run, or of one that a newer version wrote; later, that a file is damaged.
    """

    def __init__(self, folder: str | Place) -> None:
        self.folder = folder = located(folder)
        self.about: dict[int, dict[str, Any]] = {}
        """Of each rank, who wrote its files: `command`, `started`, `world_size`, `torch`, `python`, `tool`, and as far as they are known `git`,
        `optimizers`, `batch_size`, `seed` and `device`; of a trace also `run` and `trace`, what was traced."""
        for path in _files(folder, _ABOUT):
            about = _json(path)
            if isinstance(about, dict):
                _check_version(path, about.get("schema"))
            about = _typed(path, about, schema.About, "not of a run")
            self.about[about["rank"]] = {"command": [], "started": "", "world_size": 1, **about}
        if not self.about:
            what = "holds no run" if folder.is_dir() else "is a file" if folder.exists() else "no such folder"
            raise UsageError(f"{folder}: {what}; {_MAKES_ONE}")

    @cached_property
    def metrics(self) -> pa.Table:
        """Of `schema.METRICS`, by rank and step."""
        return self.read("metrics").sort_by([("rank", "ascending"), ("step", "ascending")])

    @cached_property
    def records(self) -> pa.Table:
        """Of `schema.RECORDS`, by rank, and as they were taken."""
        return self.read("records")

    @cached_property
    def findings(self) -> list[dict[str, Any]] | None:
        """What `--format json` writes: the findings of all ranks, each once; None where there is no report."""
        paths = _files(self.folder, _FINDINGS)
        found: dict[str, dict[str, Any]] = {}
        for path in paths:  # of other ranks, those that rank 0 had not gathered
            for item in _typed(path, _json(path), list[schema.Found], "no report"):
                found.setdefault(str(item.get("fingerprint")), item)
        return list(found.values()) if paths else None

    def read(
        self, table: str, columns: Sequence[str] | None = None, where: pc.Expression | None = None
    ) -> pa.Table:
        """Rows of a table as they were written, rank by rank; nothing else of the files is kept in memory.

        Args:
            table: a key of `schema.TABLES`.
            columns: names of `schema.TABLES[table]`, in the order wanted; None: all.
            where: which rows, such as `pc.field("step") == 3`; None: all.

        Raises:
            UsageError: a file is damaged.
        """
        whole = schema.TABLES[table]
        names = whole.names if columns is None else list(columns)
        wanted = pa.schema([whole.field(name) for name in names], whole.metadata)
        parts = [_part(path, table, names, where) for path in _files(self.folder / table, _PART)]
        return pa.concat_tables(parts).unify_dictionaries().cast(wanted) if parts else wanted.empty_table()

    def parts(self, table: str) -> list[str]:
        """The Parquet files of a table, rank by rank and in order, for an engine that reads them itself; each is looked at.

        Raises:
            UsageError: one is damaged, not of a run, or written by a newer version.
        """
        paths = _files(self.folder / table, _PART)
        for path in paths:
            _opened(path, schema.TABLES[table])
        return [str(path) for path in paths]

    def verify(self, table: str) -> None:
        """Read all of a table against its checksums.

        Raises:
            UsageError: a file is damaged.
        """
        for path in _files(self.folder / table, _PART):
            for _ in _batches(path, table, None):
                pass

    def batches(
        self, table: str, rank: int, columns: Sequence[str] | None = None
    ) -> Iterator[pa.RecordBatch]:
        """The rows of one rank as they were written, some thousands at a time: so much is in memory, whatever there is.

        Raises:
            UsageError: a file is damaged.
        """
        for path in _files(self.folder / table, _PART):
            if (part := _PART.fullmatch(path.name)) is not None and int(part[1]) == rank:
                yield from _batches(path, table, columns)


def _files(folder: Place, pattern: re.Pattern[str]) -> list[Place]:
    """Those whose names are of a pattern, by the numbers in them."""
    try:
        paths: list[Place] = list(folder.iterdir()) if folder.is_dir() else []
    except OSError as error:
        raise UsageError(f"{folder}: cannot be read: {oneline(error)}") from error
    named = [(match, path) for path in paths if (match := pattern.fullmatch(path.name))]
    return [
        path
        for _, path in sorted(named, key=lambda entry: [int(number or 0) for number in entry[0].groups()])
    ]


def _batches(path: Place, table: str, columns: Sequence[str] | None) -> Iterator[pa.RecordBatch]:
    whole = schema.TABLES[table]
    names = whole.names if columns is None else list(columns)
    fragment = _opened(path, whole)
    try:
        for batch in fragment.to_batches(schema=whole, columns=names, batch_size=_ROWS):
            _check_needed(path, table, batch)
            yield batch
    except (pa.ArrowException, OSError, ValueError) as error:
        raise _damaged(path, error) from error


def _part(path: Place, table: str, columns: list[str], where: pc.Expression | None) -> pa.Table:
    whole = schema.TABLES[table]
    fragment = _opened(path, whole)
    try:
        rows = fragment.to_table(schema=whole, columns=columns, filter=where)
    except (pa.ArrowException, OSError, ValueError, KeyError) as error:
        raise _damaged(path, error) from error
    _check_needed(path, table, rows)
    return rows


def _check_needed(path: Place, table: str, rows: pa.Table | pa.RecordBatch) -> None:
    """Raises:
    UsageError: a row lacks what each has.
    """
    for name in schema.NEEDED[table]:
        if name in rows.schema.names and rows.column(name).null_count:
            raise _damaged(path, ValueError(f"a row has no `{name}`"))


def _opened(path: Place, whole: pa.Schema) -> ds.ParquetFileFragment:
    """One part, of which nothing but the columns' names is read yet."""
    try:
        fragment = _FORMAT.make_fragment(*_in_arrow(path))
        found = fragment.physical_schema
    except (pa.ArrowException, OSError, ValueError) as error:
        raise _damaged(path, error) from error
    _check_version(path, (found.metadata or {}).get(b"ta", b"").decode())
    if lacking := set(whole.names) - set(found.names):  # a scan would fill it with nulls
        raise _damaged(path, KeyError(min(lacking)))
    for field in whole:
        if _values(found.field(field.name).type) != _values(field.type):
            raise _damaged(path, TypeError(f"the type of `{field.name}` is {found.field(field.name).type}"))
    return fragment


def _values(kind: pa.DataType) -> pa.DataType:
    """The type of a column, whether or not its words are in a dictionary."""
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _in_arrow(path: Place) -> tuple[str, pa.fs.FileSystem]:
    if isinstance(path, Remote):
        return path.path, pa.fs.PyFileSystem(pa.fs.FSSpecHandler(path.filesystem))
    return str(path), pa.fs.LocalFileSystem()


def _damaged(path: Place, error: Exception) -> UsageError:
    return UsageError(f"{path}: damaged, or no part of a run: {oneline(error)}; {_DELETE}")


def _check_version(path: Place, version: object) -> None:
    """Raises:
    UsageError: the file is not of `schema.VERSION`.
    """
    if str(version) == str(schema.VERSION):
        return
    if str(version).isdecimal() and int(str(version)) > schema.VERSION:
        raise UsageError(
            f"{path}: written by a newer ta-runtime, with schema {version} where this one reads {schema.VERSION}; "
            "update by `pip install -U 'ta-lint[record]'`"
        )
    raise UsageError(f"{path}: not written by ta-runtime; {_DELETE}")


def _json(path: Place) -> object:
    try:
        return json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(f"{path}: damaged, or cannot be read: {oneline(error)}; {_DELETE}") from error


def _typed(path: Place, value: object, kind: Any, otherwise: str) -> Any:
    """What a file holds, as it is, once it is known to be of a type.

    Raises:
        UsageError: it is of another.
    """
    try:
        msgspec.convert(value, kind)
    except (msgspec.ValidationError, RecursionError) as error:
        raise UsageError(f"{path}: damaged, or {otherwise}: {oneline(error)}; {_DELETE}") from error
    return value
