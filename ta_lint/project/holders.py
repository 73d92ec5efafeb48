"""The definitions around a line that nothing in their own file runs, so that code elsewhere would have to name them.

A name is a use wherever it stands: in a call, as an attribute, in a string that `getattr` or a settings file may mean. So
what has no use is certainly not called by this file.
"""

import ast
import re
from collections.abc import Iterator
from functools import cached_property

from ta_lint.core.finding import Holder, Site
from ta_lint.core.source import Source
from ta_lint.project.reach import LOOKS_UP

# Functions that a program, a test runner or a server finds by their name.
_CALLED_BY_NAME = frozenset(
    "collate_fn forward input_fn lambda_handler main model_fn output_fn predict_fn setup teardown".split()
)
_FOUND = re.compile(r"__\w+__|[Tt]est\w*|pytest_\w+")

# Decorators that return the function, or a wrapper of it, and tell nobody else about it.
_TELLS_NOBODY = frozenset(
    "abstractmethod autocast cache cached_property classmethod contextmanager dataclass enable_grad final inference_mode jit "
    "lru_cache njit no_grad overload override property script setter staticmethod total_ordering wraps".split()
)
_NO_CALLERS = frozenset("ABC Generic Protocol object".split())  # bases that call nothing

_WORD = re.compile(r"[^\W\d]\w*")
_LONGEST = 10_000  # characters of a string that may name something

_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_WITH_DOCSTRING = frozenset({ast.Module, *_DEFINITIONS})
_NAMED = frozenset({ast.Name, ast.Attribute, ast.alias, ast.keyword, ast.Constant})


class Holders:
    """Queries about one file."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._around: dict[ast.AST, tuple[_Definition, ...]] = {}
        self._mentions: dict[str, list[tuple[_Definition, ...]]] = {}
        self._definitions: list[_Definition] = []
        self._first: dict[_Definition, int] = {}  # line, that of a decorator if there is one
        self._found: dict[_Definition, bool] = {}
        if isinstance(source.syntax, ast.Module):
            self._read(source.syntax)

    def of(self, line: int) -> tuple[Holder, ...]:
        """The definitions around a line that nothing in this file runs, the outer ones first."""
        if self._looks_up:
            return ()
        return tuple(
            self._holder(definition, needs)
            for definition in self._definitions
            if self._first[definition] <= line <= (definition.end_lineno or 0)
            and (needs := self._needed(definition)) is not None
        )

    # -- reading ----------------------------------------------------------------------------------------------

    def _read(self, syntax: ast.Module) -> None:
        pending: list[tuple[ast.AST, tuple[_Definition, ...]]] = [(syntax, ())]
        while pending:
            node, around = pending.pop()
            kind = type(node)
            if kind in _NAMED:
                for word in _words(node):
                    self._mentions.setdefault(word, []).append(around)
            if kind not in _WITH_DOCSTRING:
                pending += [(child, around) for child in ast.iter_child_nodes(node)]
                continue
            inner = around
            if isinstance(node, _DEFINITIONS):
                self._definitions.append(node)
                self._around[node] = around
                self._first[node] = min((node.lineno, *(one.lineno for one in node.decorator_list)))
                inner = (*around, node)
            docstring = _docstring(node)
            outside = {*_outside(node)}
            for child in ast.iter_child_nodes(node):
                if child is not docstring:
                    pending.append((child, around if child in outside else inner))
        self._definitions.sort(key=lambda definition: definition.lineno)

    @cached_property
    def _looks_up(self) -> bool:
        return LOOKS_UP.search(self._source.text.encode("utf-8", "surrogatepass")) is not None

    @cached_property
    def _is_script(self) -> bool:
        """Whether the file does something when it runs: a notebook, `if __name__ == "__main__"`, `main()`, a loop."""
        syntax = self._source.syntax
        if self._source.notebook is not None or not isinstance(syntax, ast.Module):
            return True
        return any(map(_does_something, syntax.body))

    # -- what runs --------------------------------------------------------------------------------------------

    def _needed(self, definition: _Definition) -> frozenset[str] | None:
        """The names of which code elsewhere must have one for a definition to run, if what is around it does.

        None if something in this file runs it, or a framework may. What has its name may itself be unused.
        """
        if self._may_be_found(definition):
            return None
        names: set[str] = set()
        pending = [definition]
        seen: set[_Definition] = set()
        while pending:
            user = pending.pop()
            if user in seen:
                continue
            seen.add(user)
            if all(isinstance(outer, ast.ClassDef) for outer in self._around[user]):
                names.add(user.name)
            for place in self._mentions.get(user.name, ()):
                if user in place:
                    continue
                unused = [outer for outer in place if not self._may_be_found(outer)]
                if not unused:
                    return None
                pending.append(unused[-1])
        return frozenset(names)

    def _may_be_found(self, definition: _Definition) -> bool:
        """Whether a framework or a library may call a definition, without a word of it in this project."""
        if definition not in self._found:
            self._found[definition] = self._is_found(definition)
        return self._found[definition]

    def _is_found(self, definition: _Definition) -> bool:
        name, around = definition.name, self._around[definition]
        if name in _CALLED_BY_NAME or _FOUND.fullmatch(name):
            return True
        if any(_last_name(decorator) not in _TELLS_NOBODY for decorator in definition.decorator_list):
            return True
        if isinstance(definition, ast.ClassDef):
            return bool(definition.keywords) or any(
                "TestCase" in _last_name(base) for base in definition.bases
            )
        outer = around[-1] if around else None
        if not isinstance(outer, ast.ClassDef):
            return False
        return bool(outer.keywords) or any(_last_name(base) not in _NO_CALLERS for base in outer.bases)

    def _holder(self, definition: _Definition, names: frozenset[str]) -> Holder:
        chain = (*self._around[definition], definition)
        column = definition.col_offset + 1
        site = Site(self._source.path, definition.lineno, column, definition.lineno, column + 1)
        public = not any(one.name.startswith("_") for one in chain) and definition.name in names
        return Holder(definition.name, site, tuple(sorted(names)), public, self._is_script)


def _words(node: ast.AST) -> Iterator[str]:
    """The names that a node itself, one of `_NAMED`, has or may mean."""
    if isinstance(node, ast.Name):
        yield node.id
    elif isinstance(node, ast.Attribute):
        yield node.attr
    elif isinstance(node, ast.alias):
        yield from node.name.split(".")
    elif isinstance(node, ast.keyword) and node.arg is not None:
        yield node.arg
    elif isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value) <= _LONGEST:
        yield from _WORD.findall(node.value)


def _docstring(node: ast.AST) -> ast.AST | None:
    body = node.body if isinstance(node, (ast.Module, *_DEFINITIONS)) else []
    first = body[0] if body else None
    is_text = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    return first if is_text else None


def _outside(node: ast.AST) -> Iterator[ast.AST]:
    """The parts of a definition that run where it is defined."""
    if isinstance(node, _DEFINITIONS):
        yield from node.decorator_list
        yield from node.bases if isinstance(node, ast.ClassDef) else (node.args,)


def _last_name(node: ast.expr) -> str:
    """`no_grad` of `torch.no_grad()`, `Generic` of `Generic[T]`."""
    while isinstance(node, (ast.Call, ast.Subscript)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _does_something(statement: ast.stmt) -> bool:
    if isinstance(statement, (ast.For, ast.While, ast.With, ast.AsyncFor)):
        return True
    if isinstance(statement, ast.If):
        return any(isinstance(node, ast.Name) and node.id == "__name__" for node in ast.walk(statement.test))
    called = (
        statement.value.func
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call)
        else None
    )
    return isinstance(called, ast.Name)
