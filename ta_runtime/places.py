"""Where things happen: the user's line behind a call, and the line that built each object.

Frames of libraries are passed over, so that a place is always in the user's own code; it is found by walking the stack
and costs microseconds, so the observers ask only when something is built, or on a step that is looked at.
"""

import ast
import dis
import inspect
import linecache
import os
import sys
import sysconfig
import weakref
from collections.abc import Iterator, KeysView
from functools import lru_cache
from itertools import islice
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Any, Generic, NamedTuple, TypeVar

from torch import nn

_V = TypeVar("_V")

_OWN = str(Path(__file__).parent) + os.sep
_LIBRARY_PARTS = {"site-packages", "dist-packages"}
_LIBRARY_ROOTS = tuple(
    f"{root}{os.sep}"
    for root in (
        sysconfig.get_path("stdlib"),
        sysconfig.get_path("platstdlib"),
        str(Path(__file__).parent),
        str(Path(nn.__file__).parents[1]),
    )
)


class Place(NamedTuple):
    """A line of a file, and, where the bytecode tells, the exact expression.

    A tuple, as tuples are hashed and compared in C: places are the keys of what is noted at every step. Lines count from 1. `column` and `end_column` are offsets in UTF-8 bytes from 0, as CPython's `co_positions` gives
    them, None where unknown.
    """

    path: str
    line: int
    end_line: int | None = None
    column: int | None = None
    end_column: int | None = None


NOWHERE = Place("", 1)
"""Where nothing of the user's is on the stack; a report then names the script that runs."""


@lru_cache(maxsize=4096)
def is_library(filename: str) -> bool:
    """Whether a code object's file belongs to Python, torch, an installed package or this tool."""
    if filename.startswith("<") and not filename.startswith("<ipython"):
        return True
    path = Path(filename).absolute()
    return not _LIBRARY_PARTS.isdisjoint(path.parts) or str(path).startswith(_LIBRARY_ROOTS)


def here() -> Place:
    """The innermost line of the user's code on the stack."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if not is_library(frame.f_code.co_filename):
            return of_frame(frame)
        frame = frame.f_back
    return NOWHERE


def of_frame(frame: FrameType) -> Place:
    """The line that a frame is in."""
    return _place(frame.f_code.co_filename, frame.f_code, frame.f_lasti)


def built(instance: object) -> Place:
    """The user's line that is building an object: its own methods, such as its constructors, are passed over."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        if not is_library(code.co_filename) and not _is_method_of(instance, frame):
            return of_frame(frame)
        frame = frame.f_back
    return NOWHERE


def _is_method_of(instance: object, frame: FrameType) -> bool:
    code = frame.f_code
    return code.co_argcount > 0 and frame.f_locals.get(code.co_varnames[0]) is instance


def caller(past: str = "") -> FrameType | None:
    """The frame that called a wrapped function, whatever has wrapped it; a function that runs other code is in file `past`."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and ((name := frame.f_code.co_filename).startswith(_OWN) or name == past):
        frame = frame.f_back
    return frame


def discards(frame: FrameType) -> bool:
    """Whether the code of a frame throws away what the call returns in which it is: the call is a statement."""
    return _pops(frame.f_code, frame.f_lasti)


@lru_cache(maxsize=256)
def _pops(code: CodeType, call: int) -> bool:
    following = (one.opname for one in dis.get_instructions(code) if one.offset > call)
    return next(following, "") == "POP_TOP"


@lru_cache(maxsize=4096)
def _place(filename: str, code: CodeType, instruction: int) -> Place:
    """The file is named beside the code object, as equal code of two files is equal."""
    line, last, column, end_column = next(islice(code.co_positions(), instruction // 2, None))
    if line is None or column is None or end_column is None:
        return Place(filename, line or code.co_firstlineno)
    return Place(filename, line, last, column, end_column)


class Register(Generic[_V]):
    """What is known of objects, by their identity, as they may have no hash; forgets what the run forgets.

    So an object that comes to lie where another was is not taken for it.
    """

    def __init__(self) -> None:
        self._entries: dict[int, tuple[weakref.ref[Any], _V]] = {}

    def __contains__(self, instance: object) -> bool:
        return self.get(instance) is not None

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def ids(self) -> KeysView[int]:
        """Of the objects that still live."""
        return self._entries.keys()

    def instances(self) -> Iterator[Any]:
        """Those that still live, in the order in which they came."""
        for reference, _ in list(self._entries.values()):
            if (instance := reference()) is not None:
                yield instance

    def get(self, instance: object) -> _V | None:
        entry = self._entries.get(id(instance))
        return entry[1] if entry is not None and entry[0]() is instance else None

    def discard(self, instance: object) -> None:
        if instance in self:
            del self._entries[id(instance)]

    def add(self, instance: object, value: _V) -> None:
        key = id(instance)
        entries = self._entries

        def forget(reference: "weakref.ref[Any]") -> None:
            if (entry := entries.get(key)) is not None and entry[0] is reference:
                del entries[key]

        entries[key] = (weakref.ref(instance, forget), value)


BUILT: Register[Place] = Register()
"""Every module, optimizer, loader, scheduler and scaler built while a session was on. See `observers.construction`."""


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
        if not isinstance(node, ast.Assign):
            continue
        target = node.targets[0]
        if not isinstance(target, ast.Attribute) or target.attr != attribute:
            continue
        receiver = ast.unparse(target.value)
        same_end = "." in receiver and "." in owner and receiver.split(".")[-1] == owner.split(".")[-1]
        if receiver == owner or same_end or receiver in each:
            found.append(of_node(path, node))
    return found


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


@lru_cache(maxsize=64)
def syntax(filename: str) -> ast.Module:
    """A file's syntax; empty if it cannot be read or parsed."""
    try:
        return ast.parse("".join(linecache.getlines(filename)))
    except (SyntaxError, ValueError, RecursionError):
        return ast.Module([], [])
