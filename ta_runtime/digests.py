"""Digests of tensors, bit for bit: tensors of one dtype, shape and content have one digest, on whatever rank.

On a CPU it is a hash of the memory, without an operation of torch: XXH3 of 128 bits where `xxhash` is installed, which
is as fast as reading that memory, else SHA-1. On a device it is computed there: integers wrap around exactly, so that
no order of summation changes it, and each word is weighted by its place, so that an exchange of elements is seen.
Beside each digest are a few of the values, to tell how far apart two tensors are.
"""

import ctypes
import hashlib
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, cast

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor
from torch.distributed.tensor import DTensor
from torch.utils._python_dispatch import is_traceable_wrapper_subclass

_xxh3: Callable[[Any], bytes] | None
_xxh3_number: Callable[[Any, int], int] | None
try:
    from xxhash import xxh3_64_intdigest as _xxh3_number
    from xxhash import xxh3_128_digest as _xxh3
except ModuleNotFoundError:
    _xxh3 = _xxh3_number = None

VALUES = 16
"""Elements of a tensor, evenly spread, that are kept beside its `Digest`."""
KEPT = 256
"""Elements that are kept beside its `Contents`: all of a tensor that has no more."""
BLOCKS = 64
"""Equal parts of a tensor, at most, that have digests of their own."""

_BLOCK = 1 << 17  # bytes that a part has at least: hashing it takes longer than asking for it
_ROW = 1 << 20  # words of 4 bytes that are weighted at once on a device
_STRETCH = 1 << 20  # bytes that are hashed and then summed while they are in the processor's cache
_CHUNK = 1 << 18  # elements whose squares are summed at once in float64
_SINGLE = {torch.float32, torch.float16, torch.bfloat16}
_WIDTH = 1 << 10  # elements whose squares are summed in float32; the sums then are in float64
_TINY = (
    1e-8  # a norm of which float32 may have lost a part, as squares of less than 1e-19 are no normal numbers
)
_PLAIN = {Tensor, torch.nn.Parameter, torch.nn.Buffer}
_ODD = (-7046029254386353131, -4658895280553007687)  # of splitmix64 and of its kin, as signed integers


class Undigestible(Exception):
    """A tensor without memory of its own to read; the text says which kind."""


# -- what a record of a snapshot says of a tensor -------------------------------------------------------------


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
                row["shape"] = _lengths(tensor)
                parts = pieces(tensor)
                on_host = not self._weighted and all(part.device.type == "cpu" for part in parts)
                header = _header(tensor, parts)
                (self._read if on_host else self._launch)(header, parts, row)
        except Undigestible as error:
            row["algorithm"] = f"none: {error}"
        except Exception as error:  # noqa: BLE001 - a subclass may do anything when asked
            row["algorithm"] = f"none: {type(error).__name__}"

    def deliver(self) -> None:
        """Fill in what was computed on devices; waits for it."""
        late, self._late = self._late, []
        if not late:
            return
        sums, kept, norms = _fetched(self._sums), _fetched(self._kept), _fetched(self._norms)
        for finish in late:
            finish(sums, kept, norms)
        self._sums, self._kept, self._norms = [], [], []

    def _read(self, header: str, parts: list[Tensor], row: dict[str, Any]) -> None:
        *others, last = parts
        squares: list[Tensor] | None = [] if self._norms_wanted else None
        blocks = [digest for part in others for digest in _block_digests(part)]
        _seal(row, header, blocks + _block_digests(last, squares), _algorithm())
        row["values"] = copied(_spread(last, KEPT))
        row["norm"] = _whole_norm(last, squares) if squares is not None else None

    def _launch(self, header: str, parts: list[Tensor], row: dict[str, Any]) -> None:
        counts = []
        for part in parts:
            sums, rows = self._weights.sums(part)
            self._sums.append(sums.reshape(-1))
            counts.append(rows)
        self._kept.append(_bytes(_spread(parts[-1], KEPT)).clone())
        norm = _norm(parts[-1]) if self._norms_wanted else None
        self._norms += [norm] if norm is not None else []

        def finish(sums: Iterator[Tensor], kept: Iterator[Tensor], norms: Iterator[Tensor]) -> None:
            blocks = [block for rows in counts for block in _blocks_of(next(sums).tolist(), rows)]
            _seal(row, header, blocks, f"weighted sums, {_algorithm()}")
            row["values"] = copied(next(kept))
            row["norm"] = float(next(norms)[0]) if norm is not None else None

        self._late.append(finish)


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


def memory(flat: Tensor) -> memoryview:
    """The bytes of a flat tensor on the CPU, not copied: hold the tensor as long as them."""
    count = flat.numel() * flat.element_size()
    if not count:
        return memoryview(b"")
    return memoryview((ctypes.c_char * count).from_address(flat.data_ptr())).cast("B")


def copied(flat: Tensor) -> bytes:
    """The bytes of a flat tensor on the CPU."""
    return bytes(memory(flat))


def of_bytes(data: bytes) -> tuple[str, str]:
    """The digest of what is no tensor, and its algorithm."""
    return _hash(data).hex(), _algorithm()


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
        length = _row_length(count)
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


def _block_digests(flat: Tensor, norms: list[Tensor] | None = None) -> list[bytes]:
    """The digests of the blocks of a flat tensor on the CPU. `norms` takes those of rows, if float32 can sum them.

    One stretch of memory after the other, as its norms cost half as much while it is in the cache.
    """
    data, numbers = memory(flat), _single(flat) if norms is not None else None
    length = max(-(-len(data) // BLOCKS), _BLOCK)
    length += -length % 16  # of whole elements
    stretch = max(_STRETCH // length, 1) * length
    digests: list[bytes] = []
    for first in range(0, len(data), stretch):
        starts = range(first, min(first + stretch, len(data)), length)
        digests += map(_xxh3 or _hash, [data[start : start + length] for start in starts])
        if norms is not None and numbers is not None:
            size = numbers.element_size()
            norms += _row_norms(numbers[first // size : (first + stretch) // size])
    return digests


def _seal(row: dict[str, Any], header: str, blocks: list[bytes], algorithm: str) -> None:
    row["digest"] = _hash(header.encode() + b"".join(blocks)).hex()
    row["algorithm"] = algorithm
    row["blocks"] = [int.from_bytes(block[:8], "little", signed=True) for block in blocks]


def _header(tensor: Tensor, parts: Sequence[Tensor]) -> str:
    """What two tensors of the same bytes may differ in, and where one part ends and the next begins."""
    own = tensor.dtype
    lengths = [part.numel() if part.dtype is own else f"{part.numel()} {part.dtype}" for part in parts]
    return f"{own} {_lengths(tensor)} {tensor.layout} {lengths} "


def _lengths(tensor: Tensor) -> list[int] | None:
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


def _blocks_of(sums: list[int], rows: int) -> list[bytes]:
    """The digests of the blocks whose rows have these sums, two each."""
    packed = b"".join(value.to_bytes(8, "little", signed=True) for value in sums)
    return [_hash(packed[start : start + 16 * rows]) for start in range(0, len(packed), 16 * rows)]


def _fetched(tensors: Sequence[Tensor]) -> Iterator[Tensor]:
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


def _row_length(words: int) -> int:
    return min(max(-(-words // BLOCKS), _BLOCK // 4), _ROW)


def _words(flat: Tensor) -> Tensor:
    """The memory of a flat tensor as words of 4 bytes, the last filled up with zeros."""
    odd = (flat.numel() * flat.element_size()) % 4 or (flat.storage_offset() * flat.element_size()) % 4
    if not odd:
        return flat.view(torch.int32)
    data = _bytes(flat)
    return torch.nn.functional.pad(data, (0, -data.numel() % 4)).view(torch.int32)


def _bytes(flat: Tensor) -> Tensor:
    return flat.view(torch.uint8)


def _spread(flat: Tensor, count: int) -> Tensor:
    """So many elements at most, evenly spread."""
    if flat.numel() <= count:
        return flat
    return flat[:: flat.numel() // count][:count].contiguous()


def _mixed(values: Tensor) -> Tensor:
    """Spread each bit over the word."""
    for odd in _ODD:
        values = (values ^ (values >> 32)) * odd
    return values ^ (values >> 29)


def _single(flat: Tensor) -> Tensor | None:
    """A flat tensor as numbers whose squares can be summed in float32; None if they cannot."""
    numbers = torch.view_as_real(flat).view(-1) if flat.dtype is torch.complex64 else flat
    return numbers if numbers.dtype in _SINGLE else None


def _row_norms(numbers: Tensor) -> Iterator[Tensor]:
    """The norms of rows of `_WIDTH` elements, in float32, and that of what is left.

    Over a whole tensor float32 would be wrong by a part in a thousand; over a row it is by less than 1e-6.
    """
    whole = len(numbers) // _WIDTH * _WIDTH
    for part in (numbers[:whole].view(-1, _WIDTH), numbers[whole:].view(1, -1)):
        if part.numel():
            yield torch.linalg.vector_norm(part, dim=1, dtype=torch.float32)


def _whole_norm(flat: Tensor, rows: Sequence[Tensor]) -> float | None:
    """The L2 norm of a flat tensor on the CPU, from those of its rows if there are any."""
    if rows:
        doubled = torch.cat(list(rows)).double()
        norm = math.sqrt(torch.dot(doubled, doubled))
        if _TINY < norm < math.inf:
            return norm
    found = _norm(flat)
    return float(found[0]) if found is not None else None


def _norm(flat: Tensor) -> Tensor | None:
    """The L2 norm as one float64 `[1]` on the same device, summed in float64; None of a dtype that has no numbers."""
    numbers = torch.view_as_real(flat).view(-1) if flat.is_complex() else flat
    try:
        room = torch.empty(min(len(numbers), _CHUNK), dtype=torch.float64, device=flat.device)
        squares = []
        for part in torch.split(numbers, _CHUNK):
            doubled = room[: len(part)].copy_(part)
            squares.append(torch.dot(doubled, doubled))
    except (RuntimeError, TypeError):
        return None
    return torch.stack(squares).sum().sqrt().view(1)


def _hash(data: "bytes | memoryview") -> bytes:
    if _xxh3 is not None:
        return _xxh3(data)
    return hashlib.sha1(data, usedforsecurity=False).digest()[:16]


def _algorithm() -> str:
    return "xxh3-128" if _xxh3 is not None else "sha1-128"


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
                kept = _spread(flat, VALUES).float()
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
                self._ready[index] = Digest(_number(memory(sums)), shape, tuple(values[:count]))
            self._waiting = []
        return [digest for digest in self._ready if digest is not None]


def _of_memory(flat: Tensor, shape: tuple[int, ...]) -> Digest:
    return Digest(_number(memory(flat)), shape, tuple(_spread(flat, VALUES).float().tolist()))


def _number(data: memoryview) -> int:
    return int.from_bytes(_hash(data)[:8], "little")


# -- what a trace says of a tensor ----------------------------------------------------------------------------


def numbers(tensors: Sequence[Tensor | None], *, wait: bool = True) -> list[int | None]:
    """One signed 64-bit number for each tensor, equal if all bits, the dtype and the shape are.

    Those on devices come over in one copy from each, which is waited for, or are left out unless `wait`. None: of a tensor
    without memory to read, and of None. Never raises.
    """
    found: list[int | None] = []
    late: list[tuple[int, int, Tensor]] = []
    for index, tensor in enumerate(tensors):
        number = None
        if tensor is not None:
            try:
                plain = type(tensor) in _PLAIN and tensor.layout is torch.strided and tensor.is_contiguous()
                if (
                    plain
                    and tensor.is_cpu
                    and not (tensor.is_neg() or tensor.is_conj() or tensor.is_quantized)
                ):
                    seed, room = _outline(tensor.dtype, tensor.shape)
                    number = _signed(room.from_address(tensor.data_ptr()) if room else b"", seed)
                else:
                    number = _of_pieces(tensor, late, index, wait)
            except Exception:  # noqa: BLE001 - a subclass may do anything when asked
                number = None
        found.append(number)
    if late:
        for (index, seed, _), sums in zip(late, _fetched([sums for *_, sums in late]), strict=True):
            found[index] = _signed(memory(sums), seed)
    return found


def combined(digests: Sequence[int | None]) -> int | None:
    """The number of several tensors together; None if there are none, or one of them has none."""
    if len(digests) < 2 or None in digests:
        return digests[0] if len(digests) == 1 else None
    return _signed(b"".join((each or 0).to_bytes(8, "little", signed=True) for each in digests), len(digests))


def number_of_zeros(tensor: Tensor) -> int:
    """The number of a tensor like this one that is all zeros: of a float, of zeros without a sign."""
    return _number_of_zeros(tensor.dtype, tensor.shape, tensor.is_cpu)


@torch.no_grad()
def _of_pieces(tensor: Tensor, late: list[tuple[int, int, Tensor]], index: int, wait: bool) -> int | None:
    with torch._C.DisableTorchFunctionSubclass():
        parts = pieces(tensor)
        shape = _lengths(tensor)
    seed = _seed(tensor.dtype, tuple(shape or ()))
    if all(part.device.type == "cpu" for part in parts):
        return _signed(memory(parts[0]) if len(parts) == 1 else b"".join(map(copied, parts)), seed)
    if wait:
        late.append((index, seed, torch.cat([_weights().sums(part)[0].view(-1) for part in parts])))
    return None


@lru_cache(maxsize=1)
def _weights() -> Weights:
    return Weights()


@lru_cache(maxsize=65536)
def _outline(dtype: torch.dtype, shape: torch.Size) -> tuple[int, Any]:
    """What a number begins with, and the type of the memory; None where there is none."""
    size = shape.numel() * dtype.itemsize
    return _seed(dtype, tuple(shape)), (ctypes.c_char * size) if size else None


def _seed(dtype: torch.dtype, shape: tuple[int, ...]) -> int:
    return _number(memoryview(f"{dtype} {shape}".encode()))


@lru_cache(maxsize=65536)
def _number_of_zeros(dtype: torch.dtype, shape: torch.Size, on_host: bool) -> int:
    size = shape.numel() * dtype.itemsize
    if not on_host:  # of each row of words two sums
        words = -(-size // 4)
        size = 16 * max(-(-words // _row_length(words)), 1)
    return _signed(bytes(size), _seed(dtype, tuple(shape)))


def _signed(data: Any, seed: int) -> int:
    if _xxh3_number is None:
        return int.from_bytes(_hash(seed.to_bytes(8, "little") + bytes(data))[:8], "little", signed=True)
    value = _xxh3_number(data, seed)
    return value - (1 << 64) if value >> 63 else value
