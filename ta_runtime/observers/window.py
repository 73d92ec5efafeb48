"""One step in the making: what the observers have noted since the step before."""

from dataclasses import dataclass, field

from torch import Tensor

from ta_runtime.facts import Gradients, Step
from ta_runtime.measure.scalars import Readings
from ta_runtime.probes.places import Place


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
    reads: bool = False
    """Whether the gradients are read, which they are too where it is audited."""
    stepped: bool = False
    """Whether an optimizer has."""
    losses: list[Tensor] = field(default_factory=list)
    loss_place: Place | None = None
    backwards: int = 0
    clipped: Tensor | None = None
    began: float | None = None
    """When the step before ended, by `time.perf_counter`; None where nothing says so, as of the first."""
    ended: float | None = None
    """When it ended itself; None if the run ended before it."""
    noted: set[int] = field(default_factory=set)
    """The ids of the tensors that are among the states of the step."""
    waited: float | None = None
    """Seconds in which the thread that trains waited for a `DataLoader`; None where it asked none."""

    @property
    def thorough(self) -> bool:
        """Whether the step is audited thoroughly."""
        return self.step is not None and self.step.thorough

    @property
    def seconds(self) -> float | None:
        """How long the step took."""
        return None if self.began is None or self.ended is None else self.ended - self.began

    def wait(self, seconds: float) -> None:
        """A `DataLoader` was waited for."""
        self.waited = seconds + (self.waited or 0.0)

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
