"""Pyflakes' messages about a file: computed once, for TA910 and TA911; pyflakes is imported on first use."""

import ast
from functools import cache, lru_cache
from typing import TYPE_CHECKING

from ta_lint.core.source import Source

if TYPE_CHECKING:
    from pyflakes.checker import Checker
    from pyflakes.messages import Message

# Names defined by the environment: Jupyter, Databricks, Snakemake, a profiler, gettext. And a builtin of Python 3.13.
ELSEWHERE = frozenset(
    "_ __IPYTHON__ In Out dbutils display displayHTML get_ipython profile sc snakemake spark sqlContext"
    " PythonFinalizationError".split()
)

_MANY_CASES = 20


@lru_cache(maxsize=1)
def messages(source: Source) -> "tuple[Message, ...]":
    """The messages about a file in source order; none if it cannot be parsed, or pyflakes fails on invalid code."""
    from pyflakes.checker import Checker

    syntax = source.syntax
    if isinstance(syntax, SyntaxError):
        return ()
    kind = Checker if source.text.count("case ") < _MANY_CASES else _checker_of_many_cases()
    try:
        checker = kind(syntax, source.path, builtins=ELSEWHERE, withDoctest=False)
    except AssertionError:
        if source.is_compilable:
            raise
        return ()  # pyflakes fails, for example, on `from __future__` inside a class
    found: list[Message] = checker.messages
    # Scopes, bindings and the checker refer to one another, and to the whole tree.
    for scope in checker.deadScopes:
        scope.clear()
    vars(checker).clear()
    return tuple(sorted(found, key=lambda message: (message.lineno, message.col)))


@cache
def _checker_of_many_cases() -> "type[Checker]":
    """Pyflakes' checker for a long `match`.

    For each name that is bound again, pyflakes looks for both places in all cases: in n cases that takes n² steps.
    """
    from pyflakes.checker import Checker

    class OfManyCases(Checker):  # type: ignore[misc]
        def differentForks(self, lnode: ast.AST, rnode: ast.AST) -> bool:
            around = self.getCommonAncestor(lnode, rnode, self.root)
            if not isinstance(around, ast.Match):
                return bool(super().differentForks(lnode, rnode))
            cases = self.__dict__.setdefault("cases", {})
            if around not in cases:
                cases[around] = {node: case for case in around.cases for node in ast.walk(case)}
            return cases[around].get(lnode) is not cases[around].get(rnode)

    return OfManyCases


@lru_cache(maxsize=1)
def nodes(source: Source) -> tuple[ast.AST, ...]:
    """All nodes of a file that can be parsed, a parent before its children."""
    syntax = source.syntax
    return tuple(ast.walk(syntax)) if isinstance(syntax, ast.Module) else ()


def column(source: Source, line: int, offset: int) -> int:
    """The column, in characters from 1, of an offset that `ast` counts in UTF-8 bytes."""
    before = source.lines[line - 1].encode()[:offset]
    return len(before.decode(errors="replace")) + 1
