"""TOML, read fast where it is simple: the heads of pages, and the data that every run needs."""

import json
from typing import Any


def parsed(toml: str) -> dict[str, Any]:
    """What a document holds. Of lines `key = value`, with values that JSON writes the same, JSON is faster than `tomllib`.

    Raises:
        ValueError: it is no TOML.
    """
    pairs = [line.partition(" = ") for line in toml.splitlines() if line and line[0] != "#"]
    try:
        fields: dict[str, Any] = json.loads(
            "{" + ",".join(f'"{key}":{value}' for key, _, value in pairs) + "}"
        )
    except ValueError:  # it holds more than that
        fields = {}
    if len(fields) != len(pairs):
        import tomllib

        fields = tomllib.loads(toml)
    return fields
