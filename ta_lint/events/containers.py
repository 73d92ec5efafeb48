"""Plain containers of modules that hold layers or parameters."""

from dataclasses import dataclass

from ta_lint.events.place import Place


@dataclass(frozen=True, slots=True)
class PlainContainer:
    """A line that first sets an attribute of a module to a list, tuple or dict with layers or parameters in it."""

    place: Place
    name: str
    """Of the attribute,"""
    kind: str
    """`list`, `tuple` or `dict`,"""
    elements: int
    """how much is in it,"""
    held: int
    """and how much of that a module or an optimizer has. A dry run looks only for those of which it is none."""
    lost: int = 0
    """How much of it runs in training, and nothing has it."""
    element: str = ""
    """The class of the first of these,"""
    made: Place | None = None
    """and where it is made."""
    trains: bool = False
    """Whether a method of the class collects the parameters, which may train them; a run does not look."""
