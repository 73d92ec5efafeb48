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


@dataclass(frozen=True, slots=True)
class Refolded:
    """A model that each fold of a cross-validation trains further, and scores on rows that it has trained on in another."""

    model: Place
    folds: Place
