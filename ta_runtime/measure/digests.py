"""Digests of tensors, bit for bit: tensors of one dtype, shape and content have one digest, on whatever rank.

On a CPU it is a hash of the memory, without an operation of torch: XXH3 of 128 bits where `xxhash` is installed, which
is as fast as reading that memory, else SHA-1. On a device it is computed there: integers wrap around exactly, so that
no order of summation changes it, and each word is weighted by its place, so that an exchange of elements is seen.
Beside each digest are a few of the values, to tell how far apart two tensors are.
"""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor
from torch.distributed.tensor import DTensor
from torch.utils._python_dispatch import is_traceable_wrapper_subclass

from ta_runtime.measure.memory import Undigestible, memory, storage

_xxh3: Callable[[Any], bytes] | None
_xxh3_number: Callable[[Any, int], int] | None
try:
    from xxhash import xxh3_64_intdigest as _xxh3_number
    from xxhash import xxh3_128_digest as _xxh3
except ModuleNotFoundError:
    _xxh3 = _xxh3_number = None

VALUES = 16
"""Elements of a tensor, evenly spread, that are kept beside its `Digest`."""
BLOCKS = 64
"""Equal parts of a tensor, at most, that have digests of their own."""
BLOCK = 1 << 17
"""Bytes that a part has at least: hashing it takes longer than asking for it."""

_ROW = 1 << 20  # words of 4 bytes that are weighted at once on a device
_ODD = (-7046029254386353131, -4658895280553007687)  # of splitmix64 and of its kin, as signed integers


def pieces(tensor: Tensor) -> list[Tensor]:
    """The dense tensors that a tensor consists of, each flat and in order, the one with its values last.

    Of a distributed tensor that is this rank's part, of a sparse one its indices and values, of a quantised one its
    integers and scales, of another subclass what it wraps. Call it under `torch.no_grad()`.

    Raises:
        Undigestible: there is no memory to read.
    """
    if torch.nn.parameter.is_lazy(tensor):
        raise Undigestible("not initialised yet")
    if isinstance(tensor, FakeTensor):
        raise Undigestible("a fake tensor")
    if isinstance(tensor, DTensor):
        return pieces(tensor.to_local())
    if is_traceable_wrapper_subclass(wrapper := cast("Any", tensor)):
        names, _ = wrapper.__tensor_flatten__()
        inner = [getattr(wrapper, name) for name in names]
        return [piece for part in reversed(inner) if isinstance(part, Tensor) for piece in pieces(part)]
    if tensor.is_meta:
        raise Undigestible("on the meta device")
    if tensor.is_nested:
        return [piece for part in tensor.unbind() for piece in pieces(part)] or [torch.empty(0)]
    if tensor.is_quantized:
        return _quantised(tensor)
    if tensor.layout is torch.strided and storage(tensor) is None and tensor.numel():
        raise Undigestible(f"a `{type(tensor).__name__}` without memory of its own")
    if tensor.layout is not torch.strided:
        return [piece for part in _sparse_parts(tensor) for piece in pieces(part)]
    plain = tensor.detach()
    if plain.is_conj() or plain.is_neg():
        plain = plain.resolve_conj().resolve_neg()
    return [plain.contiguous().view(-1)]


def _sparse_parts(tensor: Tensor) -> tuple[Tensor, ...]:
    """The indices and the values of a sparse tensor.

    Raises:
        Undigestible: its layout is none that torch documents.
    """
    if tensor.layout is torch.sparse_coo:
        whole = tensor.coalesce()
        return whole.indices(), whole.values()
    if tensor.layout in (torch.sparse_csr, torch.sparse_bsr):
        return tensor.crow_indices(), tensor.col_indices(), tensor.values()
    if tensor.layout in (torch.sparse_csc, torch.sparse_bsc):
        return tensor.ccol_indices(), tensor.row_indices(), tensor.values()
    raise Undigestible(f"of layout {str(tensor.layout).removeprefix('torch.')}")


def copied(flat: Tensor) -> bytes:
    """The bytes of a flat tensor on the CPU."""
    return bytes(memory(flat))


def of_bytes(data: bytes) -> tuple[str, str]:
    """The digest of what is no tensor, and its algorithm."""
    return hashed(data).hex(), algorithm()


class Weights:
    """Pseudo-random odd weights for the words of a row, the same on every device, made once for each.

    With them, two rows that differ have the same two sums by a chance of about 2^-64.
    """

    def __init__(self) -> None:
        self._made: dict[torch.device, Tensor] = {}

    def sums(self, flat: Tensor) -> tuple[Tensor, int]:
        """The weighted sums of each row of a flat tensor, int64 `[rows, 2]`; and how many rows make a block.

        Of words of 4 bytes as they lie in memory, modulo 2^64.
        """
        words = _words(flat)
        count = words.numel()
        length = row_length(count)
        weights = self._of(min(length, count), flat.device)
        whole, rest = divmod(count, length)
        at_once = _ROW // length
        sums = []
        for start in range(0, whole, at_once):
            rows = words[start * length : min(start + at_once, whole) * length].view(-1, 1, length)
            sums.append((rows * weights).sum(dim=2))
        if rest or not whole:
            sums.append((words[whole * length :] * weights[:, :rest]).sum(dim=1)[None])
        return torch.cat(sums), -(-(whole + (rest > 0)) // BLOCKS) or 1

    def _of(self, length: int, device: torch.device) -> Tensor:
        made = self._made.get(device)
        if made is None or made.shape[1] < length:
            room = 1 << max(length - 1, 0).bit_length()
            places = torch.arange(2 * room, dtype=torch.int64, device=device)
            made = self._made[device] = _mixed(places * _ODD[1] + _ODD[0]).view(room, 2).T.contiguous() | 1
        return made[:, :length]


def shape_of(tensor: Tensor) -> list[int] | None:
    """Its shape; of what is distributed, that of this rank's part. -1 where the parts of a nested tensor differ."""
    if isinstance(tensor, DTensor):
        tensor = tensor.to_local()
    if torch.nn.parameter.is_lazy(tensor):
        return None
    if tensor.is_nested and tensor.layout is torch.strided:
        return [tensor.size(0), *(-1 for _ in range(tensor.dim() - 1))]
    return [size if isinstance(size, int) else -1 for size in tensor.shape]


def _quantised(tensor: Tensor) -> list[Tensor]:
    if tensor.qscheme() in (torch.per_tensor_affine, torch.per_tensor_symmetric):
        scales = [torch.tensor([tensor.q_scale(), tensor.q_zero_point()], dtype=torch.float64)]
    else:
        scales = [tensor.q_per_channel_scales().double(), tensor.q_per_channel_zero_points().double()]
    moved = [scale.to(tensor.device) for scale in scales]
    return [piece for part in (*moved, tensor.int_repr()) for piece in pieces(part)]


def fetched(tensors: Sequence[Tensor]) -> Iterator[Tensor]:
    """Flat tensors of one dtype on the CPU: one copy from each device for all of them."""
    by_device: dict[torch.device, list[int]] = {}
    for index, tensor in enumerate(tensors):
        by_device.setdefault(tensor.device, []).append(index)
    found: dict[int, Tensor] = {}
    for indices in by_device.values():
        together = torch.cat([tensors[index] for index in indices]).cpu()
        lengths = [tensors[index].numel() for index in indices]
        found.update(zip(indices, torch.split(together, lengths), strict=True))
    return (found[index] for index in range(len(tensors)))


def row_length(words: int) -> int:
    return min(max(-(-words // BLOCKS), BLOCK // 4), _ROW)


def _words(flat: Tensor) -> Tensor:
    """The memory of a flat tensor as words of 4 bytes, the last filled up with zeros."""
    odd = (flat.numel() * flat.element_size()) % 4 or (flat.storage_offset() * flat.element_size()) % 4
    if not odd:
        return flat.view(torch.int32)
    data = as_bytes(flat)
    return torch.nn.functional.pad(data, (0, -data.numel() % 4)).view(torch.int32)


def as_bytes(flat: Tensor) -> Tensor:
    return flat.view(torch.uint8)


def spread(flat: Tensor, count: int) -> Tensor:
    """So many elements at most, evenly spread."""
    if flat.numel() <= count:
        return flat
    return flat[:: flat.numel() // count][:count].contiguous()


def _mixed(values: Tensor) -> Tensor:
    """Spread each bit over the word."""
    for odd in _ODD:
        values = (values ^ (values >> 32)) * odd
    return values ^ (values >> 29)


def hashed(data: "bytes | memoryview") -> bytes:
    if _xxh3 is not None:
        return _xxh3(data)
    return hashlib.sha1(data, usedforsecurity=False).digest()[:16]


def algorithm() -> str:
    return "xxh3-128" if _xxh3 is not None else "sha1-128"


def signed(data: Any, seed: int) -> int:
    """A number of 64 bits, with a sign, of what memory holds, and of the number that it begins with."""
    if _xxh3_number is None:
        return int.from_bytes(hashed(seed.to_bytes(8, "little") + bytes(data))[:8], "little", signed=True)
    value = _xxh3_number(data, seed)
    return value - (1 << 64) if value >> 63 else value


# -- what ranks tell each other of a tensor -------------------------------------------------------------------


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
        self._lengths: list[int] = []
        weights = Weights()
        sums: list[Tensor] = []
        values: list[Tensor] = []
        with torch.no_grad():
            for index, tensor in enumerate(tensors):
                flat = tensor.detach().contiguous().view(-1)
                if flat.device.type == "cpu":
                    self._ready[index] = _of_memory(flat, self._shapes[index])
                    continue
                self._waiting.append(index)
                of_tensor, _ = weights.sums(flat)
                self._lengths.append(of_tensor.numel())
                sums.append(of_tensor.view(-1))
                kept = spread(flat, VALUES).float()
                values.append(torch.nn.functional.pad(kept, (0, VALUES - kept.numel())))
            if sums:
                self._sums = torch.cat(sums).to("cpu", non_blocking=True)
                self._values = torch.stack(values).to("cpu", non_blocking=True)
                self._event = torch.Event(device=sums[0].device)
                self._event.record()

    @property
    def arrived(self) -> bool:
        return not self._waiting or bool(self._event.query())

    def read(self) -> list[Digest]:
        if self._waiting:
            self._event.synchronize()
            parts = torch.split(self._sums, self._lengths)
            for index, sums, values in zip(self._waiting, parts, self._values.tolist(), strict=True):
                shape = self._shapes[index]
                count = min(torch.Size(shape).numel(), VALUES)
                self._ready[index] = Digest(number_of(memory(sums)), shape, tuple(values[:count]))
            self._waiting = []
        return [digest for digest in self._ready if digest is not None]


def _of_memory(flat: Tensor, shape: tuple[int, ...]) -> Digest:
    return Digest(number_of(memory(flat)), shape, tuple(spread(flat, VALUES).float().tolist()))


def number_of(data: memoryview) -> int:
    return int.from_bytes(hashed(data)[:8], "little")
