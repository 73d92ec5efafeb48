"""Reads the folder of a run, also of one that still runs or was killed."""

import json
import re
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.fs

from ta_lint.core.errors import UsageError, oneline
from ta_runtime.runs import schema

_PART = re.compile(r"rank(\d+)-(\d+)\.parquet")
_ABOUT = re.compile(r"rank(\d+)\.json")
_FINDINGS = re.compile(r"findings(?:\.rank(\d+))?\.json")
_DELETE = "delete it to read the rest of the run"
_FORMAT = ds.ParquetFileFormat(
    default_fragment_scan_options=ds.ParquetFragmentScanOptions(page_checksum_verification=True)
)


class Run:
    """What lies in the folder of a run.

    Raises:
        UsageError: it is not the folder of a run, or of one that a newer version wrote; later, that a file is damaged.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.about: dict[int, dict[str, Any]] = {}
        """Of each rank, who wrote its files: `command`, `started`, `world_size`, `torch`, `python`, `tool`."""
        for path in _files(folder, _ABOUT):
            about = _json(path)
            if not isinstance(about, dict) or not isinstance(about.get("rank"), int):
                raise UsageError(f"{path}: damaged, or not of a run; {_DELETE}")
            _check_version(path, about.get("schema"))
            self.about[about["rank"]] = about
        if not self.about:
            what = "holds no run" if folder.is_dir() else "is a file" if folder.exists() else "no such folder"
            raise UsageError(f"{folder}: {what}; `ta-runtime run --record FOLDER SCRIPT` records one")

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
            items = _json(path)
            if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
                raise UsageError(f"{path}: damaged, or no report; {_DELETE}")
            for item in items:
                found.setdefault(str(item.get("fingerprint")), item)
        return list(found.values()) if paths else None

    def read(
        self, table: str, columns: Sequence[str] | None = None, where: pc.Expression | None = None
    ) -> pa.Table:
        """Rows of `metrics` or `records` as they were written, rank by rank; nothing else of the files is kept in memory.

        Args:
            columns: names of `schema.TABLES[table]`, in the order wanted; None: all.
            where: which rows, such as `pc.field("step") == 3`; None: all.

        Raises:
            UsageError: a file is damaged.
        """
        whole = schema.TABLES[table]
        names = whole.names if columns is None else list(columns)
        wanted = pa.schema([whole.field(name) for name in names], whole.metadata)
        parts = [_part(path, whole, names, where) for path in _files(self.folder / table, _PART)]
        return pa.concat_tables(parts).unify_dictionaries().cast(wanted) if parts else wanted.empty_table()


def _files(folder: Path, pattern: re.Pattern[str]) -> list[Path]:
    """Those whose names are of a pattern, by the numbers in them."""
    if not folder.is_dir():
        return []
    named = [(match, path) for path in folder.iterdir() if (match := pattern.fullmatch(path.name))]
    return [
        path
        for _, path in sorted(named, key=lambda entry: [int(number or 0) for number in entry[0].groups()])
    ]


def _part(path: Path, whole: pa.Schema, columns: list[str], where: pc.Expression | None) -> pa.Table:
    try:
        fragment = _FORMAT.make_fragment(str(path), pa.fs.LocalFileSystem())
        found = fragment.physical_schema
        _check_version(path, (found.metadata or {}).get(b"ta", b"").decode())
        if lacking := set(whole.names) - set(found.names):  # a scan would fill it with nulls
            raise KeyError(min(lacking))
        return fragment.to_table(schema=whole, columns=columns, filter=where)
    except (pa.ArrowException, OSError, ValueError, KeyError) as error:
        raise UsageError(f"{path}: damaged, or no part of a run: {oneline(error)}; {_DELETE}") from error


def _check_version(path: Path, version: object) -> None:
    """Raises:
    UsageError: the file is not of `schema.VERSION`.
    """
    if str(version) == str(schema.VERSION):
        return
    if str(version).isdigit() and int(str(version)) > schema.VERSION:
        raise UsageError(
            f"{path}: written by a newer ta-runtime, with schema {version} where this one reads {schema.VERSION}; "
            "update by `pip install -U 'ta-lint[record]'`"
        )
    raise UsageError(f"{path}: not written by ta-runtime; {_DELETE}")


def _json(path: Path) -> object:
    try:
        return json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise UsageError(f"{path}: cannot be read: {oneline(error)}; {_DELETE}") from error
