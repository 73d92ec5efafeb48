"""Splits a program of one file into a small package, as people write it: models, data, engine, train."""

import ast
import builtins
from collections.abc import Iterator

_MAIN = "train"


def split(code: str) -> dict[str, str]:
    """The files of the package by name, each with its part of the lines; the one file as it is if nothing can move.

    Classes go to `models.py` and `data.py`, functions to `engine.py`; what uses a variable of the script stays in
    `train.py`, and so does what a name that is bound twice stands for. Each file has the imports of the original, and those
    of what it uses of the others.
    """
    tree = ast.parse(code)
    lines = code.splitlines()
    imports = [part for part in tree.body if isinstance(part, (ast.Import, ast.ImportFrom))]
    outside = {alias.asname or alias.name.partition(".")[0] for part in imports for alias in part.names}
    if "*" in outside or any(
        isinstance(part, ast.ImportFrom) and part.module == "__future__" for part in imports
    ):
        return {f"{_MAIN}.py": code}
    homes = _homes(tree, outside)
    parts: dict[str, list[str]] = {}
    used: dict[str, set[str]] = {}
    for statement in tree.body:
        if statement in imports:
            continue
        home = homes.get(getattr(statement, "name", ""), _MAIN)
        parts.setdefault(home, []).extend(_lines(statement, tree, lines))
        used.setdefault(home, set()).update(_names(statement))
    files = {}
    for home, body in parts.items():
        above = [text for part in imports for text in _lines(part, tree, lines)]
        for other in sorted(parts.keys() - {home}):
            wanted = sorted(name for name in used[home] if homes.get(name) == other)
            above += [f"from {other} import {', '.join(wanted)}"] if wanted else []
        files[f"{home}.py"] = "\n".join([*above, *body]) + "\n"
    return files


def _homes(tree: ast.Module, outside: set[str]) -> dict[str, str]:
    """The file of each function and class that can move: what it needs is imported, or moves too."""
    bound = [name for statement in tree.body for name in _bound(statement)]
    found = {
        part.name: _home(part)
        for part in tree.body
        if isinstance(part, (ast.ClassDef, ast.FunctionDef)) and bound.count(part.name) == 1
    }
    needs = {name: _names(part) for part in tree.body if (name := getattr(part, "name", "")) in found}
    while True:
        stay = {
            name for name in found if needs[name] & set(bound) - found.keys() - outside - set(dir(builtins))
        }
        order = {"models": 0, "data": 1, "engine": 2}
        stay |= {  # no circles
            name
            for name in found
            for other in needs[name] & found.keys()
            if order[found[other]] > order[found[name]]
        }
        if not stay:
            return found
        for name in stay:
            del found[name]


def _home(part: ast.ClassDef | ast.FunctionDef) -> str:
    if isinstance(part, ast.FunctionDef):
        return "engine"
    bases = " ".join(ast.unparse(base) for base in part.bases)
    return "data" if "Dataset" in bases or "Sampler" in bases else "models"


def _bound(statement: ast.stmt) -> Iterator[str]:
    """The names that a statement at the top binds."""
    if isinstance(statement, (ast.Import, ast.ImportFrom)):
        return
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        yield statement.name
        return
    for node in ast.walk(statement):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


def _names(statement: ast.stmt) -> set[str]:
    return {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)}


def _lines(statement: ast.stmt, tree: ast.Module, lines: list[str]) -> list[str]:
    """The lines of a statement with its decorators, and the comments above it."""
    decorators = getattr(statement, "decorator_list", [])
    first = min([statement.lineno, *(part.lineno for part in decorators)])
    while first > 1 and lines[first - 2].startswith("#"):
        first -= 1
    return lines[first - 1 : statement.end_lineno]
