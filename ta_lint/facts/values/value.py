"""What is known of a value: where it is made, on each way that leads to it."""

from collections.abc import Iterable
from dataclasses import dataclass

import libcst as cst

from ta_lint.syntax.tree import Node, is_name

Key = int | str | None
"""Which element of a value: its place, its key or attribute, or None for any of them."""

Path = tuple[Key, ...]


@dataclass(frozen=True, eq=False)
class Frame:
    """A call of a function of the project: what its parameters are given, and in which call that stands itself."""

    call: cst.Call
    function: cst.FunctionDef | cst.Lambda
    outer: "Frame | None"

    @property
    def depth(self) -> int:
        return 1 + (self.outer.depth if self.outer is not None else 0)


@dataclass(frozen=True)
class Origin:
    """The expression that makes a value, in one call of its function; `path` leads to the part of it that is meant.

    An expression that nobody knows is its own origin, and no aspect of it is known.
    """

    node: Node
    path: Path = ()
    frame: Frame | None = None


@dataclass(frozen=True)
class Value:
    """A value by its origins: on each way that leads to it one of them has made it.

    What it is the output of, and whether it holds a graph, is what all of its origins agree on. `aliases` are the uses of
    variables through which it has come.
    """

    origins: tuple[Origin, ...] = ()
    aliases: tuple[Node, ...] = ()

    def join(self, other: "Value") -> "Value":
        """The value that is one of two, as after a branch."""
        return joined((self, other))

    @property
    def tensors(self) -> tuple[Origin, ...]:
        """The origins without `None`, which a variable holds until it has a value."""
        return tuple(origin for origin in self.origins if not is_name(origin.node, "None"))


def joined(values: Iterable[Value]) -> Value:
    """The value that is one of several."""
    every = list(values)
    if len(every) == 1:
        return every[0]
    return Value(
        tuple(dict.fromkeys(origin for value in every for origin in value.origins)),
        tuple(dict.fromkeys(alias for value in every for alias in value.aliases)),
    )
