"""Which files and folders the answers about a project come from."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple, TypeVar

T = TypeVar("T")

# Tuples compare by their fields alone, so that each has its kind among them.


class Surface(NamedTuple):
    """What others see of a file without its text counts; see `Imports.surface`."""

    path: str
    kind: str = "surface"


class WholeText(NamedTuple):
    """The whole text of a file counts."""

    path: str
    kind: str = "text"


class Name(NamedTuple):
    """Whether a folder has something of a name, such as the module `models`, counts: also where it has not.

    `ANY` stands for all that it has.
    """

    folder: str
    name: str
    kind: str = "name"


class Importers(NamedTuple):
    """Which files nearby import a file counts; see `Around.imported_by`."""

    path: str
    kind: str = "importers"


ANY = "*"
Leaf = Surface | WholeText | Name | Importers


class Answer:
    """A remembered answer, and what it was taken from: leaves, or other answers."""

    __slots__ = ("sources", "value")

    def __init__(self) -> None:
        self.value: object = None
        self.sources: set[Leaf | Answer] = set()


class Trail:
    """Remembers answers, each with all that it was taken from, looked up without success included.

    An answer stands while its leaves do, so that a cached result can name what it depends on.
    """

    def __init__(self) -> None:
        self._known: dict[object, Answer] = {}
        self.clearings = 0
        """How often all answers were forgotten."""
        self._current: set[Leaf | Answer] | None = (
            None  # what the question that is being answered has used so far
        )

    def clear(self) -> None:
        """Forget all answers."""
        self._known.clear()
        self.clearings += 1

    def forget(self, kinds: frozenset[str]) -> None:
        """Forget the answers to questions that begin with one of these words."""
        for question in [one for one in self._known if isinstance(one, tuple) and one[0] in kinds]:
            del self._known[question]

    def add(self, *leaves: Leaf) -> None:
        """Note what the current answer is taken from."""
        if self._current is not None:
            self._current.update(leaves)

    def also(self, answer: Answer) -> None:
        """Note that the current answer is taken from another one."""
        if self._current is not None:
            self._current.add(answer)

    def knows(self, question: object) -> bool:
        """Whether the answer to a question is remembered."""
        return question in self._known

    def remembered(self, question: object, answer: Callable[[], T]) -> T:
        """The answer to a question, found once."""
        known = self._known.get(question)
        if known is None:
            known = Answer()
            with self.into(known.sources):
                known.value = answer()
            self._known[question] = known
        self.also(known)
        return known.value  # type: ignore[return-value]

    def asked_again(self, leaf: Leaf, answer: Callable[[], T]) -> T:
        """The answer to a question that is cheaper to ask again than to name all that it is taken from."""
        before, self._current = self._current, None
        try:
            found = self.remembered(leaf, answer)
        finally:
            self._current = before
        self.add(leaf)
        return found

    @property
    def is_followed(self) -> bool:
        """Whether a question is being answered."""
        return self._current is not None

    @contextmanager
    def into(self, sources: "set[Leaf | Answer]") -> Iterator[None]:
        """Add all that is used from here on to these sources."""
        before, self._current = self._current, sources
        try:
            yield
        finally:
            self._current = before


def leaves(sources: "Iterable[Leaf | Answer]") -> set[Leaf]:
    """The leaves among sources, and those of the answers among them."""
    found: set[Leaf] = set()
    seen: set[Answer] = set()
    pending = [*sources]
    while pending:
        source = pending.pop()
        if not isinstance(source, Answer):
            found.add(source)
        elif source not in seen:
            seen.add(source)
            pending += source.sources
    return found
