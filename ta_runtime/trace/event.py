"""One event of a trace: what its fields mean. `runs.schema.EVENTS` are its columns in a file.

An event is recorded when it ends. Events inside it are recorded before it, with its `seq` as their `parent`.
"""

from enum import IntFlag
from typing import NamedTuple

from ta_lint.core.protocol import Action

LEVELS = ("modules", "digests", "ops")
"""How closely a run is traced: its loop and modules; also digests of its parameters, gradients and outputs; also every call of
a function of torch."""

KINDS = (
    "batch",  # subject: the loader
    "epoch",  # subject: the loader
    "module",  # a module was called; subject: its path in the model, empty for the outermost
    "op",  # a function or method of torch was called
    "backward",  # name: torch.Tensor.backward
    "loop",  # a call that changes gradients, weights, learning rates or modes; subject: the model of an optimizer, or a module
    "collective",  # subject: the process group
    "checkpoint",  # torch.save, torch.load, state_dict, load_state_dict
    "parameter",  # its content after a step; subject: its name; parent: the step
    "buffer",  # its content after a step; subject: its name; parent: the step
    "gradient",  # its content as the optimizer sees it, or as `zero_grad` leaves it; subject: the parameter
)

KIND_OF: dict[Action, str] = {
    Action.BATCH: "batch",
    Action.EPOCH: "epoch",
    Action.FORWARD: "module",
    Action.BACKWARD: "backward",
    Action.COLLECTIVE: "collective",
    **dict.fromkeys((Action.SAVE, Action.LOAD), "checkpoint"),
    **dict.fromkeys((Action.SCALE, Action.UNSCALE, Action.CLIP, Action.STEP, Action.UPDATE), "loop"),
    **dict.fromkeys((Action.CLEAR, Action.SCHEDULE, Action.TRAIN, Action.EVAL), "loop"),
}
"""The kind of event that a trace records for each action. Traces on disk hold these kinds, so they never change."""

PHASES = ("setup", "train", "eval")
"""Setup is all before the first forward pass. Eval is while the outermost module is in evaluation mode, or autograd is off."""


class Flag(IntFlag):
    """What was true while an event happened."""

    GRAD = 1  # autograd records
    TRAINING = 2  # the module is in training mode
    AUTOCAST = 4
    REQUIRES_GRAD = 8  # the (first) result, or the tensor itself
    RAISED = 16
    CHANGED = 32  # of a state: it differs from the last time it was seen; never set the first time
    UNSEEN = 64  # of a state: it was never seen before
    NONE = 128  # of a gradient: there is none
    ZERO = 256  # of a gradient: all elements are zero
    COMPILED = 512
    WHOLE = 1024  # the step is traced at the full level; without it, only the loop and collectives are


class Event(NamedTuple):
    """One event; a tuple, because a traced step makes hundreds.

    `seq` and `end` number the beginnings and ends of events of a rank: `x` is inside if `seq < x.seq < end`. `dtype` and
    `shape` describe the results, in the order of `tree.tensors`, separated by `; `: `float32; int64` and `32,10; 32`; for a
    state, the state itself. `inputs` are the tensors among the arguments: `float32[32,10]; int64[32]`. `arguments` are the
    others that JSON can express, as canonical JSON by name, or by position if the function has no names: `{"p":0.1}`.
    """

    step: int
    """The number of optimizer steps that had ended when it began."""
    phase: str
    seq: int
    end: int
    parent: int
    """The `seq` of the innermost event around it, -1 if there is none."""
    kind: str
    name: str
    """The public name of what was called: `torch.nn.functional.linear`, `torch.optim.AdamW.step`. For a module its class,
    `torch.nn.Linear`; for a state the class of the module that holds it."""
    subject: str
    inputs: str
    dtype: str
    shape: str
    arguments: str
    digest: int | None
    """A digest of the results or of the state: equal if dtype, shape and all bits are equal. Null if none was taken."""
    value: float | None
    """The result, if it is a Python number; for an optimizer's step, its largest learning rate."""
    flags: int
    file: str
    """The user's line that caused it, empty if there is none."""
    line: int
