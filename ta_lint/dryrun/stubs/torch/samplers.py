"""What decides which samples a loader takes, and datasets that are made of others."""

from ta_lint.dryrun.machine import iteration
from ta_lint.dryrun.machine.call import Call
from ta_lint.dryrun.machine.counts import LENGTH
from ta_lint.dryrun.machine.library import keeps, list_of, method, new_class, stub
from ta_lint.dryrun.stubs.torch.data import DATASET, ITERABLE, collated, sample
from ta_lint.dryrun.values import NONE, Class, Object, Sequence, Unknown, Value, joined

SAMPLER = new_class("torch.utils.data.Sampler", "torch.utils.data.sampler.Sampler")


def _sampler(name: str, arguments: str, *others: str) -> Class:
    """A sampler with these arguments, which are its attributes."""
    cls = new_class(f"torch.utils.data.{name}", f"torch.utils.data.sampler.{name}", *others, bases=(SAMPLER,))

    def init(made: Call) -> Value:
        own = made.own()
        for index, argument in enumerate(arguments.split(), 1):
            given = made.given(index, argument)
            if given is not None:
                made.machine.state.write(own.fields, argument, given)
        return NONE

    method(cls, "__init__")(init)
    return cls


BATCHES = _sampler("BatchSampler", "sampler batch_size drop_last")
DISTRIBUTED = _sampler(
    "DistributedSampler", "dataset num_replicas rank shuffle seed drop_last", "torch.utils.data.distributed.DistributedSampler",
)  # fmt: skip
_sampler("RandomSampler", "data_source replacement num_samples generator")
_sampler("SequentialSampler", "data_source")
_sampler("SubsetRandomSampler", "indices generator")
_sampler("WeightedRandomSampler", "weights num_samples replacement generator")


@method(SAMPLER, "__init__")
def _init(made: Call) -> Value:
    return NONE


@method(SAMPLER, "__len__")
def _length(made: Call) -> Value:
    return Unknown(LENGTH, "int")


@method(SAMPLER, "__iter__")
def _indices(made: Call) -> Value:
    return list_of((), Unknown("an index", "int"))


@method(BATCHES, "__iter__")
def _batches(made: Call) -> Value:
    return list_of((), list_of((), Unknown("an index", "int")))


@method(DISTRIBUTED, "set_epoch")
def _epoch(made: Call) -> Value:
    made.emit("set epoch", made.args[0])
    return NONE


# -- datasets of datasets ------------------------------------------------------------------------------

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


@stub("torch.utils.data.default_collate", "torch.utils.data.dataloader.default_collate")
def _collate(made: Call) -> Value:
    items, rest = iteration.collected(made.machine, made.argument(0, "batch"), made.node)
    every = [*items, *([] if rest is None else [rest])]
    return collated(joined(every), None) if every else Unknown("a batch")
