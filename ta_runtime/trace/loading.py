"""Records each pass over a `DataLoader`, and each batch that it hands out."""

import sys
from collections.abc import Callable
from typing import Any

import torch
from torch.utils.data import DataLoader, IterableDataset
from torch.utils.data.dataloader import _BaseDataLoaderIter

from ta_lint.core.protocol import Action
from ta_runtime.digests import combined, numbers
from ta_runtime.observers.patching import Undo
from ta_runtime.registers import BUILT, Register
from ta_runtime.trace.choice import Choice
from ta_runtime.trace.course import QUIET, Course, Open
from ta_runtime.trace.event import KIND_OF
from ta_runtime.trace.signatures import canonical, parts
from ta_runtime.trace.wrapping import Failed

NAME = "torch.utils.data.DataLoader"
_BATCH, _EPOCH = KIND_OF[Action.BATCH], KIND_OF[Action.EPOCH]


class Loading:
    """Watches every loader between `attach` and `detach`.

    Loaders are numbered in the order in which they are built, so that a resumed run which evaluates first gives them the same
    numbers. A loader built before `attach` gets its number at its first pass.
    """

    def __init__(self, course: Course, failed: Failed, choice: Choice) -> None:
        self._course, self._failed = course, failed
        self._batches, self._epochs = choice.tells(_BATCH, NAME), choice.tells(_EPOCH, NAME)
        self._digests = choice.digests
        self._subjects: Register[tuple[str, str]] = (
            Register()
        )  # subject and arguments, of loaders and iterators
        self._numbers: dict[
            object, str
        ] = {}  # by the line that built it, so that a new loader in each epoch keeps its number
        self._undo = Undo()

    def attach(self) -> None:
        self._undo.patch(DataLoader, "__init__", self._init)
        self._undo.patch(DataLoader, "__iter__", self._iter)
        self._undo.patch(_BaseDataLoaderIter, "__next__", self._next)

    def detach(self) -> None:
        self._undo()

    def _init(self, original: Callable[..., Any]) -> Callable[..., Any]:
        course = self._course

        def __init__(loader: Any, *args: Any, **kwargs: Any) -> None:
            original(loader, *args, **kwargs)
            if course.quiet != QUIET and not course.is_elsewhere:
                try:
                    self._describe(loader)
                except Exception as error:  # noqa: BLE001 - the run goes on
                    self._failed("a loader", error)

        return __init__

    def _iter(self, original: Callable[..., Any]) -> Callable[..., Any]:
        course = self._course

        def __iter__(loader: Any) -> Any:
            if course.quiet == QUIET or course.is_elsewhere:
                return original(loader)
            event = self._begin(_EPOCH, loader, self._epochs)
            try:
                iterator = original(loader)
            except BaseException:
                self._drop(event)
                raise
            self._end(event, None)
            if (said := self._subjects.get(loader)) is not None:
                self._subjects.add(iterator, said)
            return iterator

        return __iter__

    def _next(self, original: Callable[..., Any]) -> Callable[..., Any]:
        course = self._course

        def __next__(iterator: Any) -> Any:
            if course.quiet == QUIET or course.is_elsewhere:
                return original(iterator)
            event = self._begin(_BATCH, iterator, self._batches)
            try:
                batch = original(iterator)
            except BaseException:  # `StopIteration` too
                self._drop(event)
                raise
            self._end(event, batch)
            return batch

        return __next__

    def _begin(self, kind: str, source: Any, told: bool) -> tuple[Open, str] | None:
        try:
            self._course.abandon()
            subject, arguments = self._subjects.get(source) or self._describe(source)
            event = self._course.begin(kind, NAME, subject, QUIET, sys._getframe(2), told=told)
        except Exception as error:  # noqa: BLE001 - the run goes on
            self._failed("a loader", error)
            return None
        return event, arguments

    def _end(self, begun: tuple[Open, str] | None, batch: Any) -> None:
        if begun is not None:
            event, arguments = begun
            course = self._course
            try:
                with torch._C.DisableTorchFunction():
                    found = parts(batch)
                    digest = None
                    if self._digests and course.whole and event.told:
                        digest = combined(numbers(found, wait=False))
                    course.end(event, "", arguments, course.signatures.results(found), digest)
            except Exception as error:  # noqa: BLE001 - the run goes on
                self._failed("a batch", error)

    def _drop(self, begun: tuple[Open, str] | None) -> None:
        """Drop the event, because there was no batch."""
        if begun is not None:
            self._course.close(begun[0])

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
