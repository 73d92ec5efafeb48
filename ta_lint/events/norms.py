"""How many values the batch norms of a model take their statistics from, where a call of it trains."""

from dataclasses import dataclass

from ta_lint.events.place import Place


@dataclass(frozen=True, slots=True)
class Normed:
    """A call of a model with batch norms in training mode."""

    place: Place
    values: int
    """Values of each channel, in the norm that gets the fewest; of several passes, in the one with the most."""
    loader: Place | None = None
    """Where the loader is built that says so."""
