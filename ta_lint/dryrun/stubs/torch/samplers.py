"""What decides which samples a loader takes, and in which order."""

from collections.abc import Iterator

from ta_lint.dryrun.machine.call import Call
from ta_lint.dryrun.machine.counts import LENGTH
from ta_lint.dryrun.machine.library import list_of, method, new_class
from ta_lint.dryrun.values import NONE, TRUE, Class, Known, Object, Unknown, Value, options

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
    cls.is_whole = True
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


@method(DISTRIBUTED, "__init__")
def _distributed(made: Call) -> Value:
    own, write = made.own(), made.machine.state.write
    write(own.fields, "shuffle", made.argument(4, "shuffle", True))
    write(own.fields, "seed", made.argument(5, "seed", 0))
    write(own.fields, "epoch", Known(0))
    return NONE


@method(DISTRIBUTED, "set_epoch")
def _epoch(made: Call) -> Value:
    made.machine.state.write(made.own().fields, "epoch", made.argument(1, "epoch"))
    return NONE


@method(SAMPLER, "__handed_over__")
def _handed_over(made: Call) -> Value:
    """Code out of sight may set its epoch."""
    made.machine.state.write(made.own().fields, "epoch", Unknown("code out of sight may set it"))
    return NONE


# -- the samplers of a loader --------------------------------------------------------------------------


def samplers(loader: Object) -> Iterator[Object]:
    """What may draw the samples of a loader, also below what makes batches of them."""
    for name in ("sampler", "batch_sampler"):
        for one in options(loader.fields.get(name, NONE)):
            if isinstance(one, Object):
                yield from samplers(one) if one.cls.is_a(BATCHES) else [one]


def has_own_sampler(loader: Object) -> bool:
    """Whether something draws its samples that the program gives it, or may."""
    return any(loader.fields.get(name, NONE) != NONE for name in ("sampler", "batch_sampler"))


def shuffled_by(loader: Object) -> tuple[Value, Value] | None:
    """Seed and epoch by which a `DistributedSampler` shuffles a loader now, None if nobody knows them."""
    for one in samplers(loader):
        if one.cls.is_a(DISTRIBUTED) and one.cls.find("__iter__") is SAMPLER.find("__iter__"):
            epoch = one.fields.get("epoch")
            if one.fields.get("shuffle") == TRUE and isinstance(epoch, Known):
                return one.fields["seed"], epoch
    return None
