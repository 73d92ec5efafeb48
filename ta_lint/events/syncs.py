"""Where the code waits for the device."""

from dataclasses import dataclass

from ta_lint.events.place import Place


@dataclass(slots=True)
class Sync:
    """A line of the user's that reads values of tensors, over the steps that were looked at.

    `steps` are those, from one optimizer step to the next, in which it ran: in a run audited ones and those right after them.
    """

    place: Place
    steps: int = 0
    on_device: int = 0
    """Reads of tensors on an accelerator: each waits for all that the device has to do."""
    on_cpu: int = 0
    """Reads of tensors in main memory, which wait for nothing."""
    waited: float = 0.0
    """Seconds in the reads of tensors on an accelerator."""
    again: int = 0
    """How often it waited in an audited step and in the one right after."""
    skipped: int = 0
    """How often it waited in an audited step and not in the one right after."""
