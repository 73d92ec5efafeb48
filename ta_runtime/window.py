"""One step in the making: what the observers have noted since the step before."""

import weakref
from dataclasses import dataclass, field

import torch
from torch import Tensor

from ta_runtime.facts import Gradients, Step
from ta_runtime.places import Place
from ta_runtime.readings import Readings


@dataclass(slots=True)
class Window:
    """From the end of one step to the end of the next; of several optimizers, until all that are in use have stepped.

    `step` is there if the step is audited. `losses` are the values `backward` was called on since an optimizer last
    stepped, without their graphs, and `clipped` what `clip_grad_norm_` returned since then.
    """

    index: int
    step: Step | None
    readings: Readings = field(default_factory=Readings)
    gradients: list[Gradients] = field(default_factory=list)
    stepped: "dict[int, weakref.ref[torch.optim.Optimizer]]" = field(default_factory=dict)
    """The optimizers that have, by id."""
    losses: list[Tensor] = field(default_factory=list)
    loss_place: Place | None = None
    backwards: int = 0
    clipped: Tensor | None = None

    def forget(self) -> None:
        """Leave out what was noted for a step that is not looked at."""
        self.losses, self.clipped, self.loss_place, self.backwards = [], None, None, 0

    def take_over(self, other: "Window") -> None:
        """Take what the other noted for a step that is taken in this one."""
        self.losses, self.clipped = other.losses, other.clipped
        self.loss_place, self.backwards = other.loss_place, other.backwards
        other.forget()

    @property
    def empty(self) -> bool:
        """Whether nothing was noted that a check could look at."""
        step = self.step
        return not self.gradients and (step is None or not (step.forwards or step.losses or step.copies))
