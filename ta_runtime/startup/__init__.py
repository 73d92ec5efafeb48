"""How a process that a watched script starts begins to be watched itself: once it has torch, and never before.

What is to be done then is a pickled call in a file of the parent's. It is made by `call`, and returns what is to be
called at the end. This module loads nothing, as it is all that a process without torch gets to see; and a program sees
nothing at all but a finder of modules (`waiting`).
"""

import contextlib
import os
import pickle
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from ta_runtime.startup import waiting

FOLDER = str(Path(__file__).parent)
"""What stands first in `PYTHONPATH` of a program that is to be watched: Python runs `sitecustomize` from there."""
VARIABLE = "TA_RUNTIME_BEGIN"
"""The environment variable that names the file."""

_ends: list[Callable[[int], object]] = []


class Bootstrap:
    """Stands in for `_bootstrap` of a process of `multiprocessing` while it is started, and so travels to the child."""

    def __init__(self, process: Any, path: str) -> None:
        self.process, self.path = process, path

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        vars(self.process).pop("_bootstrap", None)
        begin(self.path)
        status = 1
        try:
            status = self.process._bootstrap(*args, **kwargs)
        finally:
            while _ends:
                with contextlib.suppress(Exception):
                    _ends.pop()(status)
        return status


def begin(path: str) -> None:
    """Make the call now if the process has torch, else when it loads it."""
    _ends.clear()  # of the parent, in a fork of it
    waiting.begin(partial(call, path))


def call(path: str) -> None:
    """Make the call; if it fails, the process is not watched, and runs as it would have."""
    try:
        _ends.append(pickle.loads(Path(path).read_bytes())())
    except FileNotFoundError:  # the parent has ended
        return
    except Exception as error:  # noqa: BLE001 - whatever it is
        with contextlib.suppress(Exception):
            print(f"ta-runtime: process {os.getpid()} is not watched: {error!r}", file=sys.stderr)
