"""Records each pass over a `DataLoader`, and each batch that it hands out."""

import sys
from functools import partial
from typing import Any

import torch
from torch.utils.data import IterableDataset

from ta_lint.core.protocol import Action
from ta_runtime.probes.listener import Listener
from ta_runtime.probes.patching import Call, End
from ta_runtime.probes.registers import BUILT, Register
from ta_runtime.trace.choice import Choice
from ta_runtime.trace.course import QUIET, Course, Open
from ta_runtime.trace.event import KIND_OF
from ta_runtime.trace.numbers import combined, numbers
from ta_runtime.trace.signatures import canonical, parts

NAME = "torch.utils.data.DataLoader"
_BATCH, _EPOCH = KIND_OF[Action.BATCH], KIND_OF[Action.EPOCH]


class LoaderRecorder(Listener):
    """Records the passes over every loader.

    Loaders are numbered in the order in which they are built, so that a resumed run which evaluates first gives them the same
    numbers. A loader built before gets its number at its first pass.
    """

    def __init__(self, course: Course, choice: Choice) -> None:
        self._course = course
        self._batches, self._epochs = choice.tells(_BATCH, NAME), choice.tells(_EPOCH, NAME)
        self._digests = choice.digests
        self._subjects: Register[tuple[str, str]] = (
            Register()
        )  # subject and arguments, of loaders and iterators
        self._numbers: dict[
            object, str
        ] = {}  # by the line that built it, so that a new loader in each epoch keeps its number

    def build_loader(self, call: Call) -> End | None:
        return None if self._course.quiet == QUIET else self._built

    def _built(self, call: Call) -> None:
        if not call.raised:
            self._describe(call.args[0])

    def epoch(self, call: Call) -> End | None:
        return self._begin(_EPOCH, call.args[0], self._epochs)

    def batch(self, call: Call) -> End | None:
        return self._begin(_BATCH, call.args[0], self._batches)

    def _begin(self, kind: str, source: Any, told: bool) -> End | None:
        course = self._course
        if course.quiet == QUIET:
            return None
        course.abandon()
        subject, arguments = self._subjects.get(source) or self._describe(source)
        event = course.begin(kind, NAME, subject, QUIET, sys._getframe(1), told=told)
        return partial(self._end, event, arguments)

    def _end(self, event: Open, arguments: str, call: Call) -> None:
        course, batch = self._course, None
        if call.raised:  # `StopIteration` too: there was no batch
            course.close(event)
            return
        if event.kind == _BATCH:
            batch = call.result
        elif (said := self._subjects.get(call.args[0])) is not None:
            self._subjects.add(call.result, said)
        with torch._C.DisableTorchFunction():
            found = parts(batch)
            digest = None
            if self._digests and course.whole and event.told:
                digest = combined(numbers(found, wait=False))
            course.end(event, "", arguments, course.signatures.results(found), digest)

    def _describe(self, loader: Any) -> tuple[str, str]:
        key = BUILT.get(loader) or id(loader)
        subject = self._numbers.setdefault(key, str(len(self._numbers)))
        iterable = isinstance(getattr(loader, "dataset", None), IterableDataset)
        settings = {
            "dataset": "iterable" if iterable else "map",
            "drop_last": getattr(loader, "drop_last", None),
            "num_workers": getattr(loader, "num_workers", None),
            "sampler": type(getattr(loader, "sampler", None)).__name__,
        }
        said = subject, canonical(settings)
        self._subjects.add(loader, said)
        return said
