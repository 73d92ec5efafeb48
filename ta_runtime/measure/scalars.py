"""Numbers on their way from the device: computed in bulk, copied without waiting, read a step later.

One `torch._foreach_norm` and one `torch.stack` give the norms of any number of tensors of one device and dtype: two
operations. On an accelerator the vector then goes into pinned memory by a copy that does not block, and an event says
when it has arrived. Nothing here draws random numbers or records a graph, and nothing waits for a device but `deliver`,
if it is called before all has arrived.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate

import torch
from torch import Tensor

from ta_runtime.measure.kinds import DEVICE, DOUBLE, DTYPE, SINGLE, SMALL, alike, of_one_kind
from ta_runtime.measure.norms import norms, row_norms

Deliver = Callable[[list[float]], None]


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
            self.vector(torch.stack((*norms(tensors, order, dtype), *beside)), deliver)
            return
        riders = {
            (beside[indices[0]].device, beside[indices[0]].dtype): indices for indices in of_one_kind(beside)
        }
        vectors: list[tuple[Tensor, Sequence[int]]] = []
        for indices in of_one_kind(tensors):
            found = norms([tensors[index] for index in indices], order)
            joining = riders.pop((found[0].device, found[0].dtype), [])
            parts = [*found, *(_scalar(beside[index]) for index in joining)]
            vectors.append((torch.stack(parts), [*indices, *(len(tensors) + index for index in joining)]))
        for joining in riders.values():
            parts = [_scalar(beside[index]) for index in joining]
            vectors.append((torch.stack(parts), [len(tensors) + index for index in joining]))
        self._put_together(vectors, len(tensors) + len(beside), deliver)

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
        kinds = of_one_kind(parts)
        if len(kinds) == 1:
            self.vector(torch.cat(list(parts)), deliver)
            return
        ends = list(accumulate(map(len, parts), initial=0))
        vectors = [
            (
                torch.cat([parts[index] for index in indices]),
                [place for index in indices for place in range(ends[index], ends[index + 1])],
            )
            for indices in kinds
        ]
        self._put_together(vectors, ends[-1], deliver)

    def _put_together(
        self, vectors: Sequence[tuple[Tensor, Sequence[int]]], count: int, deliver: Deliver
    ) -> None:
        """The values of several vectors as one list of so many, each vector with the places of its values."""
        results = [0.0] * count
        left = len(vectors)
        if not left:
            deliver(results)
        for vector, places in vectors:

            def collect(values: list[float], places: Sequence[int] = places) -> None:
                nonlocal left
                for place, value in zip(places, values, strict=True):
                    results[place] = value
                left -= 1
                if not left:
                    deliver(results)

            self.vector(vector, collect)

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
    def on_host(self) -> bool:
        """Whether none of them is on its way from a device."""
        return all(transfer.arrived is None for transfer in self._transfers)

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


def _common(tensors: Sequence[Tensor], beside: Sequence[Tensor]) -> torch.dtype | None:
    """The dtype to sum all of them in, if one vector can hold them; None if they must be grouped."""
    devices = set(map(DEVICE, tensors))
    dtypes = set(map(DTYPE, tensors))
    if len(devices) != 1 or not (dtypes <= SINGLE or dtypes == DOUBLE):
        return None
    if any(tensor.device not in devices or tensor.dim() or tensor.is_complex() for tensor in beside):
        return None
    return torch.float64 if dtypes == DOUBLE else torch.float32


def _scalar(tensor: Tensor) -> Tensor:
    return tensor.reshape(()) if tensor.dim() else tensor
