"""Processes that are started: by `multiprocessing` in whatever way, and programs by `subprocess`."""

import subprocess
import sys
from multiprocessing.process import BaseProcess
from types import FrameType

from ta_runtime.probes.patching import attribute
from ta_runtime.probes.threads import anywhere

PLACES = {
    "start_process": (attribute(BaseProcess, "start", anywhere),),
    "start_program": (attribute(subprocess.Popen, "__init__", anywhere),),
}

_HELPED = (
    "multiprocessing.managers",
    "multiprocessing.resource_tracker",
    "torch._dynamo",
    "torch._inductor",
    "torch.utils.cpp_extension",
    "torch.utils.data",
)
"""The modules that start processes to help them, in which no code of the script trains."""


def is_helper() -> bool:
    """Whether a library starts a process for itself now, such as a worker that loads data, and not the script."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        name = frame.f_globals.get("__name__") or ""
        if name.startswith(_HELPED):
            return True
        frame = frame.f_back
    return False
