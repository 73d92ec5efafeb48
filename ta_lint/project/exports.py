"""What a file binds at its top, by Python's own tree: cheap enough to ask of every file that another one imports."""

import ast
from collections.abc import Iterator
from typing import NamedTuple

_HERE = ""
_NESTED = ("body", "orelse", "finalbody", "handlers", "cases")


class Exports(NamedTuple):
    """The names that other files can import from a file.

    `names` gives the imports that bind each (`torch.nn`, `.models.Net`), with `""` for what the file defines itself;
    `stars` are the modules of which it imports everything; `attributes` are the names that it sets on `self`, or binds in a
    class.
    """

    names: dict[str, frozenset[str]]
    stars: tuple[str, ...]
    attributes: frozenset[str]

    def target(self, name: str) -> str | None:
        """The one import that binds a name, `""` if the file defines it; None if it is not bound, or in several ways."""
        found = self.names.get(name, frozenset())
        return next(iter(found)) if len(found) == 1 else None


def exports(syntax: ast.Module) -> Exports:
    """The exports of a file."""
    names: dict[str, set[str]] = {}
    stars: list[str] = []
    for statement in _at_the_top(syntax):
        if isinstance(statement, ast.ImportFrom):
            package = "." * statement.level + (statement.module or "")
            joint = "" if package.endswith(".") else "."
            for alias in statement.names:
                if alias.name == "*":
                    stars.append(package)
                else:
                    names.setdefault(alias.asname or alias.name, set()).add(f"{package}{joint}{alias.name}")
        elif isinstance(statement, ast.Import):
            for alias in statement.names:
                top = alias.name.partition(".")[0]
                names.setdefault(alias.asname or top, set()).add(alias.name if alias.asname else top)
        else:
            for name in _bound(statement):
                names.setdefault(name, set()).add(_HERE)
    found = {name: frozenset(targets) for name, targets in names.items()}
    return Exports(found, tuple(stars), frozenset(_attributes(syntax)))


def _at_the_top(syntax: ast.Module) -> Iterator[ast.stmt]:
    """The statements outside of functions and classes, in source order."""
    pending: list[ast.AST] = [*reversed(syntax.body)]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.stmt):
            yield node
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            inner = [child for field in _NESTED for child in getattr(node, field, ())]
            pending += reversed(inner)


def _attributes(syntax: ast.Module) -> Iterator[str]:
    for node in ast.walk(syntax):
        if isinstance(node, ast.Attribute):
            if (
                isinstance(node.ctx, ast.Store)
                and isinstance(node.value, ast.Name)
                and node.value.id == "self"
            ):
                yield node.attr
        elif isinstance(node, ast.ClassDef):
            for statement in node.body:
                yield from _bound(statement)


def _bound(statement: ast.stmt) -> Iterator[str]:
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        yield statement.name
        return
    targets: list[ast.expr] = []
    if isinstance(statement, ast.Assign):
        targets = statement.targets
    elif isinstance(statement, (ast.AnnAssign, ast.AugAssign, ast.For, ast.AsyncFor)):
        targets = [statement.target]
    elif isinstance(statement, (ast.With, ast.AsyncWith)):
        targets = [item.optional_vars for item in statement.items if item.optional_vars is not None]
    for target in targets:
        yield from (node.id for node in ast.walk(target) if isinstance(node, ast.Name))
