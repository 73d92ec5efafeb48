"""States of models that a program takes, and comes back to after it has trained on."""

from dataclasses import dataclass

from ta_lint.events.place import Place


@dataclass(frozen=True, slots=True)
class Kept:
    """A state of a model that was kept while the model trained on, and then loaded back, saved or returned.

    `place` is the line that called `state_dict()`, `used` where it is used. `shared` of its `tensors` are the model's own
    then; a dry run says 1 of 1.
    """

    place: Place
    used: Place
    tensors: int = 1
    shared: int = 1
    steps: tuple[int, int] | None = None
    """The steps in which it was taken and used, as a run counts them."""
