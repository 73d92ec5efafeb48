"""The accelerator of this machine."""

import torch


def accelerator() -> torch.device | None:
    """The accelerator, such as `cuda`, or None where there is none. Asking does not begin to use it: a process that is forked
    after that could not use it.

    The number of devices comes first, because torch 2.6 raises where there is none. `torch.accelerator.is_available` would begin
    to use the device.
    """
    return torch.accelerator.current_accelerator() if torch.accelerator.device_count() else None
