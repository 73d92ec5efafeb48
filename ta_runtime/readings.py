"""Numbers on their way from the device: computed in bulk, copied without waiting, read a step later.

One `torch._foreach_norm` and one `torch.stack` give the norms of any number of tensors of one device and dtype: two
operations. On an accelerator the vector then goes into pinned memory by a copy that does not block, and an event says
when it has arrived. Nothing here draws random numbers or records a graph, and nothing waits for a device but `deliver`,
if it is called before all has arrived.
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, islice
from operator import attrgetter

import torch
from torch import Tensor, nn
from torch.distributed.tensor import DTensor

Deliver = Callable[[list[float]], None]

_SINGLE = {torch.float32, torch.float16, torch.bfloat16}
_DOUBLE = {torch.float64}
_MEASURABLE = _SINGLE | _DOUBLE | {torch.complex64, torch.complex128}
_SHAPE, _DTYPE, _DEVICE = attrgetter("shape"), attrgetter("dtype"), attrgetter("device")
LAYOUT = attrgetter("layout")
_TYPES = (Tensor, nn.Parameter, nn.Buffer)

SMALL = 1 << 14
"""Elements below which a further operation costs more than a copy of the tensor."""

_LARGE = 1 << 19
_ROW, _FEW, _MANY = 1 << 10, 1 << 6, 1 << 12

_foreach_norm = getattr(torch, "_foreach_norm", None)  # not public: with a fallback


@dataclass(slots=True)
class _Transfer:
    vector: Tensor
    arrived: "torch.Event | None"
    deliver: Deliver


class Readings:
    """The numbers of one step. Fill it under `torch.no_grad()`; `deliver` hands each to whom it is for."""

    def __init__(self) -> None:
        self._transfers: list[_Transfer] = []
        self._loose: list[tuple[Sequence[Tensor], Deliver]] = []

    def norms(
        self,
        tensors: Sequence[Tensor],
        deliver: Deliver,
        order: float = 2.0,
        beside: Sequence[Tensor] = (),
    ) -> None:
        """The norm of each tensor, in order: L2, or the number of elements that are not zero for `order=0`.

        The largest magnitude, `order=math.inf`, costs 20 times an L2 norm on a CPU (torch 2.13, 512 Ki elements): avoid
        it. All must be `measurable`. Half precision is summed in float32. The tensors of one
        element `beside` ride along where device and dtype allow, and their values follow the norms.
        """
        if (dtype := _common(tensors, beside)) is not None:
            self.vector(torch.stack((*_norms(tensors, order, dtype), *beside)), deliver)
            return
        results = [0.0] * (len(tensors) + len(beside))
        groups: dict[tuple[torch.device, torch.dtype], list[int]] = {}
        for index, tensor in enumerate(tensors):
            groups.setdefault((tensor.device, tensor.dtype), []).append(index)
        riders: dict[tuple[torch.device, torch.dtype], list[int]] = {}
        for index, tensor in enumerate(beside, len(tensors)):
            riders.setdefault((tensor.device, tensor.dtype), []).append(index)
        vectors: list[tuple[Tensor, list[int]]] = []
        for (device, _), indices in groups.items():
            found = norms([tensors[index] for index in indices], order)
            joining = riders.pop((device, found[0].dtype), [])
            parts = [*found, *(_scalar(beside[index - len(tensors)]) for index in joining)]
            vectors.append((torch.stack(parts), [*indices, *joining]))
        for indices in riders.values():
            parts = [_scalar(beside[index - len(tensors)]) for index in indices]
            vectors.append((torch.stack(parts), indices))
        left = len(vectors)
        if not left:
            deliver(results)

        for vector, indices in vectors:

            def collect(values: list[float], indices: list[int] = indices) -> None:
                nonlocal left
                for index, value in zip(indices, values, strict=True):
                    results[index] = value
                left -= 1
                if not left:
                    deliver(results)

            self.vector(vector, collect)

    def bulk(self, tensors: Sequence[Tensor], deliver: Deliver) -> None:
        """L2 norms like `norms`, cheaper for many small tensors of few shapes: those of one shape are stacked."""
        results = [0.0] * len(tensors)
        single: list[int] = []
        stacked: list[int] = []
        parts: list[Tensor] = []
        for indices in alike(tensors):
            if len(indices) > 1 and tensors[indices[0]].numel() <= SMALL:
                parts.append(row_norms(torch.stack([tensors[index] for index in indices])))
                stacked += indices
            else:
                single += indices

        def place(indices: list[int], values: list[float]) -> None:
            for index, value in zip(indices, values, strict=True):
                results[index] = value

        def finish(values: list[float]) -> None:
            place(stacked, values)
            deliver(results)

        if not parts:
            self.norms(tensors, deliver)
            return
        if single:
            self.norms([tensors[index] for index in single], lambda values: place(single, values))
        self.vectors(parts, finish)  # sent after those, so it arrives after them

    def scalars(self, tensors: Sequence[Tensor], deliver: Deliver) -> None:
        """The values of tensors of one element, in order; they leave together when the step ends."""
        self._loose.append((tensors, deliver))

    def vectors(self, parts: Sequence[Tensor], deliver: Deliver) -> None:
        """The values of tensors of one dimension, one tensor after the other."""
        kinds: dict[tuple[torch.device, torch.dtype], list[int]] = {}
        for index, part in enumerate(parts):
            kinds.setdefault((part.device, part.dtype), []).append(index)
        if len(kinds) == 1:
            self.vector(torch.cat(list(parts)), deliver)
            return
        results: list[list[float]] = [[] for _ in parts]
        left = len(kinds)
        for indices in kinds.values():
            lengths = [len(parts[index]) for index in indices]

            def collect(
                values: list[float], indices: list[int] = indices, lengths: list[int] = lengths
            ) -> None:
                nonlocal left
                rest = iter(values)
                for index, length in zip(indices, lengths, strict=True):
                    results[index] = list(islice(rest, length))
                left -= 1
                if not left:
                    deliver(list(chain.from_iterable(results)))

            self.vector(torch.cat([parts[index] for index in indices]), collect)

    def send(self) -> None:
        """The step has ended: send off what was collected."""
        loose, self._loose = self._loose, []
        if not loose:
            return

        def hand_out(values: list[float]) -> None:
            start = 0
            for tensors, deliver in loose:
                deliver(values[start : start + len(tensors)])
                start += len(tensors)

        with torch.no_grad():
            self.norms((), hand_out, beside=[tensor for tensors, _ in loose for tensor in tensors])

    def vector(self, vector: Tensor, deliver: Deliver) -> None:
        """The values of a tensor of one dimension."""
        if vector.device.type == "cpu":
            self._transfers.append(_Transfer(vector, None, deliver))
            return
        # from torch's cache of such memory
        pinned = torch.empty(vector.shape, dtype=vector.dtype, pin_memory=True)
        pinned.copy_(vector, non_blocking=True)
        arrived = torch.Event(vector.device.type)
        arrived.record(torch.accelerator.current_stream(vector.device))  # not that of the current device
        self._transfers.append(_Transfer(pinned, arrived, deliver))

    @property
    def arrived(self) -> bool:
        """Whether every number is here; asks, and does not wait."""
        return all(transfer.arrived is None or transfer.arrived.query() for transfer in self._transfers)

    def deliver(self) -> None:
        """Hand out the numbers, once; waits for those that are not here."""
        transfers, self._transfers = self._transfers, []
        for transfer in transfers:
            if transfer.arrived is not None:
                transfer.arrived.synchronize()
            transfer.deliver(transfer.vector.tolist())


def local(tensor: Tensor) -> Tensor:
    """This rank's part of a distributed tensor, any other as it is. Call it under `torch.no_grad()`."""
    return tensor.to_local() if isinstance(tensor, DTensor) else tensor


def measurable(tensor: Tensor) -> bool:
    """Whether a norm of it can be taken as it is: dense, filled, real or complex floating point of 16 bits or more."""
    return (
        tensor.dtype in _MEASURABLE
        and type(tensor) in _TYPES
        and tensor.layout is torch.strided
        and not tensor.is_meta
    )


def alike(tensors: Sequence[Tensor], kinds: Sequence[Hashable] = ()) -> list[list[int]]:
    """Which tensors have one shape, dtype and device, by index: stacked, they cost as many operations as one.

    With `kinds`, one of each tensor, those of a group have that in common too.
    """
    features = (map(_SHAPE, tensors), map(_DTYPE, tensors), map(_DEVICE, tensors))
    return [list(group) for group in _grouped(*map(tuple, features), tuple(kinds))]


@lru_cache(64)
def _grouped(*features: tuple[Hashable, ...]) -> list[list[int]]:
    """Kept, as the tensors of a step are mostly those of the step before."""
    groups: dict[Hashable, list[int]] = {}
    for index, key in enumerate(zip(*filter(None, features), strict=True)):
        groups.setdefault(key, []).append(index)
    return list(groups.values())


def row_norms(stacked: Tensor, order: float = 2.0) -> Tensor:
    """The norm of each of the tensors that were stacked; half precision is summed in float32."""
    rows = stacked.reshape(len(stacked), stacked.shape[1:].numel())
    dtype = torch.float32 if stacked.dtype in (torch.float16, torch.bfloat16) else None
    norms: Tensor = torch.linalg.vector_norm(rows, order, dim=1, dtype=dtype)
    return norms


def _common(tensors: Sequence[Tensor], beside: Sequence[Tensor]) -> torch.dtype | None:
    """The dtype to sum all of them in, if one vector can hold them; None if they must be grouped."""
    devices = set(map(_DEVICE, tensors))
    dtypes = set(map(_DTYPE, tensors))
    if len(devices) != 1 or not (dtypes <= _SINGLE or dtypes == _DOUBLE):
        return None
    if any(tensor.device not in devices or tensor.dim() or tensor.is_complex() for tensor in beside):
        return None
    return torch.float64 if dtypes == _DOUBLE else torch.float32


def norms(tensors: Sequence[Tensor], order: float = 2.0, large: int = _LARGE) -> Sequence[Tensor]:
    """The norm of each of several `measurable` tensors of one dtype and device; half precision is summed in float32.

    Tensors of `large` elements and more are right to 6 digits on a CPU too, at the price of some operations for each.
    """
    dtype = torch.float32 if tensors[0].dtype in (torch.float16, torch.bfloat16) else None
    return _norms(tensors, order, dtype, large)


def _norms(
    tensors: Sequence[Tensor], order: float, dtype: torch.dtype | None, large: int = _LARGE
) -> Sequence[Tensor]:
    if tensors[0].device.type == "cpu" and max(map(Tensor.numel, tensors)) >= large:
        small = [tensor for tensor in tensors if tensor.numel() < large]
        found = iter(_norms(small, order, dtype) if small else ())
        return [
            next(found) if tensor.numel() < large else _in_rows(tensor, order, dtype) for tensor in tensors
        ]
    if _foreach_norm is not None:
        norms: Sequence[Tensor] = _foreach_norm(tensors, order, dtype=dtype)
        return norms
    return [torch.linalg.vector_norm(tensor, order, dtype=dtype) for tensor in tensors]


def in_order(tensor: Tensor) -> Tensor:
    """A tensor with its dimensions in the order in which it lies in memory."""
    if tensor.is_contiguous():
        return tensor
    return tensor.permute(sorted(range(tensor.dim()), key=tensor.stride, reverse=True))


def _in_rows(tensor: Tensor, order: float, dtype: torch.dtype | None) -> Tensor:
    """The norm of the norms of rows, or their sum where these are numbers of elements.

    A CPU adds up the squares of a whole tensor in a few sums of its dtype, which takes no less time: in single precision
    the norm of 64 Mi elements is wrong by 0.5 %, and that of 256 Ki equal ones by 0.01 % (torch 2.13).
    """
    tensor = in_order(tensor).contiguous()
    count, width = tensor.numel(), tensor.shape[-1]
    rest = None
    if not _FEW < width < _MANY or count // width > _MANY:
        values, odd = tensor.view(-1), count % _ROW
        tensor = (values[:-odd] if odd else values).view(-1, _ROW)
        rest = values[-odd:] if odd else None
    rows = torch.linalg.vector_norm(tensor, order, dim=-1, dtype=dtype)
    if rest is not None:
        last = torch.linalg.vector_norm(rest, order, dim=0, keepdim=True, dtype=dtype)
        rows = torch.cat((rows, last))
    if not order:
        total: Tensor = rows.sum()
        return total
    if rows.numel() > _MANY:
        return _in_rows(rows, order, None)
    norm: Tensor = torch.linalg.vector_norm(rows, order)
    return norm


def _scalar(tensor: Tensor) -> Tensor:
    return tensor.reshape(()) if tensor.dim() else tensor
