"""`torch.utils.data`: datasets, loaders and what a pass over one gives."""

import ast
from collections.abc import Sequence as Several
from dataclasses import replace
from functools import partial
from typing import Any

from ta_lint.dryrun.flow import Flow
from ta_lint.dryrun.machine.call import Call
from ta_lint.dryrun.machine.calling import attempt, call, hand_over
from ta_lint.dryrun.machine.counts import LENGTH
from ta_lint.dryrun.machine.library import (
    DICT,
    STREAM,
    find,
    keeps,
    list_of,
    method,
    new_class,
    stub,
    table_of,
    tuple_of,
)
from ta_lint.dryrun.machine.machine import Machine
from ta_lint.dryrun.machine.objects import attribute
from ta_lint.dryrun.streams import Consumer, Stream
from ta_lint.dryrun.stubs.torch.devices import copies, moves
from ta_lint.dryrun.stubs.torch.pairs import BATCH, OUT_OF_SIGHT, ROWS, grows, with_ends
from ta_lint.dryrun.stubs.torch.samplers import BATCHES, SAMPLER, has_own_sampler, samplers, shuffled_by
from ta_lint.dryrun.stubs.torch.tensors import FACTS, Facts, Tensor, tensors_in
from ta_lint.dryrun.values import (
    DATA,
    FALSE,
    NONE,
    TRUE,
    Bound,
    Choice,
    Class,
    Function,
    Hidden,
    Known,
    Object,
    Sequence,
    Setting,
    Table,
    Unknown,
    Value,
    joined,
    options,
)
from ta_lint.events.loaders import IN_ORDER

DATASET = new_class("torch.utils.data.Dataset", "torch.utils.data.dataset.Dataset")
ITERABLE = new_class("torch.utils.data.IterableDataset", bases=(DATASET,))
TENSORS = new_class("torch.utils.data.TensorDataset", bases=(DATASET,))
PART = new_class("torch.utils.data.Subset", bases=(DATASET,))
SHARE = Hidden("how many rows a part has")
LOADER = new_class("torch.utils.data.DataLoader", "torch.utils.data.dataloader.DataLoader")
for _name in (
    "torch_geometric.data",
    "torch_geometric.loader",
    "torch_geometric.loader.dataloader",
    "monai.data",
):
    new_class(f"{_name}.DataLoader", bases=(LOADER,))


@method(TENSORS, "__init__")
def _tensors(made: Call) -> Value:
    own = made.own()
    made.machine.state.write(own.fields, "tensors", tuple_of(made.args[1:]))
    return NONE


@method(TENSORS, "__getitem__")
def _row(made: Call) -> Value:
    return joined([tuple_of([_row_of(one, made) for one in each.items]) for each in _tensors_of(made)])


def _tensors_of(made: Call) -> list[Sequence]:
    """What it holds, or may hold if it was made again on some path."""
    return [one for one in options(made.own().fields["tensors"]) if isinstance(one, Sequence)]


def _row_of(tensor: Value, made: Call) -> Value:
    facts = tensor.facts if isinstance(tensor, Tensor) else Facts()
    return Tensor(Facts(shape=facts.shape[1:] if facts.shape else None, dtype=facts.dtype), made.place)


keeps(PART, "dataset", "indices")


@method(PART, "__getitem__")
def _row_of_part(made: Call) -> Value:
    own = made.own()
    return sample(made.machine, own.fields["dataset"], made.node)


@method(PART, "__len__")
def _rows_of_part(made: Call) -> Value:
    own = made.own()
    share = own.fields.get(SHARE) or count_of(made, own.fields.get("indices", NONE))
    return share if isinstance(share, Known) else Unknown(LENGTH, "int")


@stub("torch.utils.data.random_split")
def _split(made: Call) -> Value:
    whole = made.argument(0, "dataset")
    return list_of(
        Object(PART, made.place, {"dataset": whole, "indices": Unknown("indices"), SHARE: share})
        for share in _shares(made, whole, made.argument(1, "lengths"))
    )


def _shares(made: Call, whole: Value, lengths: Value) -> Several[Value]:
    """How many rows the parts get: so many, or such a fraction of all, and the first of them one more of what is left."""
    if not isinstance(lengths, Sequence) or lengths.rest is not None:
        return [Unknown(LENGTH, "int")] * 2
    shares = [one.value for one in lengths.items if isinstance(one, Known) and isinstance(one.value, float)]
    rows = count_of(made, whole)
    if not isinstance(rows, Known) or len(shares) < len(lengths.items):
        return lengths.items
    found = [int(share * rows.value) for share in shares]
    left = rows.value - sum(found)
    return [Known(each + (number < left)) for number, each in enumerate(found)]


def count_of(made: Call, value: Value) -> Value:
    """How many rows something has."""
    found = call(made.machine, find("builtins.len"), [value], {}, made.node)
    return found if isinstance(found, Known) else Unknown(LENGTH, "int")


@method(TENSORS, "__len__")
def _rows_of_tensors(made: Call) -> Value:
    return count_of(made, next((one for each in _tensors_of(made) for one in each.items), NONE))


@method(LOADER, "__len__")
def _number_of_batches(made: Call) -> Value:
    found = _count(*_counts(made.machine, made.own(), made.node))
    return Unknown(LENGTH, "int") if found is None else Known(found)


@method(DATASET, "__len__")
def _length(made: Call) -> Value:
    return Unknown(LENGTH, "int")


@method(LOADER, "__init__")
def _loader(made: Call) -> Value:
    own, machine = made.own(), made.machine
    names = (
        "dataset",
        "batch_size",
        "shuffle",
        "sampler",
        "batch_sampler",
        "num_workers",
        "collate_fn",
        "pin_memory",
        "drop_last",
    )
    for index, name in enumerate(names, 1):
        given = made.argument(index, name) if made.loose else made.given(index, name)
        if given is not None:
            made.machine.state.write(own.fields, name, given)
    made.machine.state.write(own.fields, "options", table_of(dict(made.kwargs)))
    if isinstance(own.fields.get("num_workers"), Setting):
        machine.state.write(own.fields, "num_workers", Unknown("who calls it may say another number"))
    made.emit("loader", own)
    return NONE


@method(LOADER, "__iter__")
def _batches(made: Call) -> Value:
    own = made.own()
    machine, node = made.machine, made.node

    counts = _counts(machine, own, node)
    sizes = _sizes(*counts)

    def each(consumer: Consumer) -> Flow:
        for size in sizes:
            bound = machine.passes[-1].bound if machine.passes and machine.draws else None
            machine.emit(
                "batch",
                node,
                own,
                iterator=iterator,
                shuffled_by=shuffled_by(own),
                by_next=machine.draws > 0,
                bound=bound,
            )
            flow = consumer(batch(machine, own, node, size))
            if flow is not Flow.ON:
                return flow
        machine.emit("epoch is over", node, own, iterator=iterator)
        return Flow.ON

    iterator = Stream(STREAM, each, own, made.place)
    made.emit(
        "epoch", own, iterator=iterator, length=_count(*counts), counts=counts, goes_on=machine.goes_on > 0
    )
    return iterator


def is_stream(loader: Object) -> bool:
    """Whether its samples have no indices, and perhaps no end."""
    return any(
        isinstance(one, Object) and one.cls.is_a(ITERABLE)
        for one in options(loader.fields.get("dataset", NONE))
    )


def sampler_of(loader: Object) -> str:
    """The class of what draws its indices; of several, one that may shuffle. Empty where nobody knows, and of a stream."""
    if is_stream(loader):
        return ""
    if has_own_sampler(loader):
        names = [one.cls.name.rpartition(".")[2] for one in samplers(loader)]
        return next((name for name in names if name != IN_ORDER), *names[:1]) if names else "Sampler"
    shuffle = loader.fields.get("shuffle", FALSE)
    return ("RandomSampler" if shuffle.value else IN_ORDER) if isinstance(shuffle, Known) else ""


def shuffled_beside(loader: Object) -> str:
    """The argument that may hold a sampler, where the loader is told to shuffle as well; empty if there is none."""
    told = loader.fields.get("shuffle", FALSE)
    if told != TRUE or isinstance(told, Setting):
        return ""
    of_torch = (name for name in ("sampler", "batch_sampler") if _has_sampler(loader.fields.get(name, NONE)))
    return next(of_torch, "")


def _has_sampler(given: Value) -> bool:
    return any(
        isinstance(one, Object) and (one.cls.is_a(SAMPLER) or one.cls.is_a(BATCHES)) for one in options(given)
    )


def drops_last(loader: Object) -> bool:
    """Whether it certainly leaves out a last batch that is shorter than the others."""
    told = loader.fields.get("drop_last", FALSE)
    is_own = loader.fields.get("batch_sampler", NONE) == NONE
    return told == TRUE and not isinstance(told, Setting) and is_own


def draws_once(loader: Object) -> bool:
    """Whether a pass draws each sample once, and then ends."""
    plain = not has_own_sampler(loader) or sampler_of(loader) in (IN_ORDER, "DistributedSampler")
    return plain and not is_stream(loader)


def _counts(machine: Machine, loader: Object, node: ast.AST) -> tuple[int | None, int | None, int | None]:
    """How many rows a loader goes over, how many of them are a batch, and whether it leaves out what is less; None is not known."""
    dataset = loader.fields.get("dataset", NONE)
    size, drops = loader.fields.get("batch_size", Known(1)), loader.fields.get("drop_last", FALSE)
    counted = not has_own_sampler(loader) and not is_stream(loader)
    length = attempt(machine, find("builtins.len"), [dataset], node) if counted else NONE
    known = [
        one.value if isinstance(one, Known) and isinstance(one.value, int) else None
        for one in (length, size, drops)
    ]
    own = loader.fields.get("batch_sampler", NONE) == NONE and known[1] != 0
    return known[0], known[1] if own else None, known[2] if own else None


def _count(rows: int | None, size: int | None, drops: int | None) -> int | None:
    """How many batches that are, None if nobody knows."""
    if rows is None or size is None or drops is None:
        return None
    return (rows if drops else rows + size - 1) // size


def _sizes(rows: int | None, size: int | None, drops: int | None) -> list[int | None]:
    """The rows of the first batch and of all later ones, as far as there are any; None where they differ or nobody knows."""
    count = _count(rows, size, drops)
    if size == 1 and count is None:
        return [1, 1]
    if rows is None or size is None or count is None:
        return [size if drops else None] * 2
    last = size if drops else rows - size * (count - 1)
    later = last if count == 2 else size if last == size else None
    return [] if count == 0 else [last] if count == 1 else [size, later]


def sample(machine: Machine, dataset: Value, node: ast.AST) -> Value:
    """One item of a dataset."""
    if isinstance(dataset, Object):
        if isinstance(dataset, Sequence):
            return (
                dataset.rest
                if dataset.rest is not None
                else dataset.items[0]
                if dataset.items
                else Unknown("an item")
            )
        getter = dataset.cls.find("__getitem__")
        if getter is not None:
            return attempt(machine, getter, [dataset, Unknown("an index", "int")], node)
    return Unknown("an item of a dataset out of sight")


def batch(machine: Machine, loader: Object, node: ast.AST, size: int | None) -> Value:
    """One batch of a loader: what its `collate_fn` makes of items, or the items with one more dimension."""
    one = sample(machine, loader.fields.get("dataset", NONE), node)
    collate = loader.fields.get("collate_fn", NONE)
    if isinstance(collate, Function | Bound) or (
        isinstance(collate, Object)
        and not isinstance(collate, Class)
        and collate.cls.find("__call__") is not None
    ):
        made = attempt(machine, collate, [list_of((), one)], node)
        if isinstance(made, Unknown):
            return Object(OUT_OF_SIGHT, loader.made, {"of": loader})
        for tensor in tensors_in([made]):
            if tensor.facts.is_constant and tensor.facts.leaf:  # what is filled with samples is one of these
                facts = replace(tensor.facts, source=loader, batch_of=loader)
                machine.state.write(tensor.fields, FACTS, facts)
        return made
    return collated(one, loader, size)


def collated(
    value: Value, loader: Object | None, size: int | None = None, outer: frozenset[int] = frozenset()
) -> Value:
    """Items as a batch: numbers and arrays become tensors. Of what is inside of one of the `outer` ones and is that one, nothing is known."""
    if id(value) in outer:
        return Object(OUT_OF_SIGHT, None, {"of": loader})
    within = partial(collated, loader=loader, size=size, outer=outer | {id(value)})
    if isinstance(value, Tensor):
        shape = None if value.facts.shape is None or not grows(loader) else (size or ROWS, *value.facts.shape)
        facts = Facts(source=loader, shape=shape, dtype=value.facts.dtype, batch_of=loader)
        return Tensor(with_ends(facts, BATCH if grows(loader) else None), value.made)
    if isinstance(value, Sequence) and value.rest is None:
        return tuple_of(map(within, value.items))
    if isinstance(value, Table):
        return Table(value.cls, value.made, {key: within(one) for key, one in value.fields.items()})
    if isinstance(value, Choice) and all(isinstance(one, Table) for one in value.options):
        return _rows(list(map(within, value.options)))
    if isinstance(value, Known) and isinstance(value.value, str):
        return list_of((), value)
    if isinstance(value, Known) or (
        isinstance(value, Unknown) and value.type in ("int", "float", "bool", DATA)
    ):
        is_number = isinstance(value, Known) or value.type != DATA
        shape = (size or ROWS,) if is_number and grows(loader) else None
        return Tensor(
            with_ends(Facts(source=loader, shape=shape, batch_of=loader), BATCH if grows(loader) else None)
        )
    return Object(OUT_OF_SIGHT, None if loader is None else loader.made, {"of": loader})


def _rows(tables: list[Value]) -> Value:
    """One batch of rows that are alike."""
    keys: dict[Any, list[Value]] = {}
    for table in tables:
        assert isinstance(table, Table)
        for key, one in table.fields.items():
            keys.setdefault(key, []).append(one)
    return Table(DICT, None, {key: joined(several) for key, several in keys.items()})


def _of_batch(own: Object) -> Tensor:
    """Something in a batch of which nobody knows more."""
    loader = own.fields["of"]
    facts = Facts(source=loader, batch_of=loader)
    return Tensor(with_ends(facts, BATCH if loader is not None and grows(loader) else None))


@method(OUT_OF_SIGHT, "__getitem__", "get", "pop")
def _field(made: Call) -> Value:
    own = made.own()
    return _of_batch(own)


@method(OUT_OF_SIGHT, "__iter__", "values")
def _fields(made: Call) -> Value:
    own = made.own()
    return list_of((), _of_batch(own))


@method(OUT_OF_SIGHT, "items")
def _items(made: Call) -> Value:
    own = made.own()
    return list_of(
        (),
        tuple_of([Unknown("a name", "str"), _of_batch(own)]),
    )


@method(OUT_OF_SIGHT, "__getattr__")
def _attribute(made: Call) -> Value:
    own, name = made.own(), made.constant(1, "name")
    facts = _of_batch(own)
    return own if name in ("to", "cuda") else attribute(made.machine, facts, name, made.node)


@method(OUT_OF_SIGHT, "__call__")
def _moved(made: Call) -> Value:
    own, name = made.own(), "to" if made.args[1:] or "device" in made.kwargs else "cuda"
    move = Call(made.machine, made.node, made.args, made.kwargs, made.loose, name)
    moves(move)
    copies(move, own.fields["of"])
    return own


@method(DATASET, "__handed_over__")
def _handed_over(made: Call) -> Value:
    return NONE


@method(LOADER, "__handed_over__")
def _loader_handed_over(made: Call) -> Value:
    own = made.own()
    hand_over(made.machine, [*samplers(own)], str(made.constant(1, "name")), made.node)
    made.machine.state.write(own.fields, "pin_memory", Unknown("code out of sight may take another loader"))
    return NONE
