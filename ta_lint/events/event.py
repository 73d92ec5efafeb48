"""One thing that a training does, as the dry run records it."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Event:
    """An action, in the order in which the program does them.

    `action` is one of `ta_lint.core.protocol.Action`, or of the dry run's own. `subject` is the object that does it, such as the
    optimizer. `doubt` counts the conditions around it that nobody knows. `passes` are the loops around it, the outermost first, each
    with the number of the pass; `functions` are those that were called to come here. `entry` is the function that nobody calls and that
    was run on guessed arguments, None for what the script itself does.
    """

    action: str
    place: Any
    subject: Any
    doubt: int
    passes: tuple[tuple[Any, int], ...]
    detail: dict[str, Any]
    functions: tuple[Any, ...]
    entry: Any
    times: int = 1
    """How often, roughly: a pass of a loop after the first stands for many, and what nobody here calls is called often."""
    by_library: bool = False
    """Whether the code of a library does it, for a call at this place."""
    in_library: bool = False
    """Whether it does so in a loop of its own, as a trainer does."""
    some_pass: bool = False
    """Whether it happens in one pass of its loop, of which nobody knows how many come before it."""
    path: Any = None
    """The conditions that hold here: one object for all that happens under the same ones."""
    waits: Any = None
    """What makes it happen every few passes of its loop alone, as a step does that several batches share: equal for what happens in the same
    passes.
    """
    in_each_pass: bool = False
    """Whether it certainly happens in each pass of the innermost loop around it."""

    leaves: int = 0
    """How many of the loops around it end in the pass that it happens in, as a `break` or `return` follows."""

    @property
    def certain(self) -> bool:
        """Whether it depends on nothing that is not known."""
        return self.doubt == 0
