"""How deep code may nest, and how long its chains may be, so that a file is read in seconds.

libcst's parser copies what it has read of `a.b().c[0]` at each link, and less of a sum: the time grows with the square. A
thousand links take seconds, ten thousand minutes. What is nested still deeper overflows any stack. People write chains
of twenty links; the largest of 4,000 real files is a fiftieth of the work allowed here.
"""

import ast
import re
from collections.abc import Iterable

from ta_lint.core.errors import Unreadable
from ta_lint.core.source import Source

DEEPEST = 5_000
"""Levels of a tree. Ten calls for each, as the slowest reader takes, are what a thread of `runner` has room for."""

_MOST_WORK = 5_000_000  # of about a microsecond each
_WORK = {ast.Attribute: 5, ast.Call: 5, ast.Subscript: 5}  # for each node below; 1 for another expression
_LINKED = 16  # expressions that are nested less cost next to nothing

_SYMBOLS = (
    ast.expr_context,
    ast.operator,
    ast.unaryop,
    ast.boolop,
    ast.cmpop,
)  # one object for all of a kind

# What may be a link, in a statement without blanks: but for the minus of a negative number and the point of a fraction.
_LINK = re.compile(r"(?<=[^\W\d])[.(\[]|(?<=[\])])[.(\[]|(?<=[^,(\[{:=])[-+~*/%@&|^]|lambda|not|if|await")
_MOST_LINKS = 2_000


def too_deep(levels: int | None = None) -> Unreadable:
    """Why a file is not read that is nested deeper than `DEEPEST`."""
    found = f"it is nested {levels:,} deep" if levels is not None else "it is nested too deep"
    return Unreadable(f"{found}; at most {DEEPEST:,} levels are read")


def check_work(syntax: Iterable[ast.AST]) -> None:
    """See that libcst would be done with this code within seconds.

    Raises:
        Unreadable: it would not; the place is that of the longest chain.
    """
    work = 0
    longest: tuple[int, ast.AST | None] = (0, None)
    for tree in syntax:
        sizes: dict[int, int] = {}
        depths: dict[int, int] = {}
        for node in reversed([node for node in ast.walk(tree) if not isinstance(node, _SYMBOLS)]):
            size, depth = 1, 0
            for child in ast.iter_child_nodes(node):
                if not isinstance(child, _SYMBOLS):
                    size += sizes[id(child)]
                    depth = max(depth, depths[id(child)])
            sizes[id(node)] = size
            depths[id(node)] = depth = depth + 1 if isinstance(node, ast.expr) else 0
            if depth >= _LINKED:
                work += size * _WORK.get(type(node), 1)
                longest = max(longest, (depth, node), key=lambda found: found[0])
    levels, chain = longest
    if work > _MOST_WORK and isinstance(chain, ast.expr):
        reason = f"it chains too many operations, up to {levels:,} in one expression: split it"
        raise Unreadable(reason, chain.lineno)


def may_take_minutes(source: Source) -> bool:
    """Whether libcst may take that long for a file that Python cannot parse, so that there is no tree to measure."""
    links = (len(_LINK.findall(statement.text)) for statement in source.statements)
    return sum(count * count for count in links if count > _LINKED) > _MOST_LINKS * _MOST_LINKS
