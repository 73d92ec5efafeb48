"""Reads the folder of a run, also of one that still runs or was killed."""

import json
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds

from ta_lint.core.errors import UsageError
from ta_runtime.runs import schema


class Run:
    """What lies in the folder of a run.

    Raises:
        UsageError: it is not the folder of a run, or of one that a newer version wrote; later, that a file is damaged.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.about: dict[int, dict[str, Any]] = {}
        """Of each rank, who wrote its files: `command`, `started`, `world_size`, `torch`, `python`, `tool`."""
        for path in folder.glob("rank*.json"):
            about = self._json(path)
            if not isinstance(about, dict) or about.get("schema") != schema.VERSION:
                raise UsageError(
                    f"{path}: not of this version of ta-runtime: schema {schema.VERSION} is expected"
                )
            self.about[about["rank"]] = about
        if not self.about:
            what = "holds no run" if folder.is_dir() else "no such folder"
            raise UsageError(f"{folder}: {what}; `ta-runtime run --record {folder} SCRIPT` makes one")

    @cached_property
    def metrics(self) -> pa.Table:
        """Of `schema.METRICS`, by rank and step."""
        return self._table("metrics").sort_by([("rank", "ascending"), ("step", "ascending")])

    @cached_property
    def records(self) -> pa.Table:
        """Of `schema.RECORDS`, by rank and step, and as they were taken within a step."""
        return self._table("records")

    @cached_property
    def findings(self) -> dict[str, Any] | None:
        """The report of rank 0, as `--format json` writes it; None where there is none."""
        path = self.folder / "findings.json"
        found = self._json(path) if path.exists() else None
        return found if isinstance(found, dict) else None

    def _table(self, name: str) -> pa.Table:
        wanted = schema.TABLES[name]
        parts = sorted((self.folder / name).glob("rank*-*.parquet"))
        tables = []
        for part in parts:
            try:
                tables.append(ds.dataset(part, schema=wanted, format="parquet").to_table())
            except (pa.ArrowException, OSError) as error:
                raise UsageError(
                    f"{part}: damaged, or no part of a run: {str(error).splitlines()[0]}"
                ) from error
        return pa.concat_tables(tables) if tables else wanted.empty_table()

    def _json(self, path: Path) -> object:
        try:
            return json.loads(path.read_bytes())
        except (OSError, ValueError) as error:
            raise UsageError(f"{path}: {error}") from error
