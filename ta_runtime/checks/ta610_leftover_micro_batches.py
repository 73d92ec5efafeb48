"""TA610: batches at the end of an epoch, too few for a full accumulation, are not stepped on in that epoch."""

from collections import Counter
from collections.abc import Iterator

from ta_runtime.facts import Action, Refutation, Rounds, Run, Suspicion, Way


def check_run(run: Run) -> Iterator[Suspicion | Refutation]:
    for rounds in run.loop.rounds:
        usual = _usual(rounds)
        if usual < 2:
            continue
        left = [count for way in rounds.ways if (count := _carried(way, usual))]
        pending = _backwards(rounds.pending) if rounds.epoch_is_over else 0
        if pending and not _crosses(rounds, usual):
            left.append(pending)
        for place in rounds.places(Action.STEP):
            if left:
                message = "batches that are left over at the end of an epoch are not stepped on in it"
                yield Suspicion(place, message, {"batches to a step": usual, "left over": max(left)})
            elif rounds.epoch_is_over and not pending:
                yield Refutation(place, {"batches to a step": usual, "left over": 0})


def _usual(rounds: Rounds) -> int:
    """How many batches most steps add up, 0 before there are two steps."""
    counts = Counter[int]()
    for way, times in rounds.ways.items():
        if not any(event.action is Action.PASS for event, _ in way[1:]):
            counts[_summed(way)] += times
    return counts.most_common(1)[0][0] if counts.total() > 1 else 0


def _carried(way: Way, usual: int) -> int:
    """How many batches of an epoch went into the first step of the next, on top of its own, or were cleared away."""
    for index, (event, _) in enumerate(way):
        before = _backwards(way[:index])
        if event.action is Action.PASS and before:
            is_cleared = any(earlier.action is Action.CLEAR for earlier, _ in way[_first(way) : index])
            return before if is_cleared or _backwards(way) > usual else 0
    return 0


def _crosses(rounds: Rounds, usual: int) -> bool:
    """Whether a count that runs on from epoch to epoch fills the last sum of one with batches of the next."""
    return any(
        event.action is Action.PASS and _backwards(way[:index]) and not _carried(way, usual)
        for way in rounds.ways
        for index, (event, _) in enumerate(way)
    )


def _first(way: Way) -> int:
    return next(index for index, (event, _) in enumerate(way) if event.action is Action.BACKWARD)


def _summed(way: Way) -> int:
    """The batches whose gradients nothing cleared before the step; 0 if one of them had several backward passes.

    Those of a GAN are one batch each: of real and fake images, or of the other network's loss, cleared away again.
    """
    cleared = [index for index, (event, _) in enumerate(way) if event.action is Action.CLEAR]
    kept = way[cleared[-1] + 1 :] if cleared else way
    if not all(event.is_next_batch for event, _ in kept if event.action is Action.BACKWARD):
        return 0
    return _backwards(kept)


def _backwards(way: Way) -> int:
    return sum(count for event, count in way if event.action is Action.BACKWARD)
