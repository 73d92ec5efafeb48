"""What loops add up of each batch, and what they divide that by."""

from ta_lint.core.protocol import Action
from ta_lint.dryrun.collect.loaders import loaders_of
from ta_lint.dryrun.collect.places import code, position
from ta_lint.dryrun.machine.amounts import is_nominal, side_by_side
from ta_lint.dryrun.machine.batches import END, Amount, amount, dataset_of
from ta_lint.dryrun.machine.counts import COUNT, Length
from ta_lint.dryrun.machine.factors import Count, Factors, factors_of
from ta_lint.dryrun.streams import Stream
from ta_lint.dryrun.stubs.torch import data
from ta_lint.dryrun.stubs.torch.samplers import has_own_sampler
from ta_lint.dryrun.values import FALSE, NONE, Known, Object, Place, Unknown, Value
from ta_lint.events.batch_mean import BATCHES, SAMPLES, BatchMean
from ta_lint.events.event import Event


def batch_means_of(events: list[Event]) -> list[BatchMean]:
    """The totals of means that are divided, by the place that adds to them."""
    found: dict[tuple[Place, str], BatchMean] = {}
    for index, event in enumerate(events):
        if event.action != "average" or event.detail["total"].spans:
            continue
        total = event.detail["total"]
        per = _unit(total, event.detail["by"], events)
        if per is None or (per == BATCHES and is_running(event, total)):
            continue
        for place in places_of(total, events) or (event.detail["at"],):
            trains = _trains(total, events, events[:index])
            mean, before = _mean(place, per, event, events, trains=trains), found.get((place, per))
            if before is None or _weight(mean) > _weight(before):
                found[place, per] = mean
    return list(found.values())


def _weight(mean: BatchMean) -> tuple[bool, bool, bool]:
    """What makes one of two totals of the same line the worse one."""
    return not mean.trains, mean.is_uneven, not mean.of_singles


def is_running(event: Event, total: Amount) -> bool:
    """Whether the loop that adds up goes on."""
    return total.batch.passes[-1][0] in [loop for loop, _ in event.passes]


def places_of(total: Amount, events: list[Event]) -> tuple[Place, ...]:
    """Where the numbers are added, or put into the list that holds them."""
    if total.held is None:
        return total.added
    filled = (one for one in events if one.action == "append" and one.subject is total.held)
    return tuple(dict.fromkeys(one.place for one in filled))


def _mean(place: Place, per: str, event: Event, events: list[Event], *, trains: bool) -> BatchMean:
    loader = event.detail["total"].batch.over
    return BatchMean(
        position(place),
        per=per,
        divided=position(event.detail["at"]),
        code=what_is_divided(event.detail["at"]),
        trains=trains,
        of_singles=size_of(loader) == Known(1),
        is_uneven=_is_uneven(loader, events),
    )


def what_is_divided(place: Place) -> str:
    """What is divided, as it is written."""
    node = getattr(place.node, "left", getattr(place.node, "target", place.node))
    return code(Place(place.file, node))


def _trains(total: Amount, events: list[Event], before: list[Event]) -> bool:
    """Whether, with what happens before, the loop that adds up trains, or that over the batches which a list has kept for it."""
    if (
        total.batch.kept
        and isinstance(total.batch.over, Object)
        and (made := total.batch.over.made) is not None
    ):
        return any(one.place == position(made) and one.training_passes for one in loaders_of(events))
    for one in reversed(before):
        if one.action == Action.EPOCH and one.subject is total.batch.over:
            return False
        if one.action in (Action.STEP, Action.BACKWARD) and _is_in(one, total):
            return True
    return False


def _is_in(event: Event, total: Amount) -> bool:
    """Whether something happens in the loop that adds up."""
    around, (loop, _) = total.batch.passes[:-1], total.batch.passes[-1]
    inner = event.passes[len(around) :]
    return event.passes[: len(around)] == around and bool(inner) and inner[0][0] == loop


def _unit(total: Amount, divisor: Value | None, events: list[Event]) -> str | None:
    """What a total is divided by, None if nobody knows."""
    counted, over = amount(divisor), total.batch.over
    if total.grows:
        return BATCHES if total.grows == 1 and _is_nominal(total, divisor, events) else None
    if divisor is None or (isinstance(divisor, Unknown) and divisor.why == COUNT):
        return BATCHES
    if counted is not None:
        if not counted.counts or not counted.batch.is_beside(total.batch):
            return None
        if counted.grows:
            return _of_samples(total)
        if total.factor is not None or counted.factor is None:
            return BATCHES
        return _of_samples(total) if is_nominal(total, counted.factor) else None
    if isinstance(divisor, Length) and divisor.by is None and not divisor.less:
        inner = divisor.inner
        if divisor.measured is over or _is_list(divisor.measured, total):
            return BATCHES
        if inner is not None and inner.by is None and not inner.less and inner.measured is over:
            return BATCHES
        return _of_samples(total) if divisor.measured is dataset_of(over) else None
    rows, count = counts_of(over, events)
    if not isinstance(divisor, Known) or count is None:
        return None
    if isinstance(total.factor, Known) and divisor.value == count * total.factor.value:
        return BATCHES
    return BATCHES if divisor.value == count else _of_samples(total) if divisor.value == rows else None


def _is_nominal(total: Amount, divisor: Value | None, events: list[Event]) -> bool:
    """Whether a sum over samples is divided by how many there were if all batches had the size that they should have."""
    counted, size = amount(divisor), size_of(total.batch.over)
    if size is None or divisor is None:
        return False
    if counted is not None:
        factor = counted.factor
        beside = counted.counts and not counted.grows and counted.batch.is_beside(total.batch)
        return beside and factor is not None and is_nominal(total, factor)
    rows, count = counts_of(total.batch.over, events)
    if isinstance(divisor, Known):
        return isinstance(size, Known) and count is not None and divisor.value == count * size.value != rows
    number = Factors(1.0, {Count(total.batch.over): 1})
    each = factors_of(size)
    return each is not None and factors_of(divisor) == number.times(each)


def _of_samples(total: Amount) -> str | None:
    """The unit of a number of samples: that of batches, where each number was multiplied by the size that they should have."""
    if total.factor is None:
        return SAMPLES
    size = size_of(total.batch.over)
    return BATCHES if size is not None and (size is total.factor or size == total.factor) else None


def _is_list(measured: Value, total: Amount) -> bool:
    """Whether it holds a number of each batch."""
    held = side_by_side(measured)
    return held is not None and held.batch.is_beside(total.batch)


def size_of(loader: Value) -> Value | None:
    """How many samples a batch has, None if that is no loader."""
    is_loader = isinstance(loader, Object) and loader.cls.is_a(data.LOADER)
    return loader.fields.get("batch_size", Known(1)) if isinstance(loader, Object) and is_loader else None


def counts_of(loader: Value, events: list[Event]) -> tuple[int | None, int | None]:
    """How many samples and how many batches a loader has."""
    begun = (one for one in events if one.action == Action.EPOCH and one.subject is loader)
    return next(((one.detail["counts"][0], one.detail["length"]) for one in begun), (None, None))


def _is_uneven(loader: Value, events: list[Event]) -> bool:
    """Whether the last batch is shorter than the others, or may be."""
    size, (rows, _) = size_of(loader), counts_of(loader, events)
    if (
        isinstance(loader, Stream) and END in loader.fields
    ):  # parts that a loop cuts out: the last may be shorter
        end = loader.fields[END]
        return isinstance(end, Length) and end.by is None and not end.less
    if not isinstance(loader, Object) or loader.made is None or size in (None, NONE, Known(1)):
        return False
    if data.is_stream(loader) or has_own_sampler(loader) or loader.fields.get("drop_last", FALSE) != FALSE:
        return False
    return rows is None or not isinstance(size, Known) or (rows > size.value and rows % size.value != 0)
