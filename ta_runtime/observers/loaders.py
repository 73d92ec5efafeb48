"""Sees what a `DataLoader` hands out, how long its consumer waits for it, and whether a batch comes twice.

Loaders have no hooks: making an iterator and taking a batch from it are wrapped. A batch on the CPU is hashed from an
even sample of its bytes, a few microseconds; only when such a hash comes twice are whole batches hashed.
"""

import hashlib
import time
import weakref
import zlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    DistributedSampler,
    IterableDataset,
    RandomSampler,
    SequentialSampler,
)
from torch.utils.data.dataloader import _BaseDataLoaderIter

from ta_runtime.facts import Batch, Loader, Value
from ta_runtime.observers.patching import Patch
from ta_runtime.places import BUILT, here
from ta_runtime.tree import tensors

if TYPE_CHECKING:
    from ta_runtime.session import Session

_SLICES = 16
_SLICE = 256
_WHOLE = _SLICES * _SLICE
_REMEMBERED = 100_000  # hashes of one epoch
_DIGESTS = 64
_MOST = 256  # loaders of a run, which may build one an epoch: of more, the first
_LITTLE = 64  # compressed bytes: what says less may well come again by chance

# What numpy has a name for; others, such as bfloat16, are not hashed.
_HASHABLE = {
    torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.bool,
    torch.float16, torch.float32, torch.float64,
}  # fmt: skip


class _Pass:
    """One iterator over a loader, and what its batches hashed to."""

    __slots__ = ("first", "hashed", "loader", "requested", "samples", "stepped", "waited", "whole")

    def __init__(self, loader: Loader) -> None:
        self.loader = loader
        self.first = True
        self.samples: set[int] = set()
        self.hashed = 0  # how many were
        self.whole: dict[bytes, int] | None = None  # the numbers of whole batches, once a sample came twice
        self.requested: float | None = None
        self.waited = 0.0
        self.stepped = False


class Loaders:
    """Watches the loaders of a session."""

    def __init__(self, session: "Session") -> None:
        self._session = session
        self._patches: list[Patch] = []
        self._passes: dict[int, tuple[weakref.ref[Any], _Pass]] = {}
        self._facts: dict[int, Loader] = {}
        self._current: _Pass | None = None
        self._last: list[tuple[weakref.ref[Tensor], Loader]] = []
        self.found: list[Loader] = []
        """The loaders that were iterated, in order of first use."""

    def attach(self) -> None:
        self._patches = [
            Patch(DataLoader, "__iter__", self._iter),
            Patch(_BaseDataLoaderIter, "__next__", self._next),
        ]

    def detach(self) -> None:
        while self._patches:
            self._patches.pop().undo()
        self._passes.clear()
        self._last.clear()

    def stepped(self) -> None:
        """An optimizer has stepped: the batch in hand was for training."""
        if self._current is not None:
            self._current.stepped = True

    def origin(self, tensor: Tensor) -> Loader | None:
        """The loader that handed a tensor out as part of its last batch."""
        for reference, loader in self._last:
            if reference() is tensor:
                return loader
        return None

    def _iter(self, original: Callable[..., Any]) -> Callable[..., Any]:
        begin = self._session.guarded(self._begin)

        def __iter__(loader: Any) -> Any:
            iterator = original(loader)
            if self._patches:
                begin(loader, iterator)
            return iterator

        return __iter__

    def _begin(self, loader: Any, iterator: Any) -> None:
        facts = self._facts.get(id(loader))
        if facts is None or facts.loader() is not loader:
            if len(self.found) == _MOST:
                return
            facts = Loader(weakref.ref(loader), BUILT.get(loader) or here(), workers=loader.num_workers)
            facts.once = _draws_once(loader)
            self._facts[id(loader)] = facts
            self.found.append(facts)
        facts.epochs += 1
        self._passes = {key: entry for key, entry in self._passes.items() if entry[0]() is not None}
        self._passes[id(iterator)] = (weakref.ref(iterator), _Pass(facts))

    def _next(self, original: Callable[..., Any]) -> Callable[..., Any]:
        note = self._session.guarded(self._note)

        def __next__(iterator: Any) -> Any:
            if not self._patches:
                return original(iterator)
            started = time.perf_counter()
            batch = original(iterator)
            note(iterator, batch, started, time.perf_counter())
            return batch

        return __next__

    def _note(self, iterator: Any, batch: Any, started: float, ended: float) -> None:
        entry = self._passes.get(id(iterator))
        if entry is None:
            return
        taken = entry[1]
        loader = taken.loader
        loader.batches += 1
        if taken.requested is not None and taken.stepped:
            loader.trained += 1
            loader.waited += taken.waited
            loader.stepping += started - taken.requested
            idle = self._session.device_idle
            loader.asked += idle is not None
            loader.idle += idle is True
        taken.requested, taken.waited, taken.stepped = started, ended - started, False
        self._current = taken
        window = self._session.window
        found = list(tensors(batch))
        if window.step is not None:
            self._last = [(weakref.ref(tensor), loader) for _, tensor in found]
            window.step.batches.append(Batch(loader, [Value.of(name, tensor) for name, tensor in found]))
            del window.step.batches[:-8]
        if self._session.wants_digests:
            self._hash(taken, [tensor for _, tensor in found])

    def _hash(self, taken: _Pass, found: list[Tensor]) -> None:
        found = [tensor for tensor in found if _hashable(tensor)]
        if not found or len(taken.samples) >= _REMEMBERED:
            return
        pieces = [piece for tensor in found for piece in _pieces(tensor)]
        sample = 0
        for piece in pieces:
            sample = zlib.crc32(piece, sample)
        loader = taken.loader
        taken.hashed += 1
        compared = loader.epochs == 1 and len(loader.digests) < _DIGESTS
        if (compared or sample in taken.samples) and len(zlib.compress(b"".join(pieces), 1)) < _LITTLE:
            return
        if compared:
            loader.digests.append(f"{sample:08x}")
        if sample in taken.samples and taken.whole is None:
            taken.whole = {}
        taken.samples.add(sample)
        if taken.whole is not None:
            digest = hashlib.blake2b(digest_size=16)
            for tensor in found:
                digest.update(_bytes(tensor))
            number = taken.hashed - 1
            first = taken.whole.setdefault(digest.digest(), number)
            workers = loader.workers or 1  # they take turns
            loader.repeats += first != number and (workers == 1 or first % workers != number % workers)


def _hashable(tensor: Tensor) -> bool:
    return (
        type(tensor) is Tensor
        and tensor.dtype in _HASHABLE
        and tensor.device.type == "cpu"
        and tensor.layout is torch.strided
        and tensor.numel() > 0
        and not (tensor.requires_grad or tensor.is_neg())
    )


def _bytes(tensor: Tensor) -> memoryview:
    array = tensor.numpy()
    return (array if array.flags.c_contiguous else array.copy()).data.cast("B")


def _pieces(tensor: Tensor) -> list[memoryview]:
    """All bytes of a small tensor, an even sample of those of a large one."""
    if tensor.layout is not torch.strided or tensor.numel() == 0:
        return []
    data = _bytes(tensor)
    if len(data) <= _WHOLE:
        return [data]
    stride = len(data) // _SLICES
    return [data[index * stride : index * stride + _SLICE] for index in range(_SLICES)]


def _draws_once(loader: Any) -> bool:
    if loader.batch_size == 1:
        return False  # samples that a data set has twice would be batches that come twice
    sampler = loader.sampler
    if isinstance(loader.dataset, IterableDataset):
        return bool(loader.num_workers > 1)
    if loader.batch_sampler is not None and type(loader.batch_sampler) is not BatchSampler:
        return False
    if isinstance(sampler, RandomSampler):
        return not sampler.replacement and sampler.num_samples <= len(sampler.data_source)
    return type(sampler) in (SequentialSampler, DistributedSampler)
