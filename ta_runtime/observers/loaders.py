"""Sees what a `DataLoader` hands out, how long its consumer waits for it, and whether a batch comes twice.

Loaders have no hooks: making an iterator and taking a batch from it are wrapped. A batch on the CPU is hashed from an
even sample of its bytes, a few microseconds; only when such a hash comes twice are whole batches hashed.
"""

import hashlib
import sys
import time
import weakref
import zlib
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.utils.data import (
    BatchSampler,
    DistributedSampler,
    IterableDataset,
    RandomSampler,
    SequentialSampler,
    Subset,
    SubsetRandomSampler,
)

from ta_runtime.facts import Batch, Indices, Loader, Pass, Run, Value
from ta_runtime.faults import Shield
from ta_runtime.measure.tree import tensors
from ta_runtime.observers import samples
from ta_runtime.observers.cuts import cuts_of
from ta_runtime.probes.listener import Listener
from ta_runtime.probes.patching import Call, End
from ta_runtime.probes.places import here
from ta_runtime.probes.registers import BUILT

if TYPE_CHECKING:
    from ta_runtime.observers.context import Context

Order = tuple[int, int] | None
"""Seed and epoch of a pass."""

_SLICES = 16
_SLICE = 256
_WHOLE = _SLICES * _SLICE
_REMEMBERED = 100_000  # hashes of one epoch
_DIGESTS = 64
_MOST = 256  # loaders of a run, which may build one an epoch: of more, the first
_PASSES = 16  # whose facts are kept
_EARLY = 2  # batches of which it is seen whether they are kept
_LITTLE = 64  # compressed bytes: what says less may well come again by chance

# What numpy has a name for; others, such as bfloat16, are not hashed.
_HASHABLE = {
    torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.bool,
    torch.float16, torch.float32, torch.float64,
}  # fmt: skip


class _Pass:
    """One iterator over a loader, and what its batches hashed to."""

    __slots__ = (
        "early", "facts", "first", "hashed", "loader", "requested", "rows", "samples", "stepped", "waited", "whole",
    )  # fmt: skip

    def __init__(self, loader: Loader, facts: Pass) -> None:
        self.loader = loader
        self.facts = facts
        self.first = True
        self.samples: dict[int, int] = {}  # hash of a sample of a batch: the number of the batch
        self.rows: set[int] = set()
        self.hashed = 0  # how many were
        self.whole: dict[bytes, int] | None = None  # the numbers of whole batches, once a sample came twice
        self.requested: float | None = None
        self.waited = 0.0
        self.stepped = False
        self.early: list[weakref.ref[Tensor]] = []  # a tensor of each of the first batches


class LoaderObserver(Listener):
    """Watches the loaders of a session."""

    def __init__(self, session: "Context") -> None:
        self._session = session
        self._passes: dict[int, tuple[weakref.ref[Any], _Pass]] = {}
        self._facts: dict[int, Loader] = {}
        self._current: _Pass | None = None
        self._trainer: Loader | None = None  # whose batch a step last followed
        self._steps = 0  # of the run, when that of `_current` was asked for
        self._last: list[tuple[weakref.ref[Tensor], Loader]] = []
        self._restarts: dict[
            int, int
        ] = {}  # passes in a row that were left after a batch, by the id of the facts
        self.counts_labels = False
        """Whether the labels of every loader are counted, as before a run: in it that would cost each batch."""
        self.found: list[Loader] = []
        """The loaders that were iterated, in order of first use."""

    def detach(self) -> None:
        self._passes.clear()
        self._last.clear()

    @property
    def current(self) -> Loader | None:
        """The loader that handed out the last batch."""
        return None if self._current is None else self._current.loader

    @property
    def settled(self) -> bool:
        """Whether it is known where the batches in hand are trained on."""
        current = self._current
        return current is None or current.facts.ended or current.loader.stepped_at is not None

    def stepped(self) -> None:
        """An optimizer has stepped: the batch in hand was for training."""
        taken = self._current
        self._steps = self._session.step_count
        if taken is not None and not taken.stepped:
            taken.stepped = True
            self._trainer = taken.loader
            taken.facts.steps += 1
            if taken.loader.stepped_at is None:
                taken.loader.stepped_at = here()

    def facts(self, loader: Any) -> Loader | None:
        """What is known of a loader that was iterated."""
        facts = self._facts.get(id(loader))
        return facts if facts is not None and facts.loader() is loader else None

    def origin(self, tensor: Tensor) -> Loader | None:
        """The loader that handed a tensor out as part of its last batch."""
        for reference, loader in self._last:
            if reference() is tensor:
                return loader
        return None

    def report(self, run: Run) -> None:
        """What can be said of the loaders only when several passes are over, at the end, or beside the other ranks."""
        run.cuts = [*cuts_of(self.found, over=run.over)]
        for number, loader in enumerate(self.found):
            own = run.told.orders[number] if loader.trained else []
            apart = [
                rank
                for rank, told in sorted(run.peers.items())
                if _part(own, told.orders[number : number + 1])
            ]
            loader.ranks_apart = [run.rank, *apart] if apart else []
            for last in loader.passes[-1:]:
                last.replayed = self._replayed(last, loader, run.steps) if last.kept else 0

    def _replayed(self, last: Pass, loader: Loader, steps: int) -> int:
        """The steps after the end of a pass whose batches are kept; 0 if they may be of another loader, or are too few for the batches to
        have come again.
        """
        others = (one for one in self.found if one is not loader and not one.evaluates)
        go_on = any(one.last_step > last.ended_at + 1 for one in others)
        after, first = steps - last.ended_at, last.ended_at - last.started_at
        return after if after >= first and 2 * last.steps >= last.batches and not go_on else 0

    def split(self, call: Call) -> End:
        return self._was_split

    def _was_split(self, call: Call) -> None:
        for part in call.result if not call.raised else ():
            BUILT.add(part, here())

    def epoch(self, call: Call) -> End:
        return partial(self._begun, started=time.perf_counter())  # workers take their time to start

    def _begun(self, call: Call, started: float) -> None:
        if not call.raised:
            self._begin(call.args[0], call.result, time.perf_counter() - started)

    def _begin(self, loader: Any, iterator: Any, seconds: float) -> None:
        self._session.window.wait(seconds)
        facts = self.facts(loader)
        if facts is None:
            if len(self.found) == _MOST:
                return
            facts = Loader(
                BUILT.get(loader) or here(),
                loader=weakref.ref(loader),
                workers=loader.num_workers,
                is_measured=True,
            )
            facts.once = _draws_once(loader)
            _describe(loader, facts)
            self._facts[id(loader)] = facts
            self.found.append(facts)
        if facts.trained and facts.epochs & (facts.epochs - 1) == 0:
            self._session.begins_phase()  # what an epoch begins with: layers that thaw, another loss, another size
        facts.epochs += 1
        begun = Pass(begun=here(), started_at=self._session.step_count)
        self._note_restart(facts)
        facts.passes.append(begun)
        del facts.passes[:-_PASSES]
        self._passes = {key: entry for key, entry in self._passes.items() if entry[0]() is not None}
        self._passes[id(iterator)] = (weakref.ref(iterator), _Pass(facts, begun))

    def _note_restart(self, facts: Loader) -> None:
        """Whether the pass before was left after one batch, which a step followed."""
        last = facts.passes[-1] if facts.passes else None
        restarted = last is not None and last.batches == last.steps == 1 and not last.ended
        self._restarts[id(facts)] = streak = self._restarts.get(id(facts), 0) + 1 if restarted else 0
        if last is not None and streak >= facts.restarted:
            facts.restarted, facts.restarted_at = streak, last.begun

    def batch(self, call: Call) -> End:
        return partial(self._came, started=time.perf_counter())

    def _came(self, call: Call, started: float) -> None:
        ended = time.perf_counter()
        if not call.raised:
            self._note(call.args[0], call.result, started, ended)
        elif isinstance(sys.exception(), StopIteration):
            self._end(call.args[0], ended - started)

    def _catch_up(self) -> None:
        """Steps that were but counted are told by their number."""
        if self._session.step_count != self._steps:
            self.stepped()

    def _end(self, iterator: Any, seconds: float) -> None:
        self._catch_up()
        self._session.window.wait(seconds)
        entry = self._passes.get(id(iterator))
        if entry is not None:
            taken = entry[1]
            taken.facts.ended = True
            taken.facts.ended_at = self._session.step_count
            if taken.facts.batches > _EARLY + 1 and taken.early:  # the last one is in hand
                taken.facts.kept = all(reference() is not None for reference in taken.early)
            taken.loader.seen.ended |= taken.loader.epochs == 1
            self._session.tell("pass_ended", taken.loader)

    def _note(self, iterator: Any, batch: Any, started: float, ended: float) -> None:
        self._catch_up()
        self._session.window.wait(ended - started)
        entry = self._passes.get(id(iterator))
        if entry is None:
            return
        taken = entry[1]
        loader = taken.loader
        loader.batches += 1
        loader.last_step = self._session.step_count
        if taken.requested is not None and taken.stepped:
            loader.trained += 1
            loader.waited += taken.waited
            loader.stepping += started - taken.requested
            idle = self._session.device_idle
            loader.asked += idle is not None
            loader.idle += idle is True
        self._count(taken)
        taken.requested, taken.waited, taken.stepped = started, ended - started, False
        self._current = taken
        window = self._session.window
        found = list(tensors(batch))
        if found and len(taken.early) < _EARLY:
            taken.early.append(weakref.ref(found[0][1]))
        if window.step is not None:
            self._last = [(weakref.ref(tensor), loader) for _, tensor in found]
            window.step.batches.append(Batch(loader, [Value.of(name, tensor) for name, tensor in found]))
            del window.step.batches[:-8]
        batch_of = [tensor for _, tensor in found if _hashable(tensor)]
        self._session.tell("handed_out", loader, batch_of)
        if self._session.wants_digests or self.counts_labels:
            data = [_bytes(tensor) for tensor in batch_of]
            self._hash(taken, batch_of, data)
            self._look(taken, batch_of, data)

    def _count(self, taken: _Pass) -> None:
        facts, last = taken.facts, self._current
        facts.batches += 1
        if last is not None and last is not taken and not last.stepped:
            last.facts.paired += 1
            facts.paired += 1
        if facts.batches == 1:
            facts.shuffled_by = _shuffled_by(taken.loader.loader())
            trainer, before = self._trainer, taken.loader.after
            known = (taken.loader, *before)
            if trainer is not None and len(before) < _PASSES and all(trainer is not each for each in known):
                before.append(trainer)
        elif facts.batches == 2:
            facts.place = here()

    def _look(self, taken: _Pass, found: list[Tensor], data: list[memoryview]) -> None:
        """Look at the samples of the first pass of a loader, for the rules that ask what is in them."""
        loader, rules = taken.loader, self._session.settings.rules
        if loader.epochs > 1:
            return
        if "TA320" in rules:
            samples.tell_apart(loader.told, found, data)
        if self.counts_labels or ("TA314" in rules and loader.sampler == "SequentialSampler"):
            samples.label(loader.seen, found)
        shared = "TA308" in rules and loader.iterable and (loader.workers or 0) > 1
        if shared or "TA856" in rules:
            audited = self._session.window.step is not None
            samples.inspect(loader.seen, found, taken.rows, everything=audited)

    def _hash(self, taken: _Pass, found: list[Tensor], data: list[memoryview]) -> None:
        if not found or len(taken.samples) >= _REMEMBERED:
            return
        by_tensor = [_pieces(each) for each in data]
        pieces = [piece for pieces in by_tensor for piece in pieces]
        sample = _crc(pieces)
        loader = taken.loader
        facts = taken.facts
        facts.hashed += 1
        facts.contents = zlib.crc32(sample.to_bytes(4), facts.contents)
        for tensor, of_tensor in zip(found, by_tensor, strict=True):
            if not tensor.is_floating_point():
                facts.labels = _crc(of_tensor, facts.labels)
        taken.hashed += 1
        compared = loader.epochs == 1 and len(loader.digests) < _DIGESTS
        if (compared or sample in taken.samples) and len(zlib.compress(b"".join(pieces), 1)) < _LITTLE:
            return
        if compared:
            loader.digests.append(f"{sample:08x}")
        number = taken.hashed - 1
        first = taken.samples.setdefault(sample, number)
        if any(tensor.nbytes > _WHOLE for tensor in found):  # the sample is not all of it
            if first != number and taken.whole is None:
                taken.whole = {}
            if taken.whole is None:
                return
            digest = hashlib.blake2b(digest_size=16)
            for each in data:
                digest.update(each)
            first = taken.whole.setdefault(digest.digest(), number)
        workers = loader.workers or 1  # they take turns
        loader.repeats += first != number and (workers == 1 or first % workers != number % workers)


def _part(own: list[Order], others: list[list[Order]]) -> bool:
    """Whether two ranks that took equally many passes over a loader shuffled one of them in different ways."""
    pairs = [pair for other in others if len(other) == len(own) for pair in zip(own, other, strict=True)]
    return any(one != two for one, two in pairs if one and two)


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


def _pieces(data: memoryview) -> list[memoryview]:
    """All bytes of a small tensor, an even sample of those of a large one."""
    if len(data) <= _WHOLE:
        return [data]
    stride = len(data) // _SLICES
    return [data[index * stride : index * stride + _SLICE] for index in range(_SLICES)]


def _crc(pieces: list[memoryview], value: int = 0) -> int:
    for piece in pieces:
        value = zlib.crc32(piece, value)
    return value


def _describe(loader: Any, facts: Loader) -> None:
    """What a loader says of itself. A length is asked of user code, which may have none."""
    dataset, chosen = loader.dataset, []
    facts.split_at = BUILT.get(dataset)
    while isinstance(dataset, Subset):
        chosen.append(dataset.indices)
        dataset = dataset.dataset
    facts.dataset = type(dataset)
    facts.iterable = isinstance(dataset, IterableDataset)
    facts.batch_size, facts.drop_last = loader.batch_size, loader.drop_last
    sampler = _sampler(loader)
    if facts.iterable or sampler is None:
        return
    facts.sampler = type(sampler).__name__
    with Shield():
        facts.length = len(loader)
        if type(loader.batch_sampler) is BatchSampler:
            facts.samples = len(sampler)
            facts.draws_once = facts.once or facts.batch_size == 1
        if type(sampler) is SubsetRandomSampler:
            chosen.insert(0, sampler.indices)
        elif not facts.once and type(sampler) not in (SequentialSampler, RandomSampler):
            return
        facts.indices = Indices(weakref.ref(dataset), tuple(chosen), len(dataset))


def _sampler(loader: Any) -> Any:
    """What draws the indices, also below a batch sampler."""
    if loader.batch_sampler is None:
        return loader.sampler
    return getattr(loader.batch_sampler, "sampler", None)


def _shuffled_by(loader: Any) -> tuple[int, int] | None:
    sampler = _sampler(loader) if loader is not None else None
    if not isinstance(sampler, DistributedSampler) or not sampler.shuffle:
        return None
    own_way = type(sampler).__iter__ is not DistributedSampler.__iter__
    return None if own_way else (sampler.seed, sampler.epoch)


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
