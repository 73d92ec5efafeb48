"""A comparison as JSON."""

import json
import math
from dataclasses import asdict
from typing import Any

from ta_runtime.diff import words
from ta_runtime.diff.comparison import Comparison, Divergence
from ta_runtime.runs import Run
from ta_runtime.runs.schema import KINDS

VERSION = 1


def as_json(comparison: Comparison) -> str:
    """The comparison for programs; `schema` rises when a field changes its meaning."""
    document = {
        "schema": VERSION,
        "equal": comparison.equal,
        "summary": words.headline(comparison),
        "across_ranks": comparison.across_ranks,
        "a": _run(comparison.a),
        "b": _run(comparison.b),
        "ranks": comparison.ranks,
        "first": _divergence(comparison.first),
        "first_number": _divergence(comparison.numbers),
        "settings": [asdict(setting) for setting in comparison.settings],
        "ignored": comparison.ignored,
        "idle_generators": comparison.idle,
        "equal_through": comparison.equal_through,
        "equal_before": [asdict(count) for count in comparison.equal_before],
        "later": [asdict(count) for count in comparison.later],
        "repeated": [asdict(repeated) for repeated in comparison.repeated],
        "compared": [
            {
                "step": row["step"],
                "kind": KINDS[row["kind"]],
                "compared": row["compared"],
                "differing": row["differing"],
            }
            for row in comparison.grid.to_pylist()
        ],
        "notes": comparison.notes,
    }
    return json.dumps(_plain(document), indent=2, ensure_ascii=False) + "\n"


def _run(run: Run) -> dict[str, Any]:
    return {"folder": str(run.folder), **next(iter(run.about.values()))}


def _divergence(found: Divergence | None) -> dict[str, Any] | None:
    if found is None:
        return None
    return {
        **asdict(found),
        "change": found.change,
        "size": asdict(found.size) if found.size is not None else None,
    }


def _plain(value: Any) -> Any:
    """Without numbers that JSON does not know."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
