"""What the source says: where a class, a function or an attribute is defined, and what a statement assigns."""

import ast
import inspect
import linecache
import re
import warnings
from functools import lru_cache
from types import CodeType, FunctionType

from ta_runtime.probes.places import Place, is_library


def of_class(kind: type) -> Place | None:
    """The `class` line of a class of the user's, or of the first it derives from; None for a library's."""
    for base in kind.__mro__:
        if (filename := _file_of(base)) is None or is_library(filename):
            continue
        definition = _classes(filename).get(base.__qualname__)
        return Place(filename, definition.lineno) if definition is not None else Place(filename, 1)
    return None


def definition(code: CodeType) -> ast.FunctionDef | None:
    """The syntax of a function that `def` made; None if its source is not at hand, or has decorators above it."""
    for node in ast.walk(syntax(code.co_filename)):
        if isinstance(node, ast.FunctionDef) and (node.name, node.lineno) == (
            code.co_name,
            code.co_firstlineno,
        ):
            return node
    return None


def of_attribute(kind: type, attribute: str) -> Place | None:
    """The line in the source of a user's class, or of one it derives from, that first assigns `self.<attribute>`."""
    for base in kind.__mro__:
        filename = _file_of(base)
        if filename is None or is_library(filename):
            continue
        if (place := _assignment(filename, base.__qualname__, attribute)) is not None:
            return place
    return None


@lru_cache(maxsize=4096)
def _assignment(filename: str, name: str, attribute: str) -> Place | None:
    """The line in the class of a name that first assigns `self.<attribute>`."""
    if (definition := _classes(filename).get(name)) is None:
        return None
    for node in ast.walk(definition):
        if not isinstance(node, (ast.Assign, ast.AnnAssign)):
            continue
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        if any(ast.unparse(target) == f"self.{attribute}" for target in targets):
            return of_node(filename, node)
    return None


def assigned_to(place: Place) -> str:
    """The variable or attribute that the statement at a place assigns, such as `self.head`; empty if it assigns none."""
    around = [
        node
        for node in ast.walk(syntax(place.path))
        if isinstance(node, ast.Assign) and node.lineno <= place.line <= (node.end_lineno or node.lineno)
    ]
    return ast.unparse(around[-1].targets[0]) if around else ""


def settings_of(attribute: str, owner: str, path: str) -> list[Place]:
    """Where a file sets an attribute of `owner`, such as `self.encoder` or `model`, or of each of a model's modules.

    An owner `self.encoder` is also what another object's attribute of that name is.
    """
    tree = syntax(path)
    loops = [node for node in ast.walk(tree) if isinstance(node, ast.For) and _gives_modules(node.iter)]
    each = {name.id for loop in loops for name in ast.walk(loop.target) if isinstance(name, ast.Name)}
    found = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.stmt) or (set_on := _set_on(node, attribute)) is None:
            continue
        receiver = ast.unparse(set_on)
        same_end = "." in receiver and "." in owner and receiver.split(".")[-1] == owner.split(".")[-1]
        if receiver == owner or same_end or receiver in each:
            found.append(of_node(path, node))
    return found


def _set_on(statement: ast.stmt, attribute: str) -> ast.expr | None:
    """What a statement sets an attribute of, by assignment or `setattr`; None if it does not."""
    match statement:
        case ast.Assign(targets=[ast.Attribute(value=owner, attr=name), *_]) if name == attribute:
            return owner
        case ast.Expr(
            value=ast.Call(func=ast.Name(id="setattr"), args=[owner, ast.Constant(value=name), _])
        ) if name == attribute:
            return owner
    return None


def _gives_modules(iterated: ast.expr) -> bool:
    called = iterated.func if isinstance(iterated, ast.Call) else None
    return isinstance(called, ast.Attribute) and called.attr in (
        "children",
        "modules",
        "named_children",
        "named_modules",
    )


@lru_cache(maxsize=4096)
def _file_of(kind: type) -> str | None:
    """The file that defines a class. Its methods know it even where its module does not: under `exec`, in a cell."""
    for name, value in vars(kind).items():
        if isinstance(value, FunctionType) and value.__code__.co_qualname == f"{kind.__qualname__}.{name}":
            return value.__code__.co_filename
    try:
        return inspect.getfile(kind)
    except (TypeError, OSError):
        return None


@lru_cache(maxsize=64)
def _classes(filename: str) -> dict[str, ast.ClassDef]:
    """The classes of a file by qualified name; none if it cannot be read or parsed."""
    found: dict[str, ast.ClassDef] = {}

    def collect(body: list[ast.stmt], prefix: str) -> None:
        for node in body:
            if isinstance(node, ast.ClassDef):
                found[prefix + node.name] = node
                collect(node.body, f"{prefix}{node.name}.")
            elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                collect(node.body, f"{prefix}{node.name}.<locals>.")

    try:
        collect(syntax(filename).body, "")
    except RecursionError:
        return {}
    return found


def text(place: Place) -> str:
    """The lines of a place, whole; empty where the source is not at hand."""
    lines = range(place.line, (place.end_line or place.line) + 1)
    return "".join(linecache.getline(place.path, line) for line in lines)


def of_node(path: str, node: ast.stmt | ast.expr) -> Place:
    """Where a statement or expression of a file stands."""
    return Place(path, node.lineno, node.end_lineno, node.col_offset, node.end_col_offset)


_MAY_WARN = re.compile(r"\\[^\n\\'\"abfnrtvxNuU0-7]|\d(?:and|else|for|i[fns]|not|or)")
"""An invalid escape, or a number and a keyword in one."""


def parsed(source: str) -> ast.Module:
    """The syntax of a source, of which Python has told all that there is to warn of.

    Filters are only changed for a source that may need it: after that, each warning of the run is told once more.
    """
    if _MAY_WARN.search(source) is None:
        return ast.parse(source)
    with warnings.catch_warnings(action="ignore"):
        return ast.parse(source)


@lru_cache(maxsize=64)
def syntax(filename: str) -> ast.Module:
    """A file's syntax; empty if it cannot be read or parsed."""
    try:
        return parsed("".join(linecache.getlines(filename)))
    except (SyntaxError, ValueError, RecursionError):
        return ast.Module([], [])
