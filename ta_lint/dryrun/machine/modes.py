"""The modes of a program, which hold for all code that runs: how they begin, and those that two paths may leave apart."""

from dataclasses import dataclass

from ta_lint.dryrun.values import Mergeable, Place


@dataclass(frozen=True, slots=True)
class Half(Mergeable):
    """Whether the precision that is chosen for operations is float16, on some path at least."""

    on: bool = False

    def either(self, other: "Half") -> "Half":
        """Whether it is on one of two paths."""
        return self if self.on else other


@dataclass(frozen=True, slots=True)
class Chooser(Mergeable):
    """What chooses the precision of operations: where it was made, None if nothing does."""

    made: Place | None = None

    def either(self, other: "Chooser") -> "Chooser":
        """What does so on one of two paths."""
        return self if self.made is not None else other


MODES = {
    "recording": True,
    "autocast": False,
    "chooser": Chooser(),
    "half": Half(),
    "scaler": None,
    "in sight": True,
}
"""Whether autograd records, whether the precision of an operation is chosen for it, by what, and whether that is float16, the gradient scaler
that makes a step, and whether all context managers around are in sight, where nothing else is said.
"""
