"""Sees whether the workers of a loader draw the same random numbers from a generator that its data set holds.

A worker is another process, which is looked into where it is forked: it hashes the state of the generators before and
after its first batch into memory that it shares with this process. Nothing is sent, and nothing is drawn.
"""

import mmap
import multiprocessing
import pickle
import random
import struct
import sys
import weakref
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any

import torch
from torch.utils.data import ConcatDataset, IterableDataset, Subset, get_worker_info

from ta_runtime.facts import Loader, Run, Stream
from ta_runtime.faults import Shield
from ta_runtime.observers.observer import Observer
from ta_runtime.probes import hub
from ta_runtime.probes.patching import Call, End
from ta_runtime.probes.sources import of_attribute
from ta_runtime.probes.undo import Undo

_STARTS = 2  # of workers that are watched, for each loader
_WORKERS = 64
_GENERATORS = 4  # of one data set
_ATTRIBUTES = 64  # of one object that are looked at
_ENTRY = struct.Struct("<?II")  # whether it was written, the state before and after


@dataclass(frozen=True, slots=True)
class _Held:
    holder: Any
    name: str

    @property
    def generator(self) -> Any:
        return vars(self.holder)[self.name]


class Workers(Observer):
    """Watches the generators in data sets."""

    def attach(self) -> None:
        self._written: list[tuple[mmap.mmap, list[dict[int, tuple[int, int]]]]] = []

    def epoch(self, call: Call) -> End | None:
        prepared = self._prepare(call.args[0])
        if prepared is None:
            return None
        held, memory = prepared
        if memory is None:
            return partial(self._begun, held=held)
        # for those who are forked now, in which the barrier of this process is closed
        forking = hub.watch("fetch", partial(_writes, held, memory), hub.directly)
        return partial(self._begun, held=held, memory=memory, forking=forking)

    def _begun(
        self, call: Call, held: list[_Held], memory: mmap.mmap | None = None, forking: Undo | None = None
    ) -> None:
        if forking is not None:
            forking()
        if not call.raised:
            self._begin(call.args[0], held, memory)

    def _prepare(self, loader: Any) -> tuple[list[_Held], mmap.mmap | None] | None:
        """The generators of a data set, and the memory for what its workers do with them, if it has workers to look into."""
        facts = self.session.loaders.facts(loader)
        if facts is not None and any(len(stream.states) >= _STARTS for stream in facts.streams):
            return None
        held = list(islice(_held(loader.dataset), _GENERATORS))
        if not held or isinstance(loader.dataset, IterableDataset):
            return None
        forks = 0 < loader.num_workers <= _WORKERS and _start_method(loader) == "fork"
        return held, mmap.mmap(-1, _GENERATORS * _WORKERS * _ENTRY.size) if forks else None

    def _begin(self, loader: Any, held: list[_Held], memory: mmap.mmap | None) -> None:
        facts = self.session.loaders.facts(loader)
        if facts is None:
            return
        facts.streams = facts.streams or [_stream(each, facts) for each in held]
        if memory is None:
            return
        states: list[dict[int, tuple[int, int]]] = [{} for _ in held]
        for stream, of_pass in zip(facts.streams, states, strict=False):
            stream.states.append(of_pass)
        self._written.append((memory, states))

    def report(self, run: Run) -> None:
        for memory, states in self._written:
            for number, of_pass in enumerate(states):
                for worker in range(_WORKERS):
                    written, before, after = _ENTRY.unpack_from(memory, _offset(number, worker))
                    if written:
                        of_pass[worker] = before, after


def _writes(held: list[_Held], memory: mmap.mmap, call: Call) -> End | None:
    """A worker gets a batch: for its first, it writes down the states of the generators that it has."""
    fetcher, worker = call.args[0], get_worker_info()
    if worker is None or fetcher in _fetched:
        return None
    _fetched.add(fetcher)
    # in a worker, where the session cannot take in what goes wrong: then nothing is written, which says nothing
    with Shield():
        own = list(
            islice(_held(fetcher.dataset), _GENERATORS)
        )  # where they were put into the worker's copy anew
        if [each.name for each in own] == [each.name for each in held]:
            return partial(_write, own, [_state(each.generator) for each in own], memory, worker.id)
    return None


def _write(own: list[_Held], states: list[int], memory: mmap.mmap, worker: int, call: Call) -> None:
    if call.raised:
        return
    with Shield():
        for number, (each, state) in enumerate(zip(own, states, strict=True)):
            _ENTRY.pack_into(memory, _offset(number, worker), True, state, _state(each.generator))


_fetched: "weakref.WeakSet[Any]" = weakref.WeakSet()
"""What has given a batch, in this worker."""


def _offset(generator: int, worker: int) -> int:
    return (generator * _WORKERS + worker) * _ENTRY.size


def _held(dataset: Any) -> Iterator[_Held]:
    """The generators that a data set, or an object that it holds, such as a transform, has as attributes."""
    if isinstance(dataset, Subset):
        yield from _held(dataset.dataset)
    elif isinstance(dataset, ConcatDataset):
        for part in dataset.datasets:
            yield from _held(part)
    kinds = _kinds()
    for name, value in islice(getattr(dataset, "__dict__", {}).items(), _ATTRIBUTES):
        if type(value) in kinds:
            yield _Held(dataset, name)
        elif not isinstance(value, torch.utils.data.Dataset):
            for inner, below in islice(getattr(value, "__dict__", {}).items(), _ATTRIBUTES):
                if type(below) in kinds:
                    yield _Held(value, inner)


def _kinds() -> set[type]:
    numpy = sys.modules.get("numpy.random")
    of_numpy = {numpy.Generator, numpy.RandomState} if numpy is not None else set()
    return {torch.Generator, random.Random, *of_numpy}


def _state(generator: Any) -> int:
    """A hash of a generator's state, which reading does not change."""
    if isinstance(generator, torch.Generator):
        return zlib.crc32(generator.get_state().numpy().data)
    if isinstance(generator, random.Random):
        return zlib.crc32(pickle.dumps(generator.getstate()))
    state = generator.get_state() if hasattr(generator, "get_state") else generator.bit_generator.state
    return zlib.crc32(pickle.dumps(state))


def _start_method(loader: Any) -> str:
    """How the workers of a loader start; asking must not settle it for the process."""
    context = loader.multiprocessing_context or multiprocessing
    return context.get_start_method(allow_none=True) or multiprocessing.get_all_start_methods()[0]


def _stream(held: _Held, loader: Loader) -> Stream:
    return Stream(held.name, of_attribute(type(held.holder), held.name) or loader.place)
