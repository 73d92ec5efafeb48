"""One thing that a run did. What an event means is said here once; `runs.schema.EVENTS` are its columns in a file.

An event is told when it is over: what happened inside it was told before, with its `seq` as their `parent`.
"""

from enum import IntFlag
from typing import NamedTuple

LEVELS = ("modules", "digests", "ops")
"""How closely a run is traced: its loop and modules; the content of its parameters, gradients and outputs as well; and
every call of a function of torch as well."""

KINDS = (
    "batch",  # a DataLoader handed out a batch; subject: the loader
    "epoch",  # a pass over a DataLoader begins; subject: the loader
    "module",  # a module was called; subject: its path in the model, empty for the outermost
    "op",  # a function or method of torch was called
    "backward",  # name: torch.Tensor.backward
    "loop",  # a call of the training loop: zero_grad, step of optimizers, schedulers and scalers, clipping, train, eval
    "collective",  # of torch.distributed; subject: the process group
    "checkpoint",  # torch.save, torch.load, state_dict, load_state_dict
    "parameter",  # the content of one after a step; subject: its name; parent: the step
    "buffer",  # the same of a buffer
    "gradient",  # the content of one as the optimizer sees it, or as `zero_grad` leaves it; subject: the parameter
)

PHASES = ("setup", "train", "eval")
"""Setup is all before the first forward pass; eval where the outermost module is in eval mode, or autograd is off."""


class Flag(IntFlag):
    """What held while an event happened."""

    GRAD = 1  # autograd records
    TRAINING = 2  # the module is in training mode
    AUTOCAST = 4
    REQUIRES_GRAD = 8  # the (first) result, or the tensor itself
    RAISED = 16
    CHANGED = 32  # of a state: not what it was when it was last seen; never set the first time
    UNSEEN = 64  # of a state: nothing to compare with yet
    NONE = 128  # of a gradient: there is none
    ZERO = 256  # of a gradient: all elements are zero
    COMPILED = 512
    WHOLE = 1024  # the step is traced at the level asked for; without it, loop and collectives alone


class Event(NamedTuple):
    """A tuple, as a traced step makes hundreds.

    `seq` and `end` count the beginnings and ends of events of a rank, so that what lies inside is `seq < x.seq < end`.
    `dtype` and `shape` are those of the results, in the order of `tree.tensors`, separated by `; `, as `float32; int64` and
    `32,10; 32`; of a state its own. `inputs` are tensors among the arguments: `float32[32,10]; int64[32]`. `arguments` are
    all others that JSON can say, as canonical JSON by name, or by position where a function has no names: `{"p":0.1}`.
    """

    step: int
    """Optimizer steps that were over when it began."""
    phase: str
    seq: int
    end: int
    parent: int
    """The `seq` of the innermost event around it; -1: none."""
    kind: str
    name: str
    """What was called, by the public name that a user writes: `torch.nn.functional.linear`, `torch.optim.AdamW.step`; of a
    module its class, `torch.nn.Linear`; of a state the class of the module that holds it."""
    subject: str
    inputs: str
    dtype: str
    shape: str
    arguments: str
    digest: int | None
    """Of the content of the results, or of a state: equal if all bits, the dtype and the shape are. Null: not taken."""
    value: float | None
    """A result that is a Python number; of the step of an optimizer its largest learning rate."""
    flags: int
    file: str
    """The user's line behind it, empty where there is none."""
    line: int
