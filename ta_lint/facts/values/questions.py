"""Questions that lead to one another, perhaps round to themselves: which answers hold, so that they are found once.

An answer holds unless, on the way to it, a question came up that was still open: asked later, by itself, the same question
may have more of an answer.
"""

from collections.abc import Hashable

_MOST = 400
"""Questions opened for one that nobody else asked: most open fewer than ten."""


class Questions:
    """Those that are being answered, of one file."""

    def __init__(self) -> None:
        self._open: set[Hashable] = set()
        self._met: set[Hashable] = set()
        self._left = _MOST

    def open(self, question: Hashable) -> bool:
        """Begin to answer a question; False if that is going on already, or if too many came up to answer this one as well."""
        if not self._open:
            self._left = _MOST
        self._left -= 1
        if question in self._open:
            self._met.add(question)
            return False
        if self._left < 0:
            return False
        self._open.add(question)
        return True

    def close(self, *questions: Hashable) -> None:
        """End what `open` began."""
        self._open.difference_update(questions)
        self._met.difference_update(questions)

    @property
    def hold(self) -> bool:
        """Whether the answers hold that are found now."""
        return not self._met and self._left >= 0
