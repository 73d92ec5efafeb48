"""Attributes that a program sets on objects of torch, and that torch does not read there."""

from dataclasses import dataclass

from ta_lint.events.place import Place


@dataclass(slots=True)
class Flag:
    """A line that sets `requires_grad` of modules, and that nothing of the program reads again."""

    place: Place
    value: bool | None = None
    """What it says, and of the parameters below the module it is set on"""
    parameters: int = 0
    """how many there are"""
    learning: int = 0
    """and how many require gradients, at the last look of a run. A dry run does not look: the line does nothing either way."""


@dataclass(frozen=True, slots=True)
class RateSet:
    """A line that sets the learning rate of an optimizer of torch as an attribute, which nothing of the program reads again."""

    place: Place
    code: str
    """The attribute as the program writes it, `optimizer.lr`."""
