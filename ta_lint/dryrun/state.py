"""What the program has written so far, as a journal: a branch is taken back by it, and joined with another."""

from collections.abc import Iterable
from typing import Any, Final

from ta_lint.dryrun.flow import Flow
from ta_lint.dryrun.values import ITEMS, Items, Mergeable, Sequence, Unknown, Value, join

ABSENT: Final = object()
"""What a store holds under a key that it does not have."""


Changes = dict[tuple[int, Any], tuple[dict[Any, Any], Any, Any, Any]]
"""By store and key: the store, the key, the value before and the value now."""


class State:
    """All that the program can change. Stores are dictionaries: the names of a frame, the fields of an object."""

    def __init__(self) -> None:
        self._journal: list[tuple[dict[Any, Any], Any, Any]] = []
        self.gathered = 0
        """What has been written before this moment, and is not taken back, is in what `gather` has found."""

    def write(self, store: dict[Any, Any], key: Any, value: Any) -> None:
        """Put a value under a key."""
        self._journal.append((store, key, store.get(key, ABSENT)))
        store[key] = value

    def refill(self, sequence: Sequence, items: Iterable[Value], rest: Value | None) -> None:
        """Change what a list or set holds."""
        self.write(sequence.fields, ITEMS, Items(tuple(items), rest))

    def extend(self, sequence: Sequence, value: Value) -> None:
        """A list or set gets values that nobody counts."""
        self.refill(sequence, sequence.items, value if sequence.rest is None else join(sequence.rest, value))

    def remove(self, store: dict[Any, Any], key: Any) -> None:
        """Take a key away."""
        if key in store:
            self._journal.append((store, key, store.pop(key)))

    @property
    def mark(self) -> int:
        """This moment, for `changes` and `undo`."""
        return len(self._journal)

    def changes(self, mark: int) -> Changes:
        """What has been written since."""
        found: Changes = {}
        for store, key, old in self._journal[mark:]:
            at = id(store), key
            if at not in found:
                found[at] = store, key, old, store.get(key, ABSENT)
        return found

    def gather(self, found: Changes, mark: int) -> None:
        """Add to changes what has been written since `mark` at the first time, and since the last time later: all values that there were."""
        for store, key, old in self._journal[min(self.gathered, self.mark) if found else mark :]:
            at, now = (id(store), key), store.get(key, ABSENT)
            before, value = found[at][2:] if at in found else (old, old)
            found[at] = store, key, before, _one_of([value, old, now])
        self.gathered = self.mark

    def undo(self, mark: int) -> None:
        """Take back what has been written since."""
        self.gathered = min(self.gathered, mark)
        for store, key, old in reversed(self._journal[mark:]):
            if old is ABSENT:
                store.pop(key, None)
            else:
                store[key] = old
        del self._journal[mark:]

    def forget(self) -> None:
        """Nothing before this moment will be taken back."""
        self._journal.clear()

    def take(self, ends: list[Changes]) -> None:
        """Go on from several states, each reached from this one by its changes: what differs in them is joined."""
        if not any(ends):
            return
        if len(ends) == 1:
            for store, key, _, value in ends[0].values():
                self._put(store, key, value)
            return
        touched: Changes = {}
        for changes in ends:
            touched |= changes
        for at, (store, key, _, _) in touched.items():
            here = store.get(key, ABSENT)
            self._put(store, key, _both([changes[at][3] if at in changes else here for changes in ends]))

    def _put(self, store: dict[Any, Any], key: Any, value: Any) -> None:
        """Write a value, or that there is none, if it is another than now."""
        if value is ABSENT:
            self.remove(store, key)
        elif value is not store.get(key, ABSENT):
            self.write(store, key, value)

    def meet(self, mark: int, flow: Flow, ends: list[Changes]) -> None:
        """Go on from this state, unless no path leads to it, and from those that were left since `mark`, as by an early `return`."""
        if ends:
            here = [] if flow is Flow.GONE else [self.changes(mark)]
            self.undo(mark)
            self.take([*here, *ends])

    def arrive(self, mark: int, ends: list[Changes], *, here: bool) -> None:
        """Go on from states that were left since `mark`; with `here`, from this one as well."""
        own = self.changes(mark)
        every = [own, *ends] if here else ends
        touched = {at: one[:3] for changes in (own, *ends) for at, one in changes.items()}
        for at, (store, key, old) in touched.items():
            self._put(store, key, _both([changes[at][3] if at in changes else old for changes in every]))


def _one_of(values: list[Any]) -> Any:
    """The same where there are so many of them that joining takes too long: what differs is not known."""
    first = values[0]
    if not isinstance(first, Value) or not all(isinstance(one, Value) for one in values):
        return _both(values)
    return first if all(one is first or one == first for one in values) else Unknown("it differs")


def _both(values: list[Any]) -> Any:
    """What a store holds where it holds one of these. A name that is bound in some of them counts as bound."""
    result = ABSENT
    for value in values:
        if value is result or value is ABSENT:
            continue
        if result is ABSENT:
            result = value
            continue
        if isinstance(result, Value) and isinstance(value, Value):
            result = join(result, value)
        elif isinstance(result, Mergeable) and isinstance(value, type(result)):
            result = result.either(value)
        elif result != value:
            result = Unknown("it differs")
    return result
