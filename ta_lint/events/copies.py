"""Batches that are copied to a device."""

from dataclasses import dataclass

from ta_lint.events.place import Place


@dataclass(slots=True)
class Copy:
    """A tensor that `.to()` or `.cuda()` moves from main memory."""

    place: Place
    target: str
    """The kind of device that it goes to, empty where that is not known."""
    non_blocking: bool
    is_pinned: bool = False
    loader: Place | None = None
    """Where its loader was built, of a batch of one that does not pin memory."""
    others: tuple[Place, ...] = ()
    """The other copies of that loader's batches, as far as the source shows them."""
