"""Datasets that are made of others, and how items become a batch."""

from ta_lint.dryrun.machine import iteration
from ta_lint.dryrun.machine.call import Call
from ta_lint.dryrun.machine.counts import LENGTH
from ta_lint.dryrun.machine.library import keeps, method, new_class, stub
from ta_lint.dryrun.stubs.torch.data import DATASET, ITERABLE, collated, count_of, sample
from ta_lint.dryrun.values import NONE, Known, Object, Sequence, Unknown, Value, joined

JOINED = new_class(
    "torch.utils.data.ConcatDataset", "torch.utils.data.dataset.ConcatDataset", bases=(DATASET,)
)
CHAINED = new_class("torch.utils.data.ChainDataset", bases=(ITERABLE,))


keeps(JOINED, "datasets")
keeps(CHAINED, "datasets")


@method(JOINED, "__getitem__")
def _one(made: Call) -> Value:
    own = made.args[0]
    datasets = own.fields.get("datasets", NONE) if isinstance(own, Object) else NONE
    if not isinstance(datasets, Sequence) or not datasets.every:
        return Unknown("an item of one of several datasets")
    return joined([sample(made.machine, one, made.node) for one in datasets.every])


@method(JOINED, "__len__")
def _rows(made: Call) -> Value:
    datasets = made.own().fields.get("datasets", NONE)
    if not isinstance(datasets, Sequence) or datasets.rest is not None:
        return Unknown(LENGTH, "int")
    found = [count_of(made, one) for one in datasets.items]
    known = [one.value for one in found if isinstance(one, Known)]
    return Known(sum(known)) if len(known) == len(found) else Unknown(LENGTH, "int")


@stub("torch.utils.data.default_collate", "torch.utils.data.dataloader.default_collate")
def _collate(made: Call) -> Value:
    items, rest = iteration.collected(made.machine, made.argument(0, "batch"), made.node)
    every = [*items, *([] if rest is None else [rest])]
    return collated(joined(every), None) if every else Unknown("a batch")
