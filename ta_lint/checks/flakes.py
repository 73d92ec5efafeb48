"""What pyflakes says about a file: it runs once, for TA910 and TA911, and is loaded when first asked."""

from functools import lru_cache
from typing import TYPE_CHECKING

from ta_lint.core.source import Source

if TYPE_CHECKING:
    from pyflakes.messages import Message

# Defined by what runs the file: Jupyter, Databricks, Snakemake, a profiler, gettext. And a builtin of Python 3.13.
ELSEWHERE = frozenset(
    "_ __IPYTHON__ In Out dbutils display displayHTML get_ipython profile sc snakemake spark sqlContext"
    " PythonFinalizationError".split()
)


@lru_cache(maxsize=1)
def messages(source: Source) -> "tuple[Message, ...]":
    """The messages about a file in order of place; none for one that this Python refuses and pyflakes cannot follow."""
    from pyflakes.checker import Checker

    syntax = source.syntax
    if isinstance(syntax, SyntaxError):
        return ()
    try:
        found: list[Message] = Checker(syntax, source.path, builtins=ELSEWHERE, withDoctest=False).messages
    except AssertionError:
        if source.is_compilable:
            raise
        return ()  # a `from __future__` in a class that is in no module, say: pyflakes does not expect it
    return tuple(sorted(found, key=lambda message: (message.lineno, message.col)))


def column(source: Source, line: int, offset: int) -> int:
    """The column, in characters from 1, of an offset as `ast` counts: in bytes of UTF-8."""
    before = source.lines[line - 1].encode()[:offset]
    return len(before.decode(errors="replace")) + 1
