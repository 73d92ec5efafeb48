"""Tensors of which each rank holds a part: what is measured of the parts is exchanged, not the tensors."""

from collections.abc import Hashable, Sequence

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, distribute_tensor

from ta_runtime.measure import moments
from ta_runtime.measure.moments import Needs


def whole(tensor: Tensor) -> Tensor:
    """All of a tensor, on every rank. A collective, if the tensor is distributed."""
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def alike(tensor: Tensor, other: Tensor) -> Tensor:
    """The other tensor, distributed as the first is."""
    if isinstance(tensor, DTensor) and not isinstance(other, DTensor):
        return distribute_tensor(other, tensor.device_mesh, tensor.placements, src_data_rank=None)
    return other


def sharding(tensor: DTensor) -> tuple[DeviceMesh, tuple[int, ...]]:
    """The mesh over which a tensor is distributed, and the dimensions of the mesh along which each rank has another part."""
    return tensor.device_mesh, tuple(axis for axis, one in enumerate(tensor.placements) if one.is_shard())


def groups(tensors: Sequence[DTensor]) -> list[list[int]]:
    """Which tensors are distributed alike, by index; in the same order on every rank."""
    found: dict[Hashable, list[int]] = {}
    for index, tensor in enumerate(tensors):
        found.setdefault(sharding(tensor), []).append(index)
    return list(found.values())


def exchanged(tensors: Sequence[DTensor], needs: Sequence[Needs]) -> Tensor:
    """A row for each part: for each of the tensors, which are distributed alike, its elements and what is needed of it.

    One collective for each dimension of the mesh along which they are sharded.
    """
    counts: list[int] = []
    quantities: list[Tensor] = []
    for tensor, fields in zip(tensors, needs, strict=True):
        part = tensor.to_local()
        counts.append(part.numel() if moments.countable(part, fields) else 0)
        if counts[-1]:
            quantities += moments.of_one(part, fields)
        else:
            quantities += [torch.zeros((), device=part.device)] * len(fields)
    row = torch.stack([value.to(torch.float64) for value in quantities])
    row = torch.cat([torch.tensor(counts, dtype=torch.float64, device=row.device), row])
    mesh, axes = sharding(tensors[0])
    for axis in axes:
        rows = [torch.empty_like(row) for _ in range(mesh.size(axis))]
        dist.all_gather(rows, row, group=mesh.get_group(axis))
        row = torch.cat(rows)
    return row.view(-1, len(counts) + len(quantities))
