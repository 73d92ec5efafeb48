"""Where names are bound: the frame of a module, a class body or a function call."""

from dataclasses import dataclass, field
from itertools import count
from typing import Any

from ta_lint.dryrun.state import Changes
from ta_lint.dryrun.streams import Consumer
from ta_lint.dryrun.values import Class, Function, Place, Value

moments = count()
"""Numbers frames and recordings in the order in which they begin."""


class Frame:
    """The names of a module, a class body or one call of a function, and what that call has left so far."""

    __slots__ = (
        "born",
        "call",
        "consumer",
        "exits",
        "file",
        "function",
        "is_of_others",
        "looked_at",
        "mark",
        "module",
        "names",
        "outer",
        "outside",
        "owner",
        "receiver",
        "returned",
        "site",
    )

    def __init__(
        self,
        file: str,
        outer: "Frame | None" = None,
        function: Function | None = None,
        owner: Class | None = None,
    ) -> None:
        self.born = next(moments)
        """When it began, as counted by `moments`."""
        self.file = file
        self.outer = outer
        self.module: Frame = self if outer is None else outer.module
        self.function = function
        self.owner = owner
        """The class whose body this is, or whose method."""
        self.receiver: Value | None = None
        """What the first argument of a method is."""
        self.names: dict[str, Value] = {}
        self.looked_at = 0
        """Of a module: how many of its names have been asked for other libraries that train networks,"""
        self.is_of_others = False
        """and whether there is one."""
        self.outside: dict[str, Frame] = {}
        """The frames of the names that `global` and `nonlocal` declare here."""
        self.returned: list[Value] = []
        self.exits: list[Changes] = []
        self.mark = 0
        self.call: Place | None = None
        """Of a function: where it is called."""
        self.site: Place | None = None
        """Of a function of a stub: where the program calls into it. What it does happens there."""
        self.consumer: Consumer | None = None
        """What becomes of a value that is yielded."""

    def holder(self, name: str) -> "Frame | None":
        """The frame that a name is looked up in: the nearest that binds it. Names of a class body are seen by no function in it."""
        if name in self.outside:
            return self.outside[name]
        frame: Frame | None = self
        while frame is not None:
            if name in frame.names and (frame is self or frame.owner is None or frame.function is not None):
                return frame
            frame = frame.outer
        return None


@dataclass(slots=True)
class Pass:
    """One pass of a loop, as it runs."""

    loop: Place
    """Where the statement or comprehension stands."""
    number: int
    """0 in the first pass, 1 in the settled one."""
    over: Value | None
    """What is iterated over."""
    exact: bool = False
    """Whether each pass is run by itself, so that none stands for others."""
    start: int = 0
    """The moment before the loop."""
    mark: int = 0
    """The moment before this pass."""
    began: int = 0
    """How many events there were before the loop,"""
    events: int = 0
    """and before this pass."""
    breaks: list[Changes] = field(default_factory=list)
    continues: list[Changes] = field(default_factory=list)
    inside: set[int] = field(default_factory=set)
    """The names of the functions that are called in this pass, which no other pass sees."""
    waits: Any = None
    """What makes a condition hold every few passes, for what happens only then."""
    doubt: int = 0
    """How many conditions around the loop nobody could decide."""
    site: Place | None = None
    """Of a loop in a library: where the program calls it."""
    frame: Frame | None = None
    """The call of the function that has the loop."""
    bound: Value | None = None
    """How many passes there are, if a range or the condition of the loop says so."""

    @property
    def settled(self) -> bool:
        """Whether it stands for all passes after the first."""
        return self.number > 0 and not self.exact
