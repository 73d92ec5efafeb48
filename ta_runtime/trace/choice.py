"""Which events are recorded: those of a level or, for a check during the run, those that it wants."""

from collections.abc import Collection

from ta_runtime.trace.event import LEVELS

STATES = {"parameter", "buffer", "gradient"}


class Choice:
    """The kinds and names of events to record.

    Args:
        level: of `event.LEVELS`.
        wanted: kinds and names; an empty name means all of a kind. None: all of the level.
    """

    def __init__(self, level: str, wanted: Collection[tuple[str, str]] | None) -> None:
        depth = LEVELS.index(level)
        self._left_out = set() if depth else STATES
        if depth < LEVELS.index("ops"):
            self._left_out = self._left_out | {"op"}
        self._wanted = None if wanted is None else frozenset(wanted)
        self.digests = depth > 0
        """Whether digests of the results of modules are taken."""

    def tells(self, kind: str, name: str) -> bool:
        if self._wanted is not None:
            return (kind, name) in self._wanted or (kind, "") in self._wanted
        return kind not in self._left_out

    def of(self, kind: str) -> bool:
        """Whether any event of a kind is recorded."""
        return self.names(kind) != frozenset()

    def names(self, kind: str) -> frozenset[str] | None:
        """The names of a kind that are recorded; None: all."""
        if self.tells(kind, ""):
            return None
        return frozenset(name for wanted, name in self._wanted or () if wanted == kind)
