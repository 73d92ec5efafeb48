"""Sees what ranks may do in vain: the samples that each draws, and the files that each writes, for rank 0 to compare."""

import os
import socket
import zlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from ta_runtime import ranks
from ta_runtime.facts import Drawn, Loader, Run, Saved
from ta_runtime.observers.observer import Observer
from ta_runtime.observers.patching import Patch
from ta_runtime.places import here

if TYPE_CHECKING:
    from ta_runtime.session import Session

_MOST = 256  # files of a run: of more, the first
_SAMPLES = 2048  # of the first pass over a loader: of more, the first
_BYTES = 4096  # of a tensor of a sample, from its start and from its middle


class Sharing(Observer):
    """Watches what loaders hand out, and `torch.save`."""

    def __init__(self, session: "Session") -> None:
        super().__init__(session)
        self._saved: dict[Saved, None] = {}
        self._drawn: dict[int, list[int]] = {}  # hashes of samples, by the id of their loader
        self._cut: set[int] = set()  # loaders of which some samples were not looked at

    def attach(self) -> None:
        self.undo.append(Patch(torch, "save", self._saving).undo)

    def report(self, run: Run) -> None:
        run.told.saved = list(self._saved)
        run.told.samples = [self._samples(loader) for loader in run.loaders]

    def batch(self, loader: Loader, tensors: list[Tensor]) -> None:
        if loader.epochs > 1 or "TA802" not in self.session.settings.rules or not ranks.connected():
            return
        hashes = self._drawn.setdefault(id(loader), [])
        sizes = {tensor.shape[0] if tensor.dim() else 0 for tensor in tensors}
        if len(sizes) != 1 or len(hashes) >= _SAMPLES:
            self._cut.add(id(loader))
            return
        arrays = [tensor.numpy() for tensor in tensors]
        for index in range(sizes.pop()):
            value = 0
            for array in arrays:
                data = memoryview(array[index].tobytes())
                half = len(data) // 2
                pieces = (data[:_BYTES], data[half : half + _BYTES]) if len(data) > 2 * _BYTES else (data,)
                for piece in pieces:
                    value = zlib.crc32(piece, value)
            hashes.append(value)

    def _samples(self, loader: Loader) -> Drawn:
        hashes = self._drawn.get(id(loader), [])
        ended = loader.epochs > 1 or any(each.ended for each in loader.passes)
        return Drawn(len(hashes), frozenset(hashes), ended and id(loader) not in self._cut)

    def _saving(self, original: Callable[..., Any]) -> Callable[..., Any]:
        note = self.session.guarded(self._note)

        def save(*args: Any, **kwargs: Any) -> Any:
            result = original(*args, **kwargs)
            if self.undo:
                note(args[1] if len(args) > 1 else kwargs.get("f"))
            return result

        return save

    def _note(self, file: Any) -> None:
        if isinstance(file, (str, os.PathLike)) and ranks.connected() and len(self._saved) < _MOST:
            self._saved[Saved(os.path.realpath(file), socket.gethostname(), here())] = None
