"""The numbers of the monitored steps: held in bounded memory, and handed on to sinks as they come."""

import atexit
import logging
import os
import sys
import weakref
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ta_lint.core.errors import oneline
from ta_runtime.faults import Shield, keep
from ta_runtime.monitor.sinks import Sink
from ta_runtime.probes.work import own_work

if TYPE_CHECKING:
    import numpy as np

LIMIT = 256 << 20
"""Bytes of memory: 33 million numbers, such as 1,000 metrics in 33,000 steps."""

_BLOCK = 1 << 16  # numbers in a block, which is dropped as one
_OVERHEAD = 400  # bytes of a block without its numbers


class StorageManager:
    """What was measured, by step and key.

    A number takes 8 bytes. Beyond `limit` bytes the oldest steps are dropped, and that is told: spilled to a file they
    would fill the temporary folder, which on many clusters is memory too. Whoever wants all of a long run gives it a
    sink, which writes each step as it comes.

    A sink that fails is reported once and gets no more; the others go on, and so does the training. They are closed by
    `close`, at the latest when the process ends.

    Args:
        logger: told of a sink that failed and of steps that were dropped; by default `ta_runtime.monitor`, which writes
            to standard error if logging is not set up.
        sinks: of `ta_runtime.monitor.sinks`, or whatever has `write(step, values)`, `flush()` and `close()`.
        limit: bytes to hold at most; None holds everything.
    """

    def __init__(
        self, logger: logging.Logger | None = None, sinks: Iterable[Sink] = (), *, limit: int | None = LIMIT
    ) -> None:
        self.logger = logger or logging.getLogger("ta_runtime.monitor")
        self.limit = limit
        self.sinks = list(sinks)
        self._closing = at_end(self, _close, self.sinks, self.logger, os.getpid())
        self.clear()

    def clear(self) -> None:
        """Forget all steps. Sinks keep what they wrote."""
        self.dropped: tuple[int, int, int] | None = None
        """Of what was dropped: the first step, the last, and how many."""
        self._blocks: list[_Block] = []
        self._layouts: dict[tuple[str, ...], _Layout] = {}
        self._bytes = 0

    def add(self, step: int, values: Mapping[str, float]) -> None:
        """Add the numbers of a step, to those that it has already; a key that it has is replaced.

        Raises:
            TypeError, ValueError: a value is no number.
        """
        numbers = dict(zip(values, map(float, values.values()), strict=True))
        if self._blocks and step <= self._blocks[-1].steps[-1]:
            self._insert(step, numbers)
        else:
            self._append(step, numbers)
        self._drop()
        _tell(self.sinks, self.logger, "write", step, numbers)

    def has_step(self, step: int) -> bool:
        return self._found(step) is not None

    def get_step(self, step: int) -> dict[str, float]:
        """The numbers of a step; nothing if there is no such step, or it was dropped."""
        found = self._found(step)
        return {} if found is None else found[0].row(found[1])

    def get_all(self) -> dict[int, dict[str, float]]:
        """Of each step that is in memory, its numbers; what was dropped is told to the logger."""
        self._tell_dropped()
        return dict(self._rows())

    get_step_metrics = get_step
    get_all_metrics = get_all

    def condensed_log_dict(self) -> dict[str, dict[int, float]]:
        """The same by key: of each, its numbers by step."""
        condensed: dict[str, dict[int, float]] = {}
        for step, values in self.get_all().items():
            for key, value in values.items():
                condensed.setdefault(key, {})[step] = value
        return condensed

    def load_metrics(self, log_dict: Mapping[int, Mapping[str, float]]) -> None:
        """Take over what `get_all` gave. Sinks do not get it.

        Raises:
            ValueError: there are steps already.
        """
        if self._blocks:
            raise ValueError("there are steps already; `clear()` forgets them")
        for step in sorted(log_dict):
            self._append(step, {key: float(value) for key, value in log_dict[step].items()})
            self._drop()

    def save_hdf5(self, filename: str | Path) -> None:
        """Write all steps to a file of HDF5, for each key a group with its `keys`, which are the steps, and `values`.

        The file is there when all of it is. What was dropped is told to the logger, and is not in it.

        Raises:
            UsageError: it cannot be written; h5py is missing.
        """
        from ta_runtime.monitor import hdf5

        self._tell_dropped()
        hdf5.save(Path(filename), self._series())

    @staticmethod
    def load_hdf5(filename: str | Path) -> dict[str, dict[int, float]]:
        """Of each key its values by step, from a file of `save_hdf5`, of `sinks.HDF5` or of torch-module-monitor.

        Raises:
            UsageError: it cannot be read; h5py is missing.
        """
        from ta_runtime.monitor import hdf5

        return {
            key: dict(zip(steps.tolist(), values.tolist(), strict=True))
            for key, steps, values in hdf5.load(Path(filename))
        }

    @staticmethod
    def read_hdf5_entry_keys(filename: str | Path) -> list[str]:
        """The keys in a file, in order."""
        from ta_runtime.monitor import hdf5

        return hdf5.names(Path(filename))

    @staticmethod
    def read_hdf5_entry(filename: str | Path, entry_key: str) -> "tuple[np.ndarray, np.ndarray] | None":
        """The steps and values of one key in a file, int64 and float64; None if it is not there."""
        from ta_runtime.monitor import hdf5

        return next(((steps, values) for _, steps, values in hdf5.load(Path(filename), entry_key)), None)

    def flush(self) -> None:
        """Have the sinks write what they hold back."""
        _tell(self.sinks, self.logger, "flush")

    def close(self) -> None:
        """Have the sinks write what they hold back and let go of their files; they get no more."""
        self._closing()

    def _append(self, step: int, numbers: dict[str, float]) -> None:
        keys = tuple(numbers)
        block = self._blocks[-1] if self._blocks else None
        if block is None or block.keys != keys or len(block.values) >= self._block_size:
            layout = self._layouts.get(keys)
            if layout is None:
                keys = tuple(map(sys.intern, keys))
                layout = self._layouts[keys] = _Layout(keys)
                self._bytes += layout.bytes
            layout.blocks += 1
            block = _Block(layout.keys)
            self._blocks.append(block)
            self._bytes += _OVERHEAD
        block.append(step, numbers.values())
        self._bytes += 8 * (len(keys) + 1)

    def _insert(self, step: int, numbers: dict[str, float]) -> None:
        """What follows is taken out up to the end of its block, and put in again."""
        at = max(bisect_right(self._blocks, step, key=lambda block: block.steps[0]) - 1, 0)
        later = self._blocks[at + 1 :]
        block = self._blocks[at]
        del self._blocks[at + 1 :]
        position = bisect_left(block.steps, step)
        rows = [(block.steps[i], block.row(i)) for i in range(position, len(block.steps))]
        if rows and rows[0][0] == step:
            numbers = {**rows.pop(0)[1], **numbers}
        try:
            self._cut(block, position)
            for row in ((step, numbers), *rows):
                self._append(*row)
        finally:
            self._blocks += later

    def _cut(self, block: "_Block", position: int) -> None:
        """Take the rows from a position on out of the last block."""
        self._bytes -= 8 * (len(block.steps) - position) * (len(block.keys) + 1)
        block.cut(position)
        if not position:
            self._blocks.pop()
            self._forget(block)

    def _drop(self) -> None:
        while self.limit is not None and self._bytes > self.limit and len(self._blocks) > 1:
            block = self._blocks.pop(0)
            self._bytes -= 8 * len(block.steps) * (len(block.keys) + 1)
            self._forget(block)
            first, _, count = self.dropped or (block.steps[0], 0, 0)
            if not count:
                self.logger.warning(
                    "the numbers of the monitored steps fill %d bytes: from now on the oldest are dropped; "
                    "a sink keeps all of them, a larger `limit` more",
                    self.limit,
                )
            self.dropped = first, block.steps[-1], count + len(block.steps)

    def _forget(self, block: "_Block") -> None:
        layout = self._layouts[block.keys]
        layout.blocks -= 1
        self._bytes -= _OVERHEAD
        if not layout.blocks:
            del self._layouts[layout.keys]
            self._bytes -= layout.bytes

    def _found(self, step: int) -> "tuple[_Block, int] | None":
        at = bisect_right(self._blocks, step, key=lambda block: block.steps[0]) - 1
        if at < 0:
            return None
        block = self._blocks[at]
        position = bisect_left(block.steps, step)
        return (block, position) if position < len(block.steps) and block.steps[position] == step else None

    def _rows(self) -> Iterator[tuple[int, dict[str, float]]]:
        for block in self._blocks:
            for position, step in enumerate(block.steps):
                yield step, block.row(position)

    def _series(self) -> "Iterator[tuple[str, np.ndarray, np.ndarray]]":
        """Of each key its steps and values, in order."""
        import numpy as np

        columns: dict[str, list[tuple[np.ndarray, np.ndarray]]] = {}
        alike: dict[int, list[_Block]] = {}
        for block in self._blocks:
            alike.setdefault(id(block.keys), []).append(block)
        for blocks in alike.values():
            steps = np.concatenate([np.frombuffer(block.steps, "i8") for block in blocks])
            values = np.concatenate([np.array(block.values) for block in blocks]).reshape(len(steps), -1)
            for key, column in zip(blocks[0].keys, values.T, strict=True):
                columns.setdefault(key, []).append((steps, column))
        for key, parts in columns.items():
            steps = np.concatenate([steps for steps, _ in parts])
            order = np.argsort(steps)
            yield key, steps[order], np.concatenate([column for _, column in parts])[order]

    def _tell_dropped(self) -> None:
        if self.dropped is not None:
            self.logger.warning(
                "%d monitored steps, %d to %d, were dropped", self.dropped[2], *self.dropped[:2]
            )

    @property
    def _block_size(self) -> int:
        return _BLOCK if self.limit is None else min(_BLOCK, self.limit // 128)


@dataclass(slots=True)
class _Layout:
    """Keys that come together, which is nearly always: the blocks of such steps share them."""

    keys: tuple[str, ...]
    blocks: int = 0

    @property
    def bytes(self) -> int:
        return sys.getsizeof(self.keys) + sum(map(sys.getsizeof, self.keys))


@dataclass(slots=True)
class _Block:
    """Steps in order that have the same keys."""

    keys: tuple[str, ...]
    steps: "array[int]" = field(default_factory=lambda: array("q"))
    values: "array[float]" = field(default_factory=lambda: array("d"))
    """Those of one step after those of another."""

    def append(self, step: int, numbers: Iterable[float]) -> None:
        # a slice overwrites what an interrupt may have left of a step before
        self.values[len(self.steps) * len(self.keys) :] = array("d", numbers)
        self.steps.append(step)

    def row(self, position: int) -> dict[str, float]:
        start = position * len(self.keys)
        return dict(zip(self.keys, self.values[start : start + len(self.keys)], strict=True))

    def cut(self, position: int) -> None:
        del self.steps[position:]
        del self.values[position * len(self.keys) :]


def at_end(
    owner: object, function: Callable[..., object], *arguments: object
) -> "weakref.finalize[..., Any]":
    """Call a function when its owner is gone, or the process ends: then before what was begun earlier ends.

    `weakref.finalize` alone would come after a run of Weights & Biases has finished.
    """

    def end() -> None:
        atexit.unregister(finalizer)
        function(*arguments)

    finalizer = weakref.finalize(owner, end)
    atexit.register(finalizer)
    return finalizer


def _close(sinks: list[Sink], logger: logging.Logger, process: int) -> None:
    if os.getpid() == process:  # what a fork inherits is not its own
        _tell(sinks, logger, "close")
        sinks.clear()


@own_work
def _tell(sinks: list[Sink], logger: logging.Logger, method: str, *arguments: object) -> None:
    """Call a method of each sink. One that fails is taken out."""
    for sink in tuple(sinks):
        try:
            getattr(sink, method)(*arguments)
        except Exception as error:  # noqa: BLE001 - of any library, a disk or a network; none may end the training
            keep(error)
            sinks.remove(sink)
            if method != "close":
                with Shield():
                    sink.close()
            logger.error(
                "%s: gets no more numbers, while the run goes on: %s: %s",
                sink,
                type(error).__name__,
                oneline(error),
            )
