"""Which thread is watched: the one that makes the first step of an optimizer, and until then the one that began to watch.

Every wrapper and hook asks here before anything else. So nothing of ours runs in another thread, and none of ours reads what
another thread may be about to free: that ends the process.
"""

import threading


class _Own(threading.local):
    """What a thread has for itself. Not its number, which goes to another when it ends."""

    def __init__(self) -> None:
        self.mark = object()


_own = _Own()
_watched: object = (
    None  # the mark of the thread that is watched; None while nobody begins or ends with `begin` and `end`
)
_began: object = None  # the mark of the one that began to watch
_thread = threading.main_thread()
_watching = 0
_decided = False  # an optimizer has stepped in the thread that is watched
_shares = False
_trains_elsewhere = False
_steps_elsewhere = 0


def begin() -> None:
    """Somebody watches from here on: this thread, unless others watch another already that still runs alone."""
    global _watching, _began, _shares
    _watching += 1
    if _watching == 1 or _shares or not _thread.is_alive():
        _began, _shares = _own.mark, False
        _take()


def end() -> None:
    """As many times as `begin`: then nobody watches any more."""
    global _watching, _watched, _began, _decided, _shares, _trains_elsewhere
    _watching -= 1
    if not _watching:
        _watched = _began = None
        _decided = _shares = _trains_elsewhere = False


def is_watched() -> bool:
    """Whether this is the thread that is watched; once that has ended, it is the one that began."""
    mark = _own.mark
    return mark is _watched or _watched is None or (mark is _began and not _shares and not _thread.is_alive())


def steps_here() -> bool:
    """Whether this is the thread that is watched, in which an optimizer steps now: the first step decides.

    A thread that has ended is followed by the next that steps.
    """
    global _decided, _steps_elsewhere, _trains_elsewhere
    if is_watched():
        _decided = True
        return True
    if _shares or (_decided and _thread.is_alive()):
        _trains_elsewhere = True
        _steps_elsewhere += 1
        return False
    _decided = True
    _take()
    return True


def share() -> None:
    """Two threads train the same parameters: none is watched any more."""
    global _shares, _watched
    if _watching:
        _shares, _watched = True, object()


def elsewhere() -> bool:
    """What a wrapper calls in a thread that is not watched: whether it is to be told all the same."""
    return False


def anywhere() -> bool:
    """As `elsewhere`, of what is no part of a training, such as the start of a process."""
    return True


def may_be_watched() -> bool:
    """As `elsewhere`, of what is built: until an optimizer steps, any thread may turn out to be the one."""
    return not _decided


def trains() -> bool:
    """As `elsewhere`, of a backward pass."""
    global _trains_elsewhere
    _trains_elsewhere = True
    return False


def mark() -> object:
    """What tells this thread from others."""
    return _own.mark


def is_ours(mark: object) -> bool:
    """Whether what was built in a thread is only used in the one that is watched, as far as is known.

    What the thread that began has built may be for any, once others train.
    """
    return mark is _watched or _watched is None or (mark is _began and not _trains_elsewhere)


def are_alone() -> bool:
    """Whether no other thread has trained."""
    return not _trains_elsewhere


def steps_elsewhere() -> int:
    """How many steps other threads have made in all."""
    return _steps_elsewhere


def are_shared() -> bool:
    """Whether two threads train the same parameters."""
    return _shares


def _take() -> None:
    global _watched, _thread
    _watched, _thread = _own.mark, threading.current_thread()
