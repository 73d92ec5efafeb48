"""What a record of a snapshot says of what a tensor holds: digests, a few values, and its norm."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from ta_runtime.faults import keep
from ta_runtime.measure.digests import (
    BLOCK,
    BLOCKS,
    Weights,
    algorithm,
    as_bytes,
    copied,
    fetched,
    hashed,
    pieces,
    shape_of,
    spread,
)
from ta_runtime.measure.memory import Undigestible, memory
from ta_runtime.measure.norms import as_single, exact_norm, host_norm, short_row_norms

KEPT = 256
"""Elements that are kept beside its `Contents`: all of a tensor that has no more."""
_STRETCH = 1 << 20  # bytes that are hashed and then summed while they are in the processor's cache


class Contents:
    """What tensors hold, as they were when they were added; what lies on a device comes over once, for all.

    Each is written into a row, with the names of the columns of `runs.schema.RECORDS`: `dtype`, `shape`, `digest`,
    `algorithm`, `blocks` (int64, of up to `BLOCKS` equal parts in order), `values` (bytes of up to `KEPT` elements) and
    `norm` (L2, right to 1e-6; it can be left out). `weighted` hashes tensors on the CPU as those on a device are.
    """

    def __init__(self, *, weighted: bool = False, norms: bool = True) -> None:
        self._weighted = weighted
        self._norms_wanted = norms
        self._weights = Weights()
        self._sums: list[Tensor] = []
        self._kept: list[Tensor] = []
        self._norms: list[Tensor] = []
        self._late: list[Callable[[Iterator[Tensor], Iterator[Tensor], Iterator[Tensor]], None]] = []

    @torch.no_grad()
    def add(self, tensor: Tensor, row: dict[str, Any]) -> None:
        """Begin to describe a tensor. Never raises: of what has no memory to read, `algorithm` says `none: why`."""
        try:
            with torch._C.DisableTorchFunctionSubclass():
                row["dtype"] = str(tensor.dtype).removeprefix("torch.")
                row["shape"] = shape_of(tensor)
                parts = pieces(tensor)
                on_host = not self._weighted and all(part.device.type == "cpu" for part in parts)
                header = _header(tensor, parts)
                (self._read if on_host else self._launch)(header, parts, row)
        except Undigestible as error:
            row["algorithm"] = f"none: {error}"
        except Exception as error:  # noqa: BLE001 - a subclass may do anything when asked
            keep(error)
            row["algorithm"] = f"none: {type(error).__name__}"

    def deliver(self) -> None:
        """Fill in what was computed on devices; waits for it."""
        late, self._late = self._late, []
        if not late:
            return
        sums, kept, norms = fetched(self._sums), fetched(self._kept), fetched(self._norms)
        for finish in late:
            finish(sums, kept, norms)
        self._sums, self._kept, self._norms = [], [], []

    def _read(self, header: str, parts: list[Tensor], row: dict[str, Any]) -> None:
        *others, last = parts
        squares: list[Tensor] | None = [] if self._norms_wanted else None
        blocks = [digest for part in others for digest in _block_digests(part)]
        _seal(row, header, blocks + _block_digests(last, squares), algorithm())
        row["values"] = copied(spread(last, KEPT))
        row["norm"] = host_norm(last, squares) if squares is not None else None

    def _launch(self, header: str, parts: list[Tensor], row: dict[str, Any]) -> None:
        counts = []
        for part in parts:
            sums, rows = self._weights.sums(part)
            self._sums.append(sums.reshape(-1))
            counts.append(rows)
        self._kept.append(as_bytes(spread(parts[-1], KEPT)).clone())
        norm = exact_norm(parts[-1]) if self._norms_wanted else None
        self._norms += [norm] if norm is not None else []

        def finish(sums: Iterator[Tensor], kept: Iterator[Tensor], norms: Iterator[Tensor]) -> None:
            blocks = [block for rows in counts for block in _blocks_of(next(sums).tolist(), rows)]
            _seal(row, header, blocks, f"weighted sums, {algorithm()}")
            row["values"] = copied(next(kept))
            row["norm"] = float(next(norms)[0]) if norm is not None else None

        self._late.append(finish)


def _block_digests(flat: Tensor, norms: list[Tensor] | None = None) -> list[bytes]:
    """The digests of the blocks of a flat tensor on the CPU. `norms` takes those of rows, if float32 can sum them.

    One stretch of memory after the other, as its norms cost half as much while it is in the cache.
    """
    data, numbers = memory(flat), as_single(flat) if norms is not None else None
    length = max(-(-len(data) // BLOCKS), BLOCK)
    length += -length % 16  # of whole elements
    stretch = max(_STRETCH // length, 1) * length
    digests: list[bytes] = []
    for first in range(0, len(data), stretch):
        starts = range(first, min(first + stretch, len(data)), length)
        digests += map(hashed, [data[start : start + length] for start in starts])
        if norms is not None and numbers is not None:
            size = numbers.element_size()
            norms += short_row_norms(numbers[first // size : (first + stretch) // size])
    return digests


def _seal(row: dict[str, Any], header: str, blocks: list[bytes], algorithm: str) -> None:
    row["digest"] = hashed(header.encode() + b"".join(blocks)).hex()
    row["algorithm"] = algorithm
    row["blocks"] = [int.from_bytes(block[:8], "little", signed=True) for block in blocks]


def _header(tensor: Tensor, parts: Sequence[Tensor]) -> str:
    """What two tensors of the same bytes may differ in, and where one part ends and the next begins."""
    own = tensor.dtype
    lengths = [part.numel() if part.dtype is own else f"{part.numel()} {part.dtype}" for part in parts]
    return f"{own} {shape_of(tensor)} {tensor.layout} {lengths} "


def _blocks_of(sums: list[int], rows: int) -> list[bytes]:
    """The digests of the blocks whose rows have these sums, two each."""
    packed = b"".join(value.to_bytes(8, "little", signed=True) for value in sums)
    return [hashed(packed[start : start + 16 * rows]) for start in range(0, len(packed), 16 * rows)]
