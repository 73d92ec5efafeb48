"""Looks at the samples of a batch, one by one: which came before, what is missing in them, and of which class they are."""

from typing import Any

import torch
from torch import Tensor

from ta_runtime.facts import SampleHashes, Samples

_MOST = 10_000
"""Samples that are looked at, and classes that are counted."""
_SMALL = 1 << 18
"""Bytes of a batch that takes about a tenth of a millisecond to look at; larger ones only on audited steps."""
_TELLING = 16
"""Bytes of a sample: shorter ones are alike by chance."""
_HASHES = 50_000
"""Samples of a loader that are hashed."""
_PARTS, _PART = 16, 32
"""Of a large tensor, so many bytes at so many places."""
_DISTINCT, _PROBED = 8, 64
"""Different bytes among about so many of a sample: one with fewer, such as a blank picture, says little."""
_INTEGERS = {torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.bool}


def inspect(seen: Samples, found: list[Tensor], rows: set[int], *, everything: bool) -> None:
    """Compare the samples of a batch, CPU tensors with one row for each, with those before, of which `rows` has hashes."""
    import numpy as np  # there is no tensor to look at without it

    count = _count(found)
    size = sum(tensor.numel() * tensor.element_size() for tensor in found)
    if not count or len(rows) >= _MOST or (size > _SMALL and not everything):
        seen.whole = False
        return
    arrays = [tensor.numpy().reshape(count, -1) for tensor in found]
    seen.count += count
    finite = [np.isfinite(array).all(axis=1) for array in arrays if array.dtype.kind == "f"]
    if finite:
        seen.missing += count - int(np.logical_and.reduce(finite).sum())
    if size < _TELLING * count:
        return
    for index in range(count):
        row = hash(b"".join(array[index].tobytes() for array in arrays))
        seen.repeated += row in rows
        rows.add(row)


def label(seen: Samples, found: list[Tensor]) -> None:
    """Count the labels of a batch: the last of its tensors that has one integer for each sample."""
    count = _count(found)
    labels = [tensor for tensor in found if tensor.shape == (count,) and tensor.dtype in _INTEGERS]
    if not count or not labels or len(seen.labels) >= _MOST:
        return
    values = labels[-1].numpy().tolist()
    before = [seen.last, *values[:-1]]
    seen.alike += sum(value == other for value, other in zip(values, before, strict=True))
    seen.labels.update(values)
    seen.last = values[-1]


def tell_apart(told: SampleHashes, found: list[Tensor], data: list[memoryview]) -> None:
    """Hash each sample of a batch, tensors with one row for each, of which `data` are the bytes: an even part, or all of few."""
    import numpy as np  # there is no tensor to look at without it

    count = _count(found)
    if not count or len(told.hashes) >= _HASHES:
        told.whole = False
        return
    rows = [np.frombuffer(each, np.uint8).reshape(count, -1) for each in data]
    block = np.concatenate([part for each in rows for part in _parts(each)], axis=1)
    width, every = block.shape[1], block.tobytes()
    for start in range(0, len(every), width):
        sample = every[start : start + width]
        if width < _TELLING or len(set(sample[:: width // _PROBED | 1])) < _DISTINCT:
            told.whole = False
            continue
        value = hash(sample)
        told.count += 1
        told.repeated += value in told.hashes
        told.hashes.add(value)


def _parts(rows: Any) -> list[Any]:
    width = rows.shape[1]
    if width <= _PARTS * _PART:
        return [rows]
    return [rows[:, index * (width // _PARTS) :][:, :_PART] for index in range(_PARTS)]


def _count(found: list[Tensor]) -> int:
    """How many samples a batch has; 0 where its tensors do not agree on it."""
    counts = {tensor.shape[0] if tensor.dim() else 0 for tensor in found}
    return counts.pop() if len(counts) == 1 else 0
