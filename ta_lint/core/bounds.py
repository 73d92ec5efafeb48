"""Limits on nesting and on the length of chains, so that every file parses within seconds.

For a chain such as `a.b().c[0]`, libcst's parser copies everything before each link (and less of it for a sum), so its time
grows quadratically: a thousand links take seconds, ten thousand take minutes. Even deeper nesting overflows any stack.
People write chains of about twenty links; the worst of 4,000 real files needs a fiftieth of the work allowed here.
"""

import ast
import re
from collections.abc import Iterable

from ta_lint.core.errors import Unreadable
from ta_lint.core.source import Source

DEEPEST = 5_000
"""Levels of a tree. The slowest traversal makes ten calls per level; the stack of a `runner` thread has room for that."""

_MOST_WORK = 5_000_000  # units of about a microsecond
_WORK = {ast.Attribute: 5, ast.Call: 5, ast.Subscript: 5}  # units per node below; 1 for other expressions
_LINKED = 16  # shallower expressions cost next to nothing

_SYMBOLS = (
    ast.expr_context,
    ast.operator,
    ast.unaryop,
    ast.boolop,
    ast.cmpop,
)  # `ast` shares one object for all nodes of such a type

# A possible link in a statement without blanks, other than the sign of a number or its decimal point.
_LINK = re.compile(r"(?<=[^\W\d])[.(\[]|(?<=[\])])[.(\[]|(?<=[^,(\[{:=])[-+~*/%@&|^]|lambda|not|if|await")
_MOST_LINKS = 2_000


def too_deep(levels: int | None = None) -> Unreadable:
    """The error for a file that is nested deeper than `DEEPEST`."""
    found = f"it is nested {levels:,} deep" if levels is not None else "it is nested too deep"
    return Unreadable(f"{found}; at most {DEEPEST:,} levels are read")


def check_work(syntax: Iterable[ast.AST]) -> None:
    """Check that libcst can parse this code within seconds.

    Raises:
        Unreadable: it cannot; the position is that of the longest chain.
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
    """Whether libcst may take minutes for a file that Python cannot parse, so that `check_work` has no tree to measure."""
    links = (len(_LINK.findall(statement.text)) for statement in source.statements)
    return sum(count * count for count in links if count > _LINKED) > _MOST_LINKS * _MOST_LINKS
