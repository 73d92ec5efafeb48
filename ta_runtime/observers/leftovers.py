"""What the history of an optimizer says of batches at the end of an epoch that got no step in it."""

from collections import Counter
from collections.abc import Iterator

from ta_lint.core.protocol import Action
from ta_lint.events.leftovers import Leftover
from ta_runtime.facts import LoopHistory, StepPattern


def leftovers_of(history: LoopHistory) -> Iterator[Leftover]:
    """Those of each line that steps, once an epoch is over."""
    usual = _usual(history)
    if usual < 2:
        return
    left = [count for pattern in history.patterns if (count := _carried(pattern, usual))]
    pending = _backwards(history.pending) if history.epoch_is_over else 0
    if pending and not _crosses(history, usual):
        left.append(pending)
    if left or (history.epoch_is_over and not pending):
        yield from (Leftover(place, usual, max(left, default=0)) for place in history.places(Action.STEP))


def _usual(history: LoopHistory) -> int:
    """The number of batches that most steps add up, 0 before there are two steps."""
    counts = Counter[int]()
    for pattern, times in history.patterns.items():
        if not any(event.action is Action.EPOCH for event, _ in pattern[1:]):
            counts[_summed(pattern)] += times
    return counts.most_common(1)[0][0] if counts.total() > 1 else 0


def _carried(pattern: StepPattern, usual: int) -> int:
    """The number of batches of one epoch that were cleared, or went into the first step of the next epoch on top of its own."""
    for index, (event, _) in enumerate(pattern):
        before = _backwards(pattern[:index])
        if event.action is Action.EPOCH and before:
            is_cleared = any(
                earlier.action is Action.CLEAR for earlier, _ in pattern[_first(pattern) : index]
            )
            return before if is_cleared or _backwards(pattern) > usual else 0
    return 0


def _crosses(history: LoopHistory, usual: int) -> bool:
    """Whether a counter runs on over epochs and completes the last sum of one with batches of the next."""
    return any(
        event.action is Action.EPOCH and _backwards(pattern[:index]) and not _carried(pattern, usual)
        for pattern in history.patterns
        for index, (event, _) in enumerate(pattern)
    )


def _first(pattern: StepPattern) -> int:
    return next(index for index, (event, _) in enumerate(pattern) if event.action is Action.BACKWARD)


def _summed(pattern: StepPattern) -> int:
    """The batches whose gradients nothing cleared before the step; 0 if one of them had several backward passes.

    Those of a GAN are one batch each: of real and fake images, or of the other network's loss, cleared away again.
    """
    cleared = [index for index, (event, _) in enumerate(pattern) if event.action is Action.CLEAR]
    kept = pattern[cleared[-1] + 1 :] if cleared else pattern
    if not all(event.is_next_batch for event, _ in kept if event.action is Action.BACKWARD):
        return 0
    return _backwards(kept)


def _backwards(pattern: StepPattern) -> int:
    return sum(count for event, count in pattern if event.action is Action.BACKWARD)
