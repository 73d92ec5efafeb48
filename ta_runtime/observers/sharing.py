"""Which parameters that nobody wraps two ranks share, as a step of both shows it.

Equal weights alone prove nothing, as constants and seeds make them so, and neither do gradients that both computed
alike: what counts are gradients that became equal by what the ranks sent each other.
"""

from collections.abc import Mapping
from itertools import pairwise

from ta_runtime.facts import Replica
from ta_runtime.measure.digests import VALUES, Digest

_ALIKE = VALUES // 2  # of the kept elements of a gradient, those that must have arrived
_DISTINCT = 4  # values among them: clipping by value makes many equal, to two


def shared(mine: Mapping[str, Replica], others: Mapping[str, Replica]) -> set[str]:
    """Of the parameters of one optimizer on two ranks, those that the two are shown to share."""
    pairs = {name: (mine[name], others[name]) for name in mine if name in others}
    found = {name for name, pair in pairs.items() if _went_alike(*pair) or _half_received(*pair)}
    moved = {name: pair for name, pair in pairs.items() if any(replica.used is not None for replica in pair)}
    if mine.keys() == others.keys() and all(_same(here.used, there.used) for here, there in moved.values()):
        found |= {name for name, pair in moved.items() if _reduced(*pair)}
    return found


def _went_alike(here: Replica, there: Replica) -> bool:
    """Whether both had the same weights with the same gradient: of a parameter that is split, each has its own."""
    gradients = [
        (here.computed, there.computed),
        (here.reduced, there.reduced),
        (here.used, there.used),
    ]
    return _same(here.before, there.before) and any(_same_varied(*pair) for pair in gradients)


def _reduced(here: Replica, there: Replica) -> bool:
    """Whether both used one gradient, which they did not compute alike."""
    parted = here.computed is not None and there.computed is not None and here.computed != there.computed
    return _same_varied(here.used, there.used) and (parted or _same(here.reduced, there.reduced))


def _half_received(here: Replica, there: Replica) -> bool:
    """Whether of a gradient the part up to some element, or from it on, became the same on both, and no more."""
    if not (_same_varied(here.before, there.before) and here.used and there.used):
        return False
    if not (here.computed and there.computed and here.used.shape == there.used.shape):
        return False
    used = [pair for pair in zip(here.used.values, there.used.values, strict=True) if any(pair)]
    both = zip(here.used.values, there.used.values, here.computed.values, there.computed.values, strict=True)
    received = [a for a, b, computed, other in both if a == b != 0 and computed != other]
    alike = [a == b for a, b in used]
    borders = sum(a != b for a, b in pairwise(alike))
    return (
        borders == 1 and len(received) == sum(alike) >= _ALIKE and len(set(map(abs, received))) >= _DISTINCT
    )


def _same(one: Digest | None, other: Digest | None) -> bool:
    return one is not None and other is not None and (one.bits, one.shape) == (other.bits, other.shape)


def _same_varied(one: Digest | None, other: Digest | None) -> bool:
    return one is not None and one.varies and _same(one, other)
