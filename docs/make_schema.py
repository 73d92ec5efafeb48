"""Makes `ta-lint.schema.json`, by which editors complete and check settings, of `ta_lint.core.settings.RawConfig`.

`python docs/make_schema.py` writes it; with `--check` it only says whether it is up to date.
"""

import argparse
import ast
import inspect
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from ta_lint.core.settings import RawConfig, shape
from ta_lint.core.terms import InTests, Severity

SCHEMA = Path(__file__).resolve().parents[1] / "ta-lint.schema.json"
URL = "https://raw.githubusercontent.com/ta-lint/ta-lint/main/ta-lint.schema.json"


def main() -> int:
    """Write the schema, or compare it; returns the exit status."""
    parser = argparse.ArgumentParser(description="Make ta-lint.schema.json.")
    parser.add_argument("--check", action="store_true", help="write nothing; exit status 1 if it is stale")
    text = json.dumps(schema(), indent=2) + "\n"
    if not parser.parse_args().check:
        SCHEMA.write_text(text, encoding="utf-8")
    elif not SCHEMA.is_file() or SCHEMA.read_text("utf-8") != text:
        print(f"make_schema.py: stale: {SCHEMA.name}; run python docs/make_schema.py", file=sys.stderr)
        return 1
    return 0


def schema() -> dict[str, Any]:
    """The JSON Schema of a `ta-lint.toml`, and of the table `[tool.ta]`."""
    _, parts = msgspec.json.schema_components([shape()])
    keys = parts["Settings"]["properties"]
    said = dict(descriptions())
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "$id": URL,
        "title": "ta-lint",
        "description": "Settings of ta-lint, in ta-lint.toml or [tool.ta] of pyproject.toml",
        "type": "object",
        "additionalProperties": False,
        "properties": {
            key: {"description": said[key], **_without_null(of, parts)} for key, of in keys.items()
        },
    }


def descriptions() -> Iterator[tuple[str, str]]:
    """Each key with the text below it."""
    (definition,) = ast.parse(inspect.getsource(RawConfig)).body
    assert isinstance(definition, ast.ClassDef)
    for field, below in zip(definition.body, definition.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
            assert isinstance(below, ast.Expr), f"{field.target.id} has no description"
            yield field.target.id.replace("_", "-"), ast.literal_eval(below.value)


def _without_null(of: dict[str, Any], parts: dict[str, Any]) -> dict[str, Any]:
    """The schema of a key in TOML, which has no null: a key that is not set is left out."""
    kind: dict[str, Any]
    (kind,) = [kind for kind in of.get("anyOf", [of]) if kind != {"type": "null"}]
    if "$ref" in kind:
        words = {"Severity": Severity, "InTests": InTests}[kind["$ref"].rpartition("/")[2]]
        kind = {"type": "string", "enum": list(words)}
    return kind | ({"default": of["default"]} if of.get("default") is not None else {})


if __name__ == "__main__":
    raise SystemExit(main())
