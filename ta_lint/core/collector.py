"""Runs the garbage collector where it finds something, and pauses it where it would not.

Until a file is done, nothing of it is garbage. The collector does not know that and traverses the growing trees again and again: a
fifth of the time of a file, and a tenth of start-up. A dry run leaves reference cycles behind, such as a class and its methods.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_paused = False
"""Whether we disabled the collector; the program around us may have disabled it itself."""


@contextmanager
def paused() -> Iterator[None]:
    """Disable the collector during the block; if it was disabled before, do nothing."""
    global _paused
    if not gc.isenabled():
        yield
        return
    gc.disable()
    _paused = True
    try:
        yield
    finally:
        _paused = False
        gc.enable()


def resume() -> None:
    """Enable it again for new objects: for a command that has loaded what it needs and keeps running."""
    global _paused
    if _paused:
        _paused = False
        gc.freeze()
        gc.enable()


def sweep() -> None:
    """Free what a file has left behind; what has outlived an earlier sweep is not looked at again."""
    gc.collect(0)
