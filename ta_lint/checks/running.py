"""Whether a file runs code of its own when it is loaded, as a script does and a library does not; for `NEEDS`."""

import re
from collections.abc import Callable

from ta_lint.checks.gate import Text
from ta_lint.facts.patterns import ARGUMENTS

# A function or class that is in no other, with its body. What stands in the parentheses of its head runs outside.
_DEFINITION = re.compile(
    rf"^(?:async[ \t]+)?(?:def|class)[ \t]+\w++(?:(\({ARGUMENTS}\))|(?=[ \t]*:))[^\n]*+"
    r"(?:\n(?:[ \t\f#][^\n]*+|\r)?(?=\n|\Z))*+".encode(),
    re.MULTILINE,
)
_DEFINED = re.compile(rb"\b(?:def|class)[ \t]+(\w+)")
_CALLED = re.compile(rb"(\w+)\s*\(")


def runs(*names: str) -> Callable[[Text], bool]:
    """Whether outside of functions and classes one of these is called, or a function or class of the same file."""
    wanted = frozenset(name.encode() for name in names)

    def holds(text: Text) -> bool:
        called = {*_CALLED.findall(_DEFINITION.sub(_outside, text.data))}
        return not called.isdisjoint({*_DEFINED.findall(text.data), *wanted})

    return holds


def _outside(definition: re.Match[bytes]) -> bytes:
    whole = definition[0]
    if whole.count(b'"""') % 2 or whole.count(b"'''") % 2:
        return whole  # a part of a string, or its end
    return definition[1] or b""
