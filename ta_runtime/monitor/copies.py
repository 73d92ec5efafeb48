"""Copies of small tensors that are to be measured together: those of one shape lie side by side.

The memory stays for the next step, as a step mostly has the tensors of the step before: on a CPU that spares bringing them
together afterwards, which takes longer than to copy them.
"""

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

import torch
from torch import Tensor

from ta_runtime.measure.moments import Needs

_T = TypeVar("_T")
_Kind = tuple[torch.Size, torch.dtype, torch.device, Needs]


class Copies(Generic[_T]):
    """Dense tensors, each for an owner. What stays is at most the memory of those of one step."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        """Held by who adds and takes: several threads may run the model."""
        self.count = 0
        """How many there are."""
        self._kinds: dict[_Kind, _Rows[_T]] = {}
        self._used: dict[_Kind, None] = {}

    def __reduce__(self) -> tuple[Callable[[], "Copies[_T]"], tuple[()]]:
        """A copy begins without any."""
        return Copies, ()

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

    def taken(self) -> Iterator["Taken[_T]"]:
        """What was copied, by kind; valid until the next is added."""
        self.count = 0
        for kind, rows in self._kinds.items():
            if rows.owners:
                self._used[kind] = None
                yield rows.taken(kind[-1])

    def over(self) -> None:
        """A step has ended: let go of what it did not need, and make room for what it needed as the one before did."""
        self._kinds = {kind: self._kinds[kind] for kind in self._used}
        self._used = {}
        for (shape, dtype, device, _), rows in self._kinds.items():
            rows.steps += 1
            most, rows.most = rows.most, 0
            if rows.steps > 1 and not most <= len(rows.views) <= 2 * most:
                with torch.inference_mode(False):  # or nothing but inference could write to them
                    rows.make(torch.empty((most, *shape), dtype=dtype, device=device))


@dataclass(frozen=True, slots=True)
class Taken(Generic[_T]):
    """Tensors of one kind, in the order of their owners."""

    owners: list[_T]
    needs: Needs
    rows: Tensor | None
    loose: list[Tensor]

    @property
    def device(self) -> torch.device:
        return (self.loose[0] if self.rows is None else self.rows).device

    def stacked(self) -> Tensor:
        """They as the rows of one tensor."""
        if self.rows is None:
            return torch.stack(self.loose)
        return torch.cat((self.rows, torch.stack(self.loose))) if self.loose else self.rows


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

    def taken(self, needs: Needs) -> Taken[_T]:
        owners, self.owners = self.owners, []
        loose, self.loose = self.loose, []
        self.most = max(self.most, len(owners))
        return Taken(owners, needs, None if self._rows is None else self._rows[: len(owners)], loose)
