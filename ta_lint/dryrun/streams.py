"""What gives its elements one after another, and what becomes of them."""

from collections.abc import Callable

from ta_lint.dryrun.flow import Flow
from ta_lint.dryrun.values import Class, Object, Place, Value

Consumer = Callable[[Value], Flow]
"""What becomes of an element that is gone over: a pass of a loop."""


class Stream(Object):
    """Something that gives elements one after another: a generator, `range(n)`, `enumerate(loader)`, the batches of a loader.

    `each` runs it: it is called with what to do with an element, and returns how that ended. `of` is what it goes over, such as the loader.
    `settles` says whether its second element stands for all later ones; of a generator, its own loops say so.
    """

    __slots__ = ("each", "few", "of", "settles")

    def __init__(
        self,
        cls: Class,
        each: Callable[[Consumer], Flow],
        of: "Value | None" = None,
        made: "Place | None" = None,
        *,
        settles: bool = True,
    ) -> None:
        super().__init__(cls, made)
        self.each = each
        self.of = of
        self.settles = settles
        self.few: tuple[Value, ...] | None = None
        """All elements, if they are known and few enough for a loop that has no loop inside."""

    def merged(self, other: Value) -> Value | None:
        """One stream for two over the same object: how far each has come is not known."""
        return self if isinstance(other, Stream) and self.of is not None and other.of is self.of else None
