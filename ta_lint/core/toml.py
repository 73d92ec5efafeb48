"""A fast reader for simple TOML, such as the metadata of pages and the data that every run needs."""

import json
from typing import Any

from ta_lint.core.lazy import regex

# A table's name: parts joined by dots, quoted if they contain dots themselves, as `"torch.symeig"` does.
_NAME = r'(?:[A-Za-z0-9_-]+|"[^"\\]+")'
_HEAD = regex(rf"\[({_NAME}(?:\.{_NAME})*)\]")
_PART = regex(r'[\w-]+|"[^"]+"')
_OF_JSON_ALONE = frozenset({"null", "NaN", "Infinity", "-Infinity"})


class _NotSimple(ValueError):
    """The document needs `tomllib`, which may also refuse it."""


def parsed(toml: str) -> dict[str, Any]:
    """Parse a TOML document.

    If each value is on one line and is also valid JSON, or plain text in single quotes, `json` parses it ten times as fast
    as `tomllib`.

    Raises:
        ValueError: the document is not valid TOML.
    """
    try:
        return _simple(toml)
    except ValueError:
        import tomllib

        return tomllib.loads(toml)


def _is_key(text: str) -> bool:
    """Whether text is a plain or quoted key. Compiling a regular expression would take longer than parsing most files."""
    if text[:1] == '"':
        return len(text) > 2 and text[-1] == '"' and text.count('"') == 2 and "\\" not in text
    return text.isascii() and text.replace("-", "_").isidentifier()


def _simple(toml: str) -> dict[str, Any]:
    """As `parsed`, for simple tables. Raises ValueError for anything else, including a duplicate key or table."""
    heads, tables = _as_json(toml)
    found: list[dict[str, Any]] = json.loads(f"[{','.join('{' + ','.join(lines) + '}' for lines in tables)}]")
    if len(found) != len(tables):
        raise _NotSimple("a value that closes its table")
    if any(len(lines) != len(table) for lines, table in zip(tables, found, strict=True)):
        raise _NotSimple("a key twice, or two on one line")
    fields = found[0]
    for names, table in zip(heads[1:], found[1:], strict=True):
        _put(table, names, fields)
    return fields


def _as_json(toml: str) -> tuple[list[list[str]], list[list[str]]]:
    """The name of each table, split into parts, and its lines as members of a JSON object; the first table has no name."""
    heads: list[list[str]] = [[]]
    tables: list[list[str]] = [[]]
    for line in toml.splitlines():
        if not line or line[0] == "#":
            continue
        if line[0] == "[":
            if (head := _HEAD.fullmatch(line)) is None:
                raise _NotSimple(line)
            heads.append([part.strip('"') for part in _PART.findall(head[1])])
            tables.append([])
            continue
        key, _, value = line.partition(" = ")
        if not _is_key(key) or value in _OF_JSON_ALONE:
            raise _NotSimple(line)
        if value[:1] == value[-1:] == "'" and value.count("'") == 2:
            value = json.dumps(value[1:-1])
        tables[-1].append(f'"{key}":{value}' if key[0] != '"' else f"{key}:{value}")
    return heads, tables


def _put(table: dict[str, Any], names: list[str], fields: dict[str, Any]) -> None:
    """Put a table where its name says."""
    above = fields
    for name in names[:-1]:
        above = above.setdefault(name, {})
        if not isinstance(above, dict):
            raise _NotSimple("a value and a table of the same name")
    if names[-1] in above:
        raise _NotSimple("a table twice")
    above[names[-1]] = table
