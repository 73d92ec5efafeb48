"""The numbers of one step: they stay on their devices until it ends, and come back in one copy of each dtype."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import compress, islice
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.distributed.tensor import DTensor

from ta_runtime.faults import keep
from ta_runtime.measure import moments
from ta_runtime.measure.kinds import LAYOUT, SMALL, alike, local
from ta_runtime.measure.moments import Needs
from ta_runtime.measure.scalars import Deliver, Readings
from ta_runtime.monitor import shards, statistics
from ta_runtime.monitor.copies import Copies
from ta_runtime.monitor.measured import Column, Measured, Once, Owners
from ta_runtime.monitor.metrics import Aggregate, Selection, Target, Wanted
from ta_runtime.monitor.statistics import PartialStatistics

_HELD = 256  # small tensors, which take 16 MiB at most in float32
_PLAIN = {Tensor, nn.Parameter, nn.Buffer}
_STRIDED = {torch.strided}

_Block = tuple[tuple[Tensor, Tensor], tuple[Column, ...]]
"""What was measured of the columns of a block, and where its values go."""

_ZERO: dict[str, Column] = {name: [0.0] for name in moments.FIELDS}


@dataclass
class _Kept:
    """Results that a function of the user's own brings together: tensors as one, numbers as a list."""

    aggregate: Aggregate
    tensors: list[Tensor] = field(default_factory=list)
    numbers: list[Column] = field(default_factory=list)


@dataclass
class Memory:
    """What a step leaves to the next one."""

    copies: Copies[Owners] = field(default_factory=Copies)
    once: Once = field(default_factory=Once)


class StepMetrics:
    """Filled while a step runs; `close` sends the numbers off, `values` waits for them.

    `failed(key, error)` is told of functions that raise: they are the user's own, and the run goes on.
    """

    def __init__(self, failed: Callable[[str, Exception], None], memory: Memory | None = None) -> None:
        self._failed = failed
        self._memory = memory or Memory()
        self._held = self._memory.copies
        self._owners: dict[Target, None] = {}
        self._measured: list[Measured] = []
        self._parts: defaultdict[Target, list[PartialStatistics]] = defaultdict(list)
        self._means: dict[str, Target] = {}
        self._kept: dict[str, _Kept] = {}
        self._vectors: list[tuple[Tensor, Deliver]] = []
        self._scalars: list[tuple[Tensor, Column]] = []
        self._blocks: dict[tuple[torch.dtype, torch.Size], list[_Block]] = {}
        self._readings = Readings()

    def __bool__(self) -> bool:
        return bool(self._owners or self._kept)

    # -- while the step runs ----------------------------------------------------------------------------------

    def take(self, wanted: Wanted, *given: Tensor) -> Owners | None:
        """One tensor that the run goes on with and may write to, or two to compare, all without a graph.

        Gives for whom the statistics that we know are measured, for whoever meets the same tensor again.
        """
        owners = None
        if (target := wanted.target) is not None:
            try:
                owners = self.measure(target, given[0] if len(given) == 1 else given[0] - given[1])
            except Exception as error:  # noqa: BLE001 - of a tensor like no other
                keep(error)
                self._failed(target.wanted[0][0], error)
        if wanted.functions:
            self.call(wanted, *given)
        return owners

    def take_all(self, selection: Selection, given: Sequence[Sequence[Tensor]], sync: bool = False) -> None:
        """Tensors, or pairs of them to compare, that are all here now, such as parameters; nothing of them is held.

        Of those that are distributed this rank's part, or with `sync` all parts; every rank has to call it then.
        """
        tensors, *others = given
        with torch.no_grad():
            if (
                selection.targets is not None
                and not others
                and _PLAIN.issuperset(map(type, tensors))
                and _STRIDED.issuperset(map(LAYOUT, tensors))
            ):
                self._owners.update(selection.targets)
                self._read(selection.of(tensors), selection.owners, selection.needs)
                return
            sharded: list[tuple[DTensor, Target]] = []
            for one, pair in zip(selection.wanted, zip(*given, strict=True), strict=True):
                if one is not None:
                    self._take_any(one, pair, sharded if sync else None)
            self._exchange(sharded)

    def _take_any(
        self, one: Wanted, given: tuple[Tensor, ...], sharded: list[tuple[DTensor, Target]] | None
    ) -> None:
        """One of those, whatever it is. What has to be exchanged is put to what is `sharded`."""
        tensor = given[0]
        if isinstance(tensor, DTensor):
            given = (tensor, *(shards.alike(tensor, other) for other in given[1:]))
            if sharded is not None:
                if one.target is not None:
                    difference = tensor if len(given) == 1 else tensor - given[1]
                    sharded.append((cast("DTensor", difference), one.target))
                self.call(one, *(map(shards.whole, given) if one.functions else ()))
                return
        self.take(one, *(local(tensor.detach()) for tensor in given))

    def call(self, wanted: Wanted, *given: Tensor) -> None:
        """The functions that are wanted, without what we know."""
        for key, metric in wanted.functions:
            with torch.no_grad(), self._guarded(key):
                self.log(key, metric.function(*given), metric.aggregate)

    def take_again(self, target: Target, owners: Owners) -> None:
        """The same tensor is met under another name."""
        self._owners[target] = None
        owners.append(target)

    def log(self, key: str, result: Any, aggregate: Aggregate | None = None) -> None:
        """A result under a key: a tensor, a number, or a dict of these, whose keys are put behind this one.

        Raises:
            TypeError: it is something else.
        """
        if isinstance(result, Mapping):
            for name, value in result.items():
                self.log(f"{key}{name}", value, aggregate)
        elif not isinstance(result, Tensor):
            self.log_number(key, result, aggregate)
        elif aggregate is not None:
            self._kept_of(key, aggregate).tensors.append(result.detach().clone().flatten())
        elif result.dim() == 0:
            self.log_number(key, result)
        else:
            self.measure(self._mean_of(key), result.detach())

    def log_number(self, key: str, value: Any, aggregate: Aggregate | None = None) -> None:
        """A number, or a tensor of one element; what brings several together gets a list of numbers.

        Raises:
            TypeError: it is something else.
            ValueError: the tensor has more elements.
        """
        column: Column = []
        if isinstance(value, Tensor):
            if value.numel() != 1:
                raise ValueError(f"{key}: one number was expected, and this has {value.numel()}")
            self._scalars.append((value.detach().clone().reshape(()), column))
        else:
            column.append(_number(key, value))
        if aggregate is not None:
            self._kept_of(key, aggregate).numbers.append(column)
        else:
            self._measured.append(Measured([self._owned(self._mean_of(key))], 1, {"mean": column}))

    def _mean_of(self, key: str) -> Target:
        if key not in self._means:
            self._means[key] = Target.of([(key, statistics.mean)])
        return self._means[key]

    def _kept_of(self, key: str, aggregate: Aggregate) -> _Kept:
        return self._kept.setdefault(key, _Kept(aggregate))

    def _owned(self, target: Target) -> Owners:
        self._owners[target] = None
        return [target]

    def measure(self, target: Target, tensor: Tensor) -> Owners | None:
        """Large tensors now; of small ones a copy is held, to be measured with others of their shape."""
        if type(tensor) is not Tensor or tensor.layout is not torch.strided:
            self._measure_odd(target, tensor)
            return None
        owners = [target]
        with self._held.lock:
            self._owners[target] = None
            if not self._held.add(tensor, target.needs, owners):  # else it is of a kind that is known to fit
                if tensor.numel() > SMALL:
                    self._read_large(tensor, owners, target.needs)
                elif moments.countable(tensor, target.needs):
                    self._held.add(tensor, target.needs, owners, new=True)
                else:
                    self._add([owners], tensor.numel(), ())
            if self._held.count >= _HELD:
                with torch.no_grad():
                    self._flush()
        return owners

    def _measure_odd(self, target: Target, tensor: Tensor) -> None:
        """What does not simply lie in memory."""
        if tensor.layout is torch.sparse_coo:
            values = tensor.coalesce().values()
            self.measure(target, values)
            if zeros := tensor.numel() - values.numel():
                self._measured.append(Measured([self._owned(target)], zeros, _ZERO))
        else:
            for key, statistic in target.wanted:
                self.log(key, statistic(tensor))

    # -- when it ends -----------------------------------------------------------------------------------------

    def close(self) -> None:
        """The step has ended: send all numbers off. Nothing waits for them."""
        with torch.no_grad():
            self._bring_together()
            self._flush()
            self._held.over()
            self._send()

    @property
    def arrived(self) -> bool:
        """Whether all numbers are here, now that the step was closed; asks, and does not wait."""
        return self._readings.arrived

    def values(self) -> dict[str, float]:
        """The value of each key; waits for what is not here."""
        self._readings.deliver()
        values = None if self._parts else self._memory.once.values(self._owners, self._measured)
        if values is None:
            values = self._of_all()
        for key, kept in self._kept.items():
            if kept.numbers:
                with self._guarded(key):
                    result = kept.aggregate([value for (value,) in kept.numbers])
                    named = result.items() if isinstance(result, Mapping) else [("", result)]
                    values.update((f"{key}{name}", _number(key, value)) for name, value in named)
        return values

    def _of_all(self) -> dict[str, float]:
        """What was measured several times, over all of them."""
        for measured in self._measured:
            for part, owners in zip(measured.parts(), measured.owners, strict=True):
                for target in owners:
                    self._parts[target].append(part)
        self._measured = []
        return {
            key: statistic.of(self._parts[target])
            for target in self._owners
            for key, statistic in target.wanted
        }

    def _bring_together(self) -> None:
        """Results that are tensors, on their device; those that are numbers have to come first."""
        for key, kept in self._kept.items():
            if kept.tensors:
                with self._guarded(key):
                    self.log(key, kept.aggregate(torch.cat(kept.tensors)))
                kept.tensors = []

    def _flush(self) -> None:
        for taken in self._held.taken():
            try:
                with torch.autocast(taken.device.type, enabled=False):  # the forward pass may be under it
                    self._read_rows(taken.stacked(), taken.owners, taken.needs)
            except Exception as error:  # noqa: BLE001 - the device may be out of memory, and the run goes on
                keep(error)
                self._failed(taken.owners[0][0].wanted[0][0], error)

    def _read_rows(self, tensors: Tensor, owners: Sequence[Owners], needs: Needs) -> None:
        vectors = moments.in_rows(tensors, needs)
        columns = self._add(owners, tensors[0].numel(), needs)
        self._vectors += zip(vectors, (column.extend for column in columns), strict=True)

    def _read(self, tensors: Sequence[Tensor], owners: Sequence[Owners], needs: Sequence[Needs]) -> None:
        single: dict[Needs, list[int]] = {}
        for indices in alike(tensors, needs):
            first, wanted = tensors[indices[0]], needs[indices[0]]
            if len(indices) == 1 or first.numel() > SMALL or not moments.countable(first, wanted):
                single.setdefault(wanted, []).extend(indices)
                continue
            rows = torch.stack([tensors[index] for index in indices])
            self._read_rows(rows, [owners[index] for index in indices], wanted)
        for wanted, indices in single.items():
            self._read_each(
                [tensors[index] for index in indices], [owners[index] for index in indices], wanted
            )

    def _read_each(self, tensors: Sequence[Tensor], owners: Sequence[Owners], needs: Needs) -> None:
        """What cannot be stacked; what cannot be measured either has NaN for its values."""
        measurable = [moments.countable(tensor, needs) for tensor in tensors]
        found = iter(moments.of_each([*compress(tensors, measurable)], needs))
        for tensor, owned, known in zip(tensors, owners, measurable, strict=True):
            columns = self._add([owned], tensor.numel(), needs if known else ())
            if known:
                self._scalars += zip(next(found), columns, strict=True)

    def _read_large(self, tensor: Tensor, owners: Owners, needs: Needs) -> None:
        """Where it can be cut into blocks, each is measured as a tensor of its own."""
        blocks = (
            moments.blocks(tensor) if needs == moments.SPREAD and moments.countable(tensor, needs) else ()
        )
        for block in blocks:
            found = moments.of_columns(block), tuple(self._add([owners], block.numel(), needs))
            self._blocks.setdefault((block.dtype, block.shape), []).append(found)
        if not blocks:
            self._read_each([tensor], [owners], needs)

    def _exchange(self, entries: Sequence[tuple[DTensor, Target]]) -> None:
        tensors = [tensor for tensor, _ in entries]
        for indices in shards.groups(tensors):
            targets = [entries[index][1] for index in indices]
            rows = shards.exchanged([tensors[index] for index in indices], [one.needs for one in targets])
            self._owners.update(dict.fromkeys(targets))
            self._vectors.append((rows.flatten(), partial(self._put_together, targets)))

    def _put_together(self, targets: Sequence[Target], values: list[float]) -> None:
        """The parts of all ranks: of each the elements of all tensors, and then what was measured of them."""
        rest = iter(values)
        for first in rest:
            counts = [first, *islice(rest, len(targets) - 1)]
            for target, count in zip(targets, counts, strict=True):
                measured = dict(zip(target.needs, rest, strict=False))
                self._parts[target].append(PartialStatistics(int(count), **measured))

    def _add(self, owners: Sequence[Owners], count: int, needs: Needs) -> Iterable[Column]:
        """Where the values go that are on their way, a column for each quantity."""
        columns: dict[str, Column] = {name: [] for name in needs}
        self._measured.append(Measured(owners, count, columns))
        return columns.values()

    def _send(self) -> None:
        for (_, (rows, _)), blocks in self._blocks.items():
            vectors = moments.of_blocks(rows, [found for found, _ in blocks])
            for vector, columns in zip(
                vectors, zip(*(columns for _, columns in blocks), strict=True), strict=True
            ):
                self._vectors.append((vector, partial(_into, columns)))
        kinds: dict[tuple[torch.dtype, torch.device], list[tuple[Tensor, Column]]] = {}
        for entry in self._scalars:
            kinds.setdefault((entry[0].dtype, entry[0].device), []).append(entry)
        for entries in kinds.values():
            vector = torch.stack([value for value, _ in entries])
            self._vectors.append((vector, partial(_into, [column for _, column in entries])))
        receivers = [(len(vector), deliver) for vector, deliver in self._vectors]

        def hand_out(values: list[float]) -> None:
            start = 0
            for length, deliver in receivers:
                deliver(values[start : start + length])
                start += length

        if receivers:
            self._readings.vectors([vector for vector, _ in self._vectors], hand_out)
        self._vectors, self._scalars, self._blocks = [], [], {}

    @contextmanager
    def _guarded(self, key: str) -> Iterator[None]:
        try:
            yield
        except Exception as error:  # noqa: BLE001 - of the user's function, or of a tensor like no other
            keep(error)
            self._failed(key, error)


def _into(columns: Sequence[Column], values: list[float]) -> None:
    for column, value in zip(columns, values, strict=True):
        column.append(value)


def _number(key: str, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{key}: neither a number nor a tensor, but {type(value).__name__}") from error
