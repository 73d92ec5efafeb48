"""Numbers of the last batch alone that are used after the loop over the batches, as if they were of all."""

from ta_lint.dryrun.collect.batch_means import counts_of, size_of
from ta_lint.dryrun.collect.places import code, position
from ta_lint.dryrun.machine.batches import Amount, dataset_of
from ta_lint.dryrun.machine.counts import Length
from ta_lint.dryrun.machine.last_batches import DECIDES, SHARED
from ta_lint.dryrun.values import Value
from ta_lint.events.event import Event
from ta_lint.events.last_batch import LastBatch, Purpose


def last_batches_of(events: list[Event]) -> list[LastBatch]:
    """The first uses of those that are computed epoch by epoch. What is only told is one only if nothing keeps it of each batch."""
    kept = [event.detail["own"] for event in events if event.action == "kept of each batch"]
    found: dict[object, LastBatch] = {}
    for event in events:
        if event.action != "last batch":
            continue
        own, how, at = event.detail["own"], event.detail["how"], event.detail["at"]
        is_repeated = event.passes or len(own.batch.passes) > 1
        use = {DECIDES: Purpose.DECIDES, SHARED: Purpose.SHARED}.get(how, Purpose.TOLD)
        is_kept = use is Purpose.TOLD and any(_is_same(own, one) for one in kept)
        if not is_repeated or is_kept or _is_one(own.batch.over, events):
            continue
        loop = own.batch.passes[-1][0]
        one = LastBatch(position(at), code(at), position(loop), use)
        number = loop, own.grows, own.mixed
        if number not in found or _comes_before(one, found[number]):
            found[number] = one
    return [*found.values()]


def _comes_before(one: LastBatch, other: LastBatch) -> bool:
    """Whether a later event counts for more: a decision, or in the same file what stands above."""
    if (one.use is Purpose.DECIDES) != (other.use is Purpose.DECIDES):
        return one.use is Purpose.DECIDES
    return one.place.path == other.place.path and one.place.line < other.place.line


def _is_one(over: Value, events: list[Event]) -> bool:
    """Whether all data is one batch."""
    size = size_of(over)
    is_all = isinstance(size, Length) and size.measured is dataset_of(over)
    return is_all or counts_of(over, events)[1] == 1


def _is_same(own: Amount, kept: Amount) -> bool:
    """Whether both measure the same thing in the same loop."""
    return own.batch.passes[-1][0] == kept.batch.passes[-1][0] and own.is_like(kept)
