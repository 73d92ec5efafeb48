"""TOML, read fast where it is simple: the heads of pages, and the data that every run needs."""

import json
from typing import Any

from ta_lint.core.lazy import regex

# A table's name: words, or quoted where it holds dots, with dots between. `torch.symeig` is one name, of one table.
_NAME = r'(?:[A-Za-z0-9_-]+|"[^"\\]+")'
_HEAD = regex(rf"\[({_NAME}(?:\.{_NAME})*)\]")
_PART = regex(r'[\w-]+|"[^"]+"')
_OF_JSON_ALONE = frozenset({"null", "NaN", "Infinity", "-Infinity"})


class _NotSimple(ValueError):
    """A document that `tomllib` has to read, or to refuse."""


def parsed(toml: str) -> dict[str, Any]:
    """What a document holds.

    Of tables whose values stand on one line each and are written in JSON as they are here, or as plain text between single
    quotes, JSON reads ten times as fast as `tomllib`.

    Raises:
        ValueError: it is no TOML.
    """
    try:
        return _simple(toml)
    except ValueError:
        import tomllib

        return tomllib.loads(toml)


def _is_key(text: str) -> bool:
    """Whether text is a name, plain or quoted; an expression would take longer to compile than most files to read."""
    if text[:1] == '"':
        return len(text) > 2 and text[-1] == '"' and text.count('"') == 2 and "\\" not in text
    return text.isascii() and text.replace("-", "_").isidentifier()


def _simple(toml: str) -> dict[str, Any]:
    """The same of simple tables. Raises ValueError for all else, a key or a table that is there twice included."""
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
    """The name of each table, in its parts, and the lines of each as members of a JSON object; the first has no name."""
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
    """A table to where its name says."""
    above = fields
    for name in names[:-1]:
        above = above.setdefault(name, {})
        if not isinstance(above, dict):
            raise _NotSimple("a value and a table of the same name")
    if names[-1] in above:
        raise _NotSimple("a table twice")
    above[names[-1]] = table
