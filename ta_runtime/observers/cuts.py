"""Loops that leave a loader before its end, told by the batches that they took and by their source."""

from collections.abc import Iterator

from ta_lint.events.cuts import A_FEW, Cut
from ta_runtime.facts import Loader, Pass
from ta_runtime.probes import loops
from ta_runtime.probes.places import Place

_EPOCHS = 2
"""That were left at the same batch. A number of steps leaves only the last one."""


def cuts_of(loaders: list[Loader], *, over: bool) -> Iterator[Cut]:
    """What the loops over these loaders leave out, or could by what they say."""
    for loader in loaders:
        if loader.length is not None and loader.trained:
            for place in dict.fromkeys(each.place for each in loader.passes if each.place is not None):
                passes = [each for each in loader.training_passes if each.place == place]
                if passes:
                    yield from _in_epochs(place, passes, loader.length)
            if over:
                yield from _at_end(loader, loader.length)


def _in_epochs(place: Place, passes: list[Pass], length: int) -> Iterator[Cut]:
    """Every epoch takes the same part of the batches: the code that takes them says how many."""
    loop = loops.around(place)
    if loop is None:
        return
    batches = passes[0].batches
    whole = sum(each.ended or each.batches >= length for each in passes)
    cut = Cut(loop.cut or loop.place, loop.place, loop.limit, whole=whole, batches=batches, length=length)
    if whole:
        yield cut
    elif _are_cut_alike(passes):
        cut.recurs = True
        if loop.limit is not None and loop.limit <= A_FEW and loop.limit <= batches <= loop.limit + 2:
            yield cut  # the batch at which it is noticed may have been taken already
        elif batches == length - 1:
            cut.place, cut.limit = loop.place, None
            yield cut


def _are_cut_alike(passes: list[Pass]) -> bool:
    """Whether all epochs end at the same batch, and not because another loader came to its end."""
    counts = {each.batches for each in passes}
    together = sum(each.paired for each in passes)
    batches = sum(each.batches for each in passes)
    return len(passes) >= _EPOCHS and len(counts) == 1 and min(counts) > 1 and 2 * together < batches


def _at_end(loader: Loader, length: int) -> Iterator[Cut]:
    """The whole training makes a number of steps that is rounded down: its last epoch is not finished."""
    last = loader.passes[-1]
    loop = loops.around(loader.stepped_at) if loader.stepped_at is not None else None
    if loop is not None and loop.floored and last.steps:
        whole = last.ended or last.batches >= length
        yield Cut(
            loop.place,
            loop.place,
            recurs=not whole,
            at_end=True,
            whole=whole,
            batches=last.batches,
            length=length,
        )
