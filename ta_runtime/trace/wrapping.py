"""Wrappers that record the calls of torch functions without a hook as events."""

import sys
from collections.abc import Callable
from typing import Any

import torch

from ta_lint.core.protocol import Action
from ta_runtime.trace.choice import Choice
from ta_runtime.trace.course import QUIET, RAISED, Course, Open
from ta_runtime.trace.event import KIND_OF

Args = tuple[Any, ...]
Kwargs = dict[str, Any]
Wrapper = Callable[[Callable[..., Any]], Callable[..., Any]]
Failed = Callable[[str, Exception], None]
Said = tuple[Action, str, str]
"""What a call does, its name and its subject, as in `event.Event`."""
Given = Callable[[Args, Kwargs], tuple[str, str]]
After = Callable[[Open, Args], object]


class Wrapping:
    """Makes the wrappers for `Patch` and `Recoded`, all for one course; `choice` says which events to record."""

    def __init__(self, course: Course, failed: Failed, choice: Choice) -> None:
        self.course, self.failed, self.wanted = course, failed, choice.tells

    def telling(
        self,
        begin: Callable[[Args, Kwargs], Said | None],
        *,
        quiet: int = QUIET,
        given: Given | None = None,
        after: After | None = None,
    ) -> Wrapper:
        """A wrapper that records each call.

        Args:
            begin: what a call with these arguments does; None: it is not recorded.
            quiet: what is recorded inside the call, as in `course`.
            given: returns `inputs` and `arguments` of a call; None: they are not recorded.
            after: called before the event ends, unless the call raised.
        """
        course, wanted, finish = self.course, self.wanted, self._finishing(after)

        def start(args: Args, kwargs: Kwargs) -> tuple[Open, str, str] | None:
            try:
                found = begin(args, kwargs)
                if found is None:
                    return None
                action, name, subject = found
                kind = KIND_OF[action]
                event = course.begin(kind, name, subject, quiet, sys._getframe(2), told=wanted(kind, name))
                if given is None or not event.told:
                    return event, "", ""
                with torch._C.DisableTorchFunction():
                    inputs, arguments = given(args, kwargs)
            except Exception as error:  # noqa: BLE001 - the run goes on
                self.failed("the beginning of a call", error)
                return None
            return event, inputs, arguments

        def wrapper(original: Callable[..., Any]) -> Callable[..., Any]:
            def run(*args: Any, **kwargs: Any) -> Any:
                if course.quiet == QUIET or course.is_elsewhere or torch.compiler.is_compiling():
                    return original(*args, **kwargs)
                started = start(args, kwargs)
                if started is None:
                    return original(*args, **kwargs)
                try:
                    value = original(*args, **kwargs)
                except BaseException:
                    finish(started, args, True)
                    raise
                finish(started, args, False)
                return value

            return run

        return wrapper

    def _finishing(self, after: After | None) -> Callable[[tuple[Open, str, str], Args, bool], None]:
        """What ends the event of a call: made once for each wrapper, not once for each call."""
        course = self.course

        def finish(started: tuple[Open, str, str], args: Args, raised: bool) -> None:
            event, inputs, arguments = started
            try:
                if after is not None and event.told and not raised:
                    after(event, args)
                course.end(event, inputs, arguments, flags=RAISED if raised else 0)
            except Exception as error:  # noqa: BLE001 - the run goes on
                self.failed("the end of a call", error)

        return finish

    def named(self, function: Callable[..., Any]) -> Given:
        """The arguments of a call, by the parameter names of this function."""
        signatures = self.course.signatures
        return lambda args, kwargs: signatures.given(signatures.names(function), args, kwargs)
