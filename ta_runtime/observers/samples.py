"""Looks at the samples of a batch, one by one: which came before, what is missing in them, and of which class they are."""

import torch
from torch import Tensor

from ta_runtime.facts import Samples

_MOST = 10_000
"""Samples that are looked at, and classes that are counted."""
_SMALL = 1 << 18
"""Bytes of a batch that takes about a tenth of a millisecond to look at; larger ones only on audited steps."""
_TELLING = 16
"""Bytes of a sample: shorter ones are alike by chance."""
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


def _count(found: list[Tensor]) -> int:
    """How many samples a batch has; 0 where its tensors do not agree on it."""
    counts = {tensor.shape[0] if tensor.dim() else 0 for tensor in found}
    return counts.pop() if len(counts) == 1 else 0
