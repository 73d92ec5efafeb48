"""Knows which of the batches that loaders hand out a step trains on, and which are of a validation."""

import weakref
from dataclasses import dataclass
from typing import Any

from ta_runtime.snapshot.records import Records


@dataclass
class _Drawn:
    iterator: "weakref.ref[Any]"
    records: Records
    is_evaluated: bool = False


class Batches:
    """Holds the records of a batch back until it is known what it was drawn for.

    It is of a validation if all that ran on a module before the next was drawn of the same iterator, or that iterator
    ended, ran without gradients. A batch on which nothing ran, drawn ahead for a later step, is kept as one to train on.
    """

    def __init__(self, records: Records) -> None:
        self._records = records
        self._drawn: dict[int, _Drawn] = {}  # the last of each iterator, by id

    def drawn(self, iterator: Any, records: Records) -> None:
        """An iterator gave a batch, with these records."""
        self.ended(iterator)
        self._drawn[id(iterator)] = _Drawn(weakref.ref(iterator), records)

    def ended(self, iterator: Any) -> None:
        """An iterator gives no more, or not yet."""
        if (last := self._drawn.pop(id(iterator), None)) is not None and not last.is_evaluated:
            self._records.join(last.records)

    def evaluated(self) -> None:
        """A module was called without gradients."""
        for last in self._drawn.values():
            last.is_evaluated = True

    def trained(self) -> None:
        """A module was called with gradients, or a backward pass begins."""
        for last in self._drawn.values():
            if not last.is_evaluated or last.iterator() is not None:  # else a loop that was left early
                self._records.join(last.records)
        self._drawn.clear()

    def over(self) -> None:
        """The step is over."""
        for last in self._drawn.values():
            if not last.is_evaluated:
                self._records.join(last.records)
        self._drawn.clear()
