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
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import Any

import torch
from torch.utils.data import ConcatDataset, DataLoader, IterableDataset, Subset, get_worker_info
from torch.utils.data._utils.fetch import _MapDatasetFetcher

from ta_runtime.facts import Loader, Run, Stream
from ta_runtime.observers.observer import Observer
from ta_runtime.observers.patching import Patch
from ta_runtime.sources import of_attribute

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
        self.undo.patch(DataLoader, "__iter__", self._iter)

    def _iter(self, original: Callable[..., Any]) -> Callable[..., Any]:
        prepare, begin = self.session.guarded(self._prepare), self.session.guarded(self._begin)

        def __iter__(loader: Any) -> Any:
            prepared = prepare(loader) if self.undo else None
            if prepared is None:
                return original(loader)
            held, memory = prepared
            if memory is None:
                iterator = original(loader)
            else:
                patch = Patch(
                    _MapDatasetFetcher, "fetch", _writing(held, memory)
                )  # for those who are forked now
                try:
                    iterator = original(loader)
                finally:
                    patch.undo()
            begin(loader, held, memory)
            return iterator

        return __iter__

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


def _writing(held: list[_Held], memory: mmap.mmap) -> Callable[..., Callable[..., Any]]:
    """What a worker runs to get a batch: for its first, it writes down the states of the generators that it has."""
    names = [each.name for each in held]
    states: list[int] = []

    # in a worker, where the session cannot take in what goes wrong: then nothing is written, which says nothing
    def before(dataset: Any) -> list[_Held]:
        with suppress(Exception):
            own = list(islice(_held(dataset), _GENERATORS))  # where they were put into the worker's copy anew
            if [each.name for each in own] == names:
                states.extend(_state(each.generator) for each in own)
                return own
        return []

    def after(own: list[_Held], worker: int) -> None:
        with suppress(Exception):
            for number, (each, state) in enumerate(zip(own, states, strict=True)):
                _ENTRY.pack_into(memory, _offset(number, worker), True, state, _state(each.generator))

    def wrapper(original: Callable[..., Any]) -> Callable[..., Any]:
        first = True

        def fetch(fetcher: Any, index: Any) -> Any:
            nonlocal first
            worker = get_worker_info()
            if not first or worker is None:
                return original(fetcher, index)
            first = False
            own = before(fetcher.dataset)
            batch = original(fetcher, index)
            after(own, worker.id)
            return batch

        return fetch

    return wrapper


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
