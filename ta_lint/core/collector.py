"""The garbage collector, kept from looking where there is nothing.

What a file takes points at nothing that points back, so that all of it is gone when the file is done. Python does not
know that, and walks through libcst's tree and its own again and again while they grow: a fifth of the time of a file,
and a tenth of that of a start.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_paused = False
"""Whether it is away because of us: the program that we are part of may have sent it away itself."""


@contextmanager
def paused() -> Iterator[None]:
    """Keep it away during the block; where it was away before, nothing changes."""
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
    """Bring it back for what is new: a command that paused it has loaded what it needs, and goes on for long."""
    global _paused
    if _paused:
        _paused = False
        gc.freeze()
        gc.enable()
