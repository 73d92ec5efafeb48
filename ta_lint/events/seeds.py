"""The lines that seed generators of random numbers, and what the steps after them find."""

from dataclasses import dataclass, field
from typing import Any

from ta_lint.events.place import Place


@dataclass(slots=True)
class Seeding:
    """A line that seeds a global generator.

    `starts` has, for the first step after it, which optimizer stepped, and the generator's state, as the seed left it and as the step found
    it: hashes in a run, and in a dry run something that is equal where the same was drawn since the same seed. Lines that seed while gradients
    are off are left out.
    """

    generator: str
    place: Place
    calls: int = 0
    values: set[Any] = field(default_factory=set)
    """The seeds, of many the first."""
    starts: list[tuple[Any, Any, Any]] = field(default_factory=list)
