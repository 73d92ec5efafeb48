"""What Accelerate did of a training, and what went past it."""

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ta_runtime.probes.places import Place


@dataclass(slots=True)
class Prepared:
    """The backward passes and steps of a run in which Accelerate is in use, by line; all empty where it is not."""

    bypassing: Counter["Place"] = field(default_factory=Counter)
    """Backward passes that the script began itself: `loss.backward()`."""
    backwards: Counter["Place"] = field(default_factory=Counter)
    """Those of `accelerator.backward(loss)`."""
    bare_steps: Counter["Place"] = field(default_factory=Counter)
    """Steps of optimizers as they were made."""
    steps: Counter["Place"] = field(default_factory=Counter)
    """Steps by an optimizer that was prepared."""
    duties: tuple[str, ...] = ()
    """What a backward pass of Accelerate does beside the passes: divide, scale."""
    processes: int = 1
