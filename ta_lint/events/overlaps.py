"""Samples that are evaluated after a model has been trained on them."""

from dataclasses import dataclass

from ta_lint.events.place import Place


@dataclass(frozen=True, slots=True)
class Overlap:
    """A loader whose samples are all in the data of another one, which trains."""

    evaluated: Place
    trained: Place
    code: str
    """The data that is evaluated, as it is written."""
