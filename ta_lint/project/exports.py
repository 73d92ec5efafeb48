"""What a file binds at its top: cheap enough to ask of every file that another one imports."""

import ast
import re
import warnings
from collections.abc import Iterator
from typing import NamedTuple

_HERE = ""
_NESTED = ("body", "orelse", "finalbody", "handlers", "cases")
_BLOCKS = frozenset(
    {ast.If, ast.For, ast.AsyncFor, ast.While, ast.With, ast.AsyncWith, ast.Try, ast.TryStar, ast.Match}
    | {ast.ExceptHandler, ast.match_case}
)

# A function or class at the top, with all lines up to the next one that begins at the margin, other than with a bracket.
_DEFINITION = re.compile(
    r"^(?P<kind>async[ ]+def|def|class)[ ]+(?P<name>\w+)[^\n]*\n(?:[ \t\f\r#)\]}][^\n]*\n|\n)*",
    re.MULTILINE,
)
_HEAD = re.compile(r"^class[^:]*(?=:[ \t]*(?:#[^\n]*)?\n)", re.MULTILINE)


class Exports(NamedTuple):
    """The names that other files can import from a file.

    `names` gives the imports that bind each (`torch.nn`, `.models.Net`), with `""` for what the file defines itself;
    `stars` are the modules of which it imports everything. `classes` are the classes with their bases as written, `functions`
    the functions.
    """

    names: dict[str, frozenset[str]]
    stars: tuple[str, ...]
    classes: dict[str, tuple[str, ...]]
    functions: frozenset[str]

    def target(self, name: str) -> str | None:
        """The one import that binds a name, `""` if the file defines it; None if it is not bound, or in several ways."""
        found = self.names.get(name, frozenset())
        return next(iter(found)) if len(found) == 1 else None


def exports(text: str) -> Exports | None:
    """The exports of a file with this text; None if Python cannot parse what is at its top.

    Bodies of functions and classes are left out before parsing, which is most of a file. Where that tears a string apart,
    the whole is parsed.
    """
    syntax = _parsed(_DEFINITION.sub(_without_body, text)) or _parsed(text)
    if syntax is None:
        return None
    names: dict[str, set[str]] = {}
    stars: list[str] = []
    classes: dict[str, tuple[str, ...]] = {}
    functions: set[str] = set()
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
            if isinstance(statement, ast.ClassDef):
                classes[statement.name] = tuple(map(_written, statement.bases))
            elif isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
                functions.add(statement.name)
    found = {name: frozenset(targets) for name, targets in names.items()}
    return Exports(found, tuple(stars), classes, frozenset(functions))


def _without_body(definition: re.Match[str]) -> str:
    if definition["kind"] != "class":
        return f"def {definition['name']}(): pass\n"
    head = _HEAD.search(definition[0])
    return f"{head[0] if head is not None else definition[0]}: pass\n"


def _written(base: ast.expr) -> str:
    """A base class as it is written, without type arguments: `Dataset` for `Dataset[Sample]`."""
    written = base.value if isinstance(base, ast.Subscript) else base
    return written.id if isinstance(written, ast.Name) else ast.unparse(written)


def _parsed(text: str) -> ast.Module | None:
    try:
        with warnings.catch_warnings(action="ignore"):  # about invalid escapes, which its own linting tells
            return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _at_the_top(syntax: ast.Module) -> Iterator[ast.stmt]:
    """The statements outside of functions and classes, in source order."""
    pending: list[ast.AST] = [*reversed(syntax.body)]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.stmt):
            yield node
        if type(node) in _BLOCKS:
            inner = [child for field in _NESTED for child in getattr(node, field, ())]
            pending += reversed(inner)


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
        if isinstance(target, ast.Name):
            yield target.id
        else:
            yield from (node.id for node in ast.walk(target) if isinstance(node, ast.Name))
