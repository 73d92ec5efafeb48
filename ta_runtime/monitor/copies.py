"""Copies of small tensors that are to be measured together: those of one shape lie side by side.

The memory stays for the next step, as a step mostly has the tensors of the step before: on a CPU that spares bringing them
together afterwards, which takes longer than to copy them.
"""

from collections.abc import Iterator
from typing import Generic, TypeVar

import torch
from torch import Tensor

from ta_runtime.monitor.moments import Needs

_T = TypeVar("_T")
_Kind = tuple[torch.Size, torch.dtype, torch.device, Needs]


class Copies(Generic[_T]):
    """Dense tensors, each for an owner. What stays is at most the memory of those of one step."""

    def __init__(self) -> None:
        self.count = 0
        """How many there are."""
        self._kinds: dict[_Kind, _Rows[_T]] = {}
        self._used: dict[_Kind, None] = {}

    def add(self, tensor: Tensor, needs: Needs, owner: _T, *, new: bool = False) -> bool:
        """Copy a tensor, of which this is to be measured; False if there was none of its kind, and it is not `new`."""
        kind = tensor.shape, tensor.dtype, tensor.device, needs
        rows = self._kinds.get(kind)
        if rows is None:
            if not new:
                return False
            rows = self._kinds[kind] = _Rows()
        row = len(rows.owners)
        if row < len(rows.views):
            rows.views[row].copy_(tensor)
        else:
            rows.loose.append(tensor.clone())
        rows.owners.append(owner)
        self.count += 1
        return True

    def taken(self) -> Iterator[tuple[Tensor, list[_T], Needs]]:
        """What was copied, by kind: the tensors as the rows of one, which is valid until the next is added."""
        self.count = 0
        for kind, rows in self._kinds.items():
            if rows.owners:
                self._used[kind] = None
                yield *rows.taken(), kind[-1]

    def over(self) -> None:
        """A step has ended: let go of what it did not need, and make room for what it needed as the one before did."""
        self._kinds = {kind: self._kinds[kind] for kind in self._used}
        self._used = {}
        for (shape, dtype, device, _), rows in self._kinds.items():
            rows.steps += 1
            if rows.steps > 1 and rows.most > len(rows.views):
                with torch.inference_mode(False):  # or nothing but inference could write to them
                    rows.make(torch.empty((rows.most, *shape), dtype=dtype, device=device))


class _Rows(Generic[_T]):
    """Those of one kind: each in a row while there are rows, and then by themselves."""

    __slots__ = ("_rows", "loose", "most", "owners", "steps", "views")

    def __init__(self) -> None:
        self.views: tuple[Tensor, ...] = ()
        self.loose: list[Tensor] = []
        self.owners: list[_T] = []
        self.most = self.steps = 0
        self._rows: Tensor | None = None

    def make(self, rows: Tensor) -> None:
        self._rows, self.views = rows, rows.unbind()

    def taken(self) -> tuple[Tensor, list[_T]]:
        owners, self.owners = self.owners, []
        loose, self.loose = self.loose, []
        self.most = max(self.most, len(owners))
        if self._rows is None:
            return torch.stack(loose), owners
        rows = self._rows[: len(owners)]
        return (torch.cat((rows, torch.stack(loose))) if loose else rows), owners
