"""The options of a command line: `args.epochs` of `parser.add_argument("--epochs", default=3)`."""

import libcst as cst

from ta_lint.facts.values.calls import called_name
from ta_lint.facts.values.value import Origin
from ta_lint.syntax.tree import Node, Tree, argument, literal_text

# The methods that return the options, and how many steps of a path lead to one.
_PARSES = {"parse_args": 1, "parse_known_args": 2}


def usual(origin: Origin, tree: Tree) -> Node | None:
    """The expression that makes a value; of an option, its default, which it is where nobody gives another.

    None for a part of anything else, and for an option without a default.
    """
    if not origin.path:
        return origin.node
    parsed, name = origin.node, origin.path[-1]
    if not isinstance(parsed, cst.Call) or _PARSES.get(called_name(parsed) or "") != len(origin.path):
        return None
    calls = tree.within(tree.root_of(parsed), cst.Call)
    added = [call for call in calls if called_name(call) == "add_argument" and _name(call) == name]
    return argument(added[0], "default") if len(added) == 1 else None


def _name(added: cst.Call) -> str | None:
    """The attribute under which the options have what a call adds: that of its first long flag, or what `dest` says."""
    if (dest := argument(added, "dest")) is not None:
        return literal_text(dest)
    flags = [text for arg in added.args if arg.keyword is None and (text := literal_text(arg.value))]
    named = next((flag for flag in flags if flag.startswith("--")), flags[0] if flags else "")
    return named.lstrip("-").replace("-", "_")
