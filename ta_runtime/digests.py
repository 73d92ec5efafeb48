"""Digests of tensors, bit for bit: equal tensors of one shape and dtype have one digest, on whatever rank.

On a CPU it is a checksum of the memory, without an operation of torch. On a device it is an integer hash that is
computed there: integers wrap around exactly, so that no order of summation changes it, and each element is weighted by
its place, so that an exchange of elements is seen. Beside each digest are a few of the values, to tell how far apart
two tensors are.
"""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

VALUES = 16
"""Elements of a tensor, evenly spread, that are kept beside its digest."""

_CHUNK = 1 << 22  # elements that are hashed at once, at 8 bytes each
_WORDS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
_ODD = (-7046029254386353131, -4658895280553007687)  # of splitmix64 and of its kin, as signed integers


@dataclass(frozen=True, slots=True)
class Digest:
    """Of one tensor: all its bits as one number, its shape, and up to `VALUES` of its elements, as floats."""

    bits: int
    shape: tuple[int, ...]
    values: tuple[float, ...]

    @property
    def varies(self) -> bool:
        """Whether the tensor holds more than one value: what is constant may well be equal by chance."""
        return len(set(self.values)) > 1

    def apart(self, other: "Digest") -> float:
        """The largest difference of the kept elements, relative to the largest of them."""
        largest = max(map(abs, self.values), default=0.0)
        gap = max((abs(a - b) for a, b in zip(self.values, other.values, strict=False)), default=0.0)
        return gap / largest if largest else gap


class Digests:
    """The digests of some tensors, on their way: ask `arrived` before `read`, which else waits for the device."""

    def __init__(self, tensors: Sequence[Tensor]) -> None:
        self._shapes = [tuple(tensor.shape) for tensor in tensors]
        self._ready: list[Digest | None] = [None] * len(tensors)
        self._waiting: list[int] = []
        pending: list[tuple[Tensor, Tensor]] = []
        with torch.no_grad():
            for index, tensor in enumerate(tensors):
                if tensor.device.type == "cpu":
                    self._ready[index] = of_memory(tensor)
                else:
                    self._waiting.append(index)
                    pending.append((hashed(tensor), _spread(tensor)))
            if pending:
                self._bits = torch.stack([bits for bits, _ in pending]).to("cpu", non_blocking=True)
                self._values = torch.stack([values for _, values in pending]).to("cpu", non_blocking=True)
                self._event = torch.Event(device=pending[0][0].device)
                self._event.record()

    @property
    def arrived(self) -> bool:
        return not self._waiting or bool(self._event.query())

    def read(self) -> list[Digest]:
        if self._waiting:
            self._event.synchronize()
            rows = zip(self._waiting, self._bits.tolist(), self._values.tolist(), strict=True)
            for index, bits, values in rows:
                shape = self._shapes[index]
                count = min(torch.Size(shape).numel(), VALUES)
                self._ready[index] = Digest(bits, shape, tuple(values[:count]))
            self._waiting = []
        return [digest for digest in self._ready if digest is not None]


def of_memory(tensor: Tensor) -> Digest:
    """The digest of a tensor on the CPU."""
    flat = tensor.detach().contiguous().view(-1)
    step = max(1, flat.numel() // VALUES)
    values = tuple(flat[::step][:VALUES].float().tolist())
    return Digest(zlib.crc32(flat.view(torch.uint8).numpy().data), tuple(tensor.shape), values)


def hashed(tensor: Tensor) -> Tensor:
    """All bits of a tensor as one int64 on its own device."""
    flat = tensor.detach().contiguous().view(-1)
    words = flat.view(_WORDS[min(flat.element_size(), 8)])  # of complex128 two each
    total = torch.zeros((), dtype=torch.int64, device=tensor.device)
    for start in range(0, words.numel(), _CHUNK):
        chunk = _mixed(words[start : start + _CHUNK].to(torch.int64))
        places = torch.arange(start, start + chunk.numel(), device=tensor.device)
        total += (chunk * (_mixed(places) | 1)).sum()
    return total


def _mixed(values: Tensor) -> Tensor:
    """Spread each bit over the word; two changes of the sign bit would else cancel out."""
    for odd in _ODD:
        values = (values ^ (values >> 32)) * odd
    return values ^ (values >> 29)


def _spread(tensor: Tensor) -> Tensor:
    flat = tensor.detach().reshape(-1)
    values = flat[:: max(1, flat.numel() // VALUES)][:VALUES].float()
    return torch.nn.functional.pad(values, (0, VALUES - values.numel()))
