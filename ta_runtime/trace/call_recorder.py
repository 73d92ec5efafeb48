"""Records the calls of torch functions without a hook as events."""

import sys
from collections.abc import Callable
from functools import partial

import torch

from ta_lint.core.protocol import Action
from ta_runtime.probes.patching import Call, End
from ta_runtime.trace.choice import Choice
from ta_runtime.trace.course import QUIET, RAISED, Course, Open
from ta_runtime.trace.event import KIND_OF

Said = tuple[Action, str, str]
"""What a call does, its name and its subject, as in `event.Event`."""
Given = Callable[[Call], tuple[str, str]]
After = Callable[[Open, Call], object]


class CallRecorder:
    """Records calls, all for one course; `choice` says which events to record."""

    def __init__(self, course: Course, choice: Choice) -> None:
        self.course, self.wanted = course, choice.tells

    def record(
        self,
        call: Call,
        begin: Callable[[Call], Said | None],
        *,
        quiet: int = QUIET,
        given: Given | None = None,
        after: After | None = None,
    ) -> End | None:
        """Record a call.

        Args:
            call: it has not run yet.
            begin: says what it does; None: it is not recorded.
            quiet: what is recorded inside the call, as in `course`.
            given: returns `inputs` and `arguments` of the call; None: they are not recorded.
            after: called before the event ends, unless the call raised.
        """
        course = self.course
        if course.quiet == QUIET or (found := begin(call)) is None:
            return None
        action, name, subject = found
        kind = KIND_OF[action]
        event = course.begin(kind, name, subject, quiet, sys._getframe(1), told=self.wanted(kind, name))
        inputs = arguments = ""
        if given is not None and event.told:
            with torch._C.DisableTorchFunction():
                inputs, arguments = given(call)
        return partial(self._finish, event, inputs, arguments, after)

    def _finish(self, event: Open, inputs: str, arguments: str, after: After | None, call: Call) -> None:
        if after is not None and event.told and not call.raised:
            after(event, call)
        self.course.end(event, inputs, arguments, flags=RAISED if call.raised else 0)

    def named(self, call: Call) -> tuple[str, str]:
        """The arguments of a call, by the parameter names of its function."""
        signatures = self.course.signatures
        return signatures.given(signatures.names(call.function), call.args, call.kwargs)
