"""The records of one snapshot: what it saw of each tensor and setting, as rows of `runs.schema.RECORDS`."""

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

import torch
from torch import Tensor
from torch.distributed.tensor import DTensor, Shard

from ta_lint.core.files import encodable
from ta_runtime.measure import distribution
from ta_runtime.measure.digests import copied, of_bytes
from ta_runtime.runs import masking
from ta_runtime.runs.schema import KINDS
from ta_runtime.snapshot.contents import Contents

_DEPTH = 6
_TEXT = 4096  # characters of a setting that are kept


class Records:
    """Collects rows; a tensor is read when it is added, so that it may change afterwards.

    What comes again, such as the output of a module that is called twice, has the same name and a higher `order`.
    """

    def __init__(
        self,
        step: int,
        of: AbstractSet[str] = frozenset(KINDS),
        columns: Sequence[str] = (),
        *,
        mask: bool = True,
    ) -> None:
        self.step = step
        self._of = of
        self._columns = columns
        self._mask = mask
        self._rows: list[dict[str, Any]] = []
        self._orders: Counter[str] = Counter()
        self._contents = Contents()
        self._measured: list[tuple[dict[str, Any], str, Tensor]] = []

    def wants(self, kind: str) -> bool:
        return kind in self._of

    def text(self, kind: str, name: str, text: str) -> None:
        """Add a setting; what of it has the shape of a secret is masked."""
        if self.wants(kind):
            text = encodable(masking.text(text) if self._mask else text)  # a variable may hold any byte
            self._row(kind, name)["text"] = text if len(text) <= _TEXT else f"{text[:_TEXT]}..."

    def texts(self, kind: str, settings: Callable[[], Iterable[tuple[str, str]]], prefix: str = "") -> None:
        """Add what `settings` gives, which is asked if its kind is wanted."""
        if self.wants(kind):
            for name, text in settings():
                self.text(kind, prefix + name, text)

    def rename(self, kinds: Iterable[str], before: str, now: str) -> None:
        """Call what was recorded under a name, or below it, by another."""
        for row in self._rows:
            name = row["name"]
            if row["kind"] in kinds and (name == before or name.startswith((f"{before}.", f"{before} ["))):
                row["name"] = now + name.removeprefix(before)

    def tensor(self, kind: str, name: str, tensor: Tensor) -> None:
        """Add a tensor; of a distributed one this rank's part, whose name says which it is."""
        if not self.wants(kind):
            return
        row = self._row(kind, name + _shard(tensor))
        self._contents.add(tensor, row)
        if self._columns:
            measured = distribution.measure(tensor, self._columns)
            self._measured += [(row, column, value) for column, value in measured.items()]

    def state(self, kind: str, name: str, state: "Tensor | bytes") -> None:
        """Add what has a digest and no numbers of interest."""
        data = copied(state.cpu()) if isinstance(state, Tensor) else state
        row = self._row(kind, name)
        row["dtype"], row["shape"] = "uint8", [len(data)]
        row["digest"], row["algorithm"] = of_bytes(data)

    def values(self, kind: str, value: Any, prefix: str = "", separator: str = ".") -> None:
        """Add the tensors and arrays inside a value by their paths; of one that is a tensor, by the prefix alone."""
        for path, leaf in leaves(value):
            self.tensor(kind, separator.join(filter(None, (prefix, path))) or "0", leaf)

    def apart(self) -> "Records":
        """Further records of the step, of which it is not known yet whether they `join` these."""
        records = Records(self.step, self._of, self._columns, mask=self._mask)
        records._contents = self._contents
        return records

    def join(self, other: "Records") -> None:
        """Add those that were kept apart."""
        for row in other._rows:
            row["order"] = self._orders[row["kind"]]
            self._orders[row["kind"]] += 1
        self._rows += other._rows
        self._measured += other._measured

    def rows(self) -> list[dict[str, Any]]:
        """All rows, a cause before what it may cause; waits for the devices."""
        self._contents.deliver()
        by_device: dict[torch.device, list[tuple[dict[str, Any], str, Tensor]]] = {}
        for entry in self._measured:
            by_device.setdefault(entry[2].device, []).append(entry)
        for entries in by_device.values():
            values = torch.stack([value for _, _, value in entries]).tolist()
            for (row, column, _), value in zip(entries, values, strict=True):
                row[column] = value
        self._measured = []
        return sorted(self._rows, key=lambda row: KINDS.index(row["kind"]))

    def _row(self, kind: str, name: str) -> dict[str, Any]:
        row = {"step": self.step, "kind": kind, "order": self._orders[kind], "name": name}
        self._orders[kind] += 1
        self._rows.append(row)
        return row


def leaves(value: Any, name: str = "", depth: int = _DEPTH) -> Iterator[tuple[str, Tensor]]:
    """Each tensor inside a value with its path, such as `0` or `labels.mask`; arrays of NumPy as tensors."""
    if isinstance(value, Tensor):
        yield name, value
    elif (array := _array(value)) is not None:
        yield name, array
    elif depth:
        for key, item in _items(value):
            yield from leaves(item, f"{name}.{key}" if name else key, depth - 1)


def outline(value: Any, depth: int = _DEPTH) -> str:
    """How a value is built: its containers, and all in it that is no tensor, as text that is the same in each run."""
    if isinstance(value, Tensor):
        return "Tensor"
    if value is None or isinstance(value, (bool, int, float, complex, str, bytes)):
        text = repr(value)
        return text if len(text) <= 200 else f"{text[:200]}... {of_bytes(text.encode())[0][:16]}"
    kind = type(value).__name__
    if not depth:
        return kind
    if isinstance(value, (set, frozenset)):
        return f"{kind}{{{', '.join(sorted(outline(item, depth - 1) for item in value))}}}"
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        inner = ", ".join(outline(item, depth - 1) for item in value)
        return f"[{inner}]" if kind == "list" else f"({inner})" if kind == "tuple" else f"{kind}({inner})"
    if _array(value) is None and (items := list(_items(value))):
        inner = ", ".join(f"{key!r}: {outline(item, depth - 1)}" for key, item in items)
        return f"{{{inner}}}" if kind == "dict" else f"{kind}({inner})"
    return kind


def _items(value: Any) -> Iterator[tuple[str, Any]]:
    """What a container holds, by key; of what is no container nothing. Iterators are left alone."""
    if isinstance(value, Mapping):
        yield from ((str(key), item) for key, item in value.items())
    elif isinstance(value, tuple) and hasattr(value, "_fields"):  # named tuples, packed sequences
        yield from ((key, getattr(value, key)) for key in value._fields)
    elif isinstance(value, (list, tuple)):
        yield from ((str(index), item) for index, item in enumerate(value))
    elif hasattr(type(value), "__dataclass_fields__"):
        yield from ((key, getattr(value, key, None)) for key in type(value).__dataclass_fields__)


def _array(value: Any) -> Tensor | None:
    numpy: Any = sys.modules.get("numpy")
    if numpy is None or not isinstance(value, (numpy.ndarray, numpy.generic)):
        return None
    if not value.flags.writeable:  # of which torch warns
        value = value.copy()
    try:
        return torch.as_tensor(value)
    except TypeError:  # text, times, objects
        return torch.frombuffer(bytearray(repr(value.tolist()).encode()), dtype=torch.uint8)


def _shard(tensor: Tensor) -> str:
    """Which part of a distributed tensor this rank has; nothing if it has all of it."""
    if not isinstance(tensor, DTensor):
        return ""
    mesh = tensor.device_mesh
    parts = [
        f"{mesh.get_local_rank(axis) + 1}/{mesh.size(axis)} of dim {placement.dim}"
        for axis, placement in enumerate(tensor.placements)
        if isinstance(placement, Shard)
    ]
    return f" [{', '.join(parts)}]" if parts else ""
