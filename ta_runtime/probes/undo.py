"""What was put on torch, and how it comes off again."""

import sys
from collections.abc import Callable
from contextlib import ExitStack
from types import FrameType
from typing import Any

from torch.utils.hooks import RemovableHandle

from ta_runtime.probes.patching import Watch, watching


class Undo(list[Callable[[], object]]):
    """What was put on torch. A call of it takes that off: the last first, and all of it, whatever one of them raises."""

    def patch(self, owner: Any, name: str, watch: Watch) -> None:
        """Watch the calls of an attribute of a class, a module or an object."""
        self.append(watching(owner, name, watch).undo)

    def __call__(self) -> None:
        if not self:  # most steps put nothing on torch
            return
        with ExitStack() as rest:
            for undo in self:
                rest.callback(_fully, undo)
            self.clear()


class WhileNeeded:
    """Something on torch that is on while anybody needs it. `put_on` puts it on, and into the `Undo` how it comes off."""

    def __init__(self, put_on: Callable[[Undo], object]) -> None:
        self._put_on, self._undo, self._users = put_on, Undo(), 0

    def begin(self) -> None:
        """One more needs it."""
        self._users += 1
        if self._users == 1:
            self._put_on(self._undo)

    def end(self) -> None:
        """One less: it comes off with the last."""
        self._users -= 1
        if not self._users:
            self._undo()


def _fully(undo: Callable[[], object]) -> None:
    """Undo something, also where a timeout or Ctrl-C cuts that short. Each can be undone again."""
    try:
        undo()
    except BaseException:
        undo()
        raise


def nothing() -> None:
    """Takes off what was not put on."""


_WALKS = frozenset(
    {
        "Optimizer.profile_hook_step.<locals>.wrapper",
        "Module.__setattr__",
        "Module.add_module",
        "Module.register_buffer",
        "Module.register_parameter",
    }
)
"""The functions of torch that walk over a table of hooks while they call them."""

_waiting: list[RemovableHandle] = []


def removing(hook: RemovableHandle) -> Callable[[], None]:
    """Takes a hook of an optimizer's step or of a registration off, but not while torch walks over its table.

    It raises if one goes then and others follow. What waits does nothing, and goes when the next of ours does.
    """

    def remove() -> None:
        _waiting.append(hook)
        remove_waiting()

    return remove


def remove_waiting() -> None:
    """Take off the hooks that torch was walking over when they were to go, if it is not now."""
    if not _waiting:
        return
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_qualname in _WALKS:
            for hook in _waiting:
                if (table := hook.hooks_dict_ref()) is not None and hook.id in table:
                    table[hook.id] = _idle
            return
        frame = frame.f_back
    while _waiting:
        _waiting.pop().remove()


def _idle(*_: object) -> None:
    """What a hook becomes that waits to be taken off."""
