"""What a training loop does, in names that the linter, a run and a recorded trace share.

The linter finds these actions in the source, a run observes them, and `ta_runtime.trace.event` maps them to the events
of a trace.
"""

from enum import StrEnum


class Action(StrEnum):
    """One thing that a training loop does."""

    EPOCH = "epoch"
    """A pass over a `DataLoader` begins."""
    BATCH = "batch"
    """A `DataLoader` hands out a batch."""
    FORWARD = "forward"
    """A module is called."""
    BACKWARD = "backward"
    """Gradients are computed and accumulated."""
    SCALE = "scale"
    """A gradient scaler multiplies the loss by its factor."""
    UNSCALE = "unscale"
    """A gradient scaler divides the gradients of an optimizer by its factor."""
    CLIP = "clip"
    """Gradients are clipped, by norm or by value."""
    STEP = "step"
    """An optimizer updates its parameters, directly or through a gradient scaler."""
    SKIP = "skip"
    """A gradient scaler finds an overflow and skips the step."""
    UPDATE = "update"
    """A gradient scaler sets its factor for the next step."""
    CLEAR = "clear"
    """Gradients are set to zero or to `None`."""
    SCHEDULE = "schedule"
    """A scheduler sets the learning rate."""
    TRAIN = "train"
    """A module is put into training mode."""
    EVAL = "eval"
    """A module is put into evaluation mode."""
    MODE = "mode"
    """A module is put into one of the two modes; only the run knows which."""
    SAVE = "save"
    """State is collected by `state_dict`, or written to a file."""
    LOAD = "load"
    """State is read from a file, or copied into a module or an optimizer."""
    COLLECTIVE = "collective"
    """Ranks exchange data through `torch.distributed`."""
    UNKNOWN = "unknown"
    """A call that receives the optimizer and whose code the linter does not see: it may do any of these."""
