"""Small traces made by hand: events by their keywords, and the folder of a run that holds them."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ta_runtime.runs import schema
from ta_runtime.trace.event import Event, Flag

TRAIN = int(Flag.GRAD | Flag.TRAINING | Flag.REQUIRES_GRAD | Flag.WHOLE)


class Timeline:
    """Makes the events of one rank, in order: each is over before the next begins."""

    def __init__(self) -> None:
        self._seq = 0

    def __call__(self, kind: str, name: str, **values: Any) -> Event:
        seq, self._seq = self._seq, self._seq + 2
        known = {
            "step": 0, "phase": "train", "seq": seq, "end": seq + 1, "parent": -1, "kind": kind, "name": name,
            "subject": "", "inputs": "", "dtype": "", "shape": "", "arguments": "", "digest": None, "value": None,
            "flags": TRAIN, "file": "train.py", "line": 1,
        }  # fmt: skip
        return Event(**{**known, **values})


def written(folder: Path, events: Mapping[int, Sequence[Event]], *, parts: int = 1, **about: Any) -> Path:
    """The folder of a run with these events of each rank, in so many parts."""
    (folder / "events").mkdir(parents=True)
    for rank, of_rank in events.items():
        said = {"rank": rank, "schema": schema.VERSION, "world_size": len(events), "command": [], **about}
        (folder / f"rank{rank}.json").write_text(json.dumps(said))
        size = -(-len(of_rank) // parts) or 1
        for number in range(parts):
            rows = [
                {**event._asdict(), "run": folder.name, "rank": rank}
                for event in of_rank[number * size : (number + 1) * size]
            ]
            table = pa.Table.from_pylist(rows, schema.EVENTS)
            path = folder / "events" / f"rank{rank}-{number:05}.parquet"
            pq.write_table(table, path, write_page_checksum=True)
    return folder
