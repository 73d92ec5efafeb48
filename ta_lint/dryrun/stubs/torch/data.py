"""`torch.utils.data`: datasets, loaders and what a pass over one gives."""

import ast
from typing import Any

from ta_lint.dryrun.flow import Flow
from ta_lint.dryrun.machine.call import Call
from ta_lint.dryrun.machine.calling import attempt, call
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
from ta_lint.dryrun.stubs.torch.tensors import Facts, Tensor
from ta_lint.dryrun.values import (
    DATA,
    FALSE,
    NONE,
    Bound,
    Choice,
    Class,
    Consumer,
    Function,
    Known,
    Object,
    Sequence,
    Stream,
    Table,
    Unknown,
    Value,
    joined,
)

DATASET = new_class("torch.utils.data.Dataset", "torch.utils.data.dataset.Dataset")
ITERABLE = new_class("torch.utils.data.IterableDataset", bases=(DATASET,))
TENSORS = new_class("torch.utils.data.TensorDataset", bases=(DATASET,))
PART = new_class("torch.utils.data.Subset", bases=(DATASET,))
LOADER = new_class("torch.utils.data.DataLoader", "torch.utils.data.dataloader.DataLoader")


@method(TENSORS, "__init__")
def _tensors(made: Call) -> Value:
    own = made.own()
    made.machine.state.write(own.fields, "tensors", tuple_of(made.args[1:]))
    return NONE


@method(TENSORS, "__getitem__")
def _row(made: Call) -> Value:
    own = made.own()
    return tuple_of([_row_of(one, made) for one in own.fields["tensors"].items])


def _row_of(tensor: Value, made: Call) -> Value:
    facts = tensor.facts if isinstance(tensor, Tensor) else Facts()
    return Tensor(Facts(shape=facts.shape[1:] if facts.shape else None, dtype=facts.dtype), made.place)


keeps(PART, "dataset", "indices")


@method(PART, "__getitem__")
def _row_of_part(made: Call) -> Value:
    own = made.own()
    return sample(made.machine, own.fields["dataset"], made.node)


@stub("torch.utils.data.random_split")
def _split(made: Call) -> Value:
    lengths = made.argument(1, "lengths")
    count = len(lengths.items) if isinstance(lengths, Sequence) and lengths.rest is None else 2
    parts = [
        Object(PART, made.place, {"dataset": made.argument(0, "dataset"), "indices": Unknown("indices")})
        for _ in range(count)
    ]
    return list_of(parts)


@method(TENSORS, "__len__")
def _rows_of_tensors(made: Call) -> Value:
    own = made.own()
    first = next(iter(own.fields["tensors"].items), NONE)
    return call(made.machine, find("builtins.len"), [first], {}, made.node)


@method(LOADER, "__len__")
def _number_of_batches(made: Call) -> Value:
    found = _count(*_counts(made.machine, made.own(), made.node))
    return Unknown(LENGTH, "int") if found is None else Known(found)


@method(DATASET, "__len__")
def _length(made: Call) -> Value:
    return Unknown(LENGTH, "int")


@method(LOADER, "__init__")
def _loader(made: Call) -> Value:
    own = made.own()
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
        given = made.given(index, name)
        if given is not None:
            made.machine.state.write(own.fields, name, given)
    made.machine.state.write(own.fields, "options", table_of(dict(made.kwargs)))
    return NONE


@method(LOADER, "__iter__")
def _batches(made: Call) -> Value:
    own = made.own()
    machine, node = made.machine, made.node

    sizes = _sizes(machine, own, node)

    def each(consumer: Consumer) -> Flow:
        machine.emit("epoch", node, own)
        for size in sizes:
            machine.emit("batch", node, own)
            flow = consumer(batch(machine, own, node, size))
            if flow is not Flow.ON:
                return flow
        return Flow.ON

    return Stream(STREAM, each, own, made.place)


def _counts(machine: Machine, loader: Object, node: ast.AST) -> tuple[int | None, int | None, int | None]:
    """How many rows a loader goes over, how many of them are a batch, and whether it leaves out what is less; None is not known."""
    dataset = loader.fields.get("dataset", NONE)
    size, drops = loader.fields.get("batch_size", Known(1)), loader.fields.get("drop_last", FALSE)
    chosen = any(loader.fields.get(name, NONE) != NONE for name in ("sampler", "batch_sampler"))
    counted = not chosen and not (isinstance(dataset, Object) and dataset.cls.is_a(ITERABLE))
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


def _sizes(machine: Machine, loader: Object, node: ast.AST) -> list[int | None]:
    """The rows of the first batch and of all later ones, as far as there are any; None where they differ or nobody knows."""
    rows, size, drops = _counts(machine, loader, node)
    count = _count(rows, size, drops)
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
        return Object(BATCH, loader.made, {"of": loader}) if isinstance(made, Unknown) else made
    return collated(one, loader, size)


def collated(value: Value, loader: Object | None, size: int | None = None) -> Value:
    """Items as a batch: numbers and arrays become tensors."""
    if isinstance(value, Tensor):
        grows = loader is None or loader.fields.get("batch_size") != NONE
        shape = None if value.facts.shape is None or not grows else (size, *value.facts.shape)
        return Tensor(Facts(source=loader, shape=shape, dtype=value.facts.dtype), value.made)
    if isinstance(value, Sequence) and value.rest is None:
        return tuple_of([collated(one, loader, size) for one in value.items])
    if isinstance(value, Table):
        return Table(
            value.cls, value.made, {key: collated(one, loader, size) for key, one in value.fields.items()}
        )
    if isinstance(value, Choice) and all(isinstance(one, Table) for one in value.options):
        return _rows([collated(one, loader, size) for one in value.options])
    if isinstance(value, Known) and isinstance(value.value, str):
        return list_of((), value)
    if isinstance(value, Known) or (
        isinstance(value, Unknown) and value.type in ("int", "float", "bool", DATA)
    ):
        return Tensor(Facts(source=loader))
    return Object(BATCH, None if loader is None else loader.made, {"of": loader})


def _rows(tables: list[Value]) -> Value:
    """One batch of rows that are alike."""
    keys: dict[Any, list[Value]] = {}
    for table in tables:
        assert isinstance(table, Table)
        for key, one in table.fields.items():
            keys.setdefault(key, []).append(one)
    return Table(DICT, None, {key: joined(several) for key, several in keys.items()})


BATCH = new_class("a batch out of sight")


@method(BATCH, "__getitem__", "get", "pop")
def _field(made: Call) -> Value:
    own = made.own()
    return Tensor(Facts(source=own.fields["of"]))


@method(BATCH, "__iter__", "values")
def _fields(made: Call) -> Value:
    own = made.own()
    return list_of((), Tensor(Facts(source=own.fields["of"])))


@method(BATCH, "items")
def _items(made: Call) -> Value:
    own = made.own()
    return list_of((), tuple_of([Unknown("a name", "str"), Tensor(Facts(source=own.fields["of"]))]))


@method(BATCH, "__getattr__")
def _attribute(made: Call) -> Value:
    own, name = made.own(), made.constant(1, "name")
    facts = Tensor(Facts(source=own.fields["of"]))
    return own if name in ("to", "cuda") else attribute(made.machine, facts, name, made.node)


@method(BATCH, "__call__")
def _moved(made: Call) -> Value:
    return made.args[0]


@method(DATASET, "__handed_over__")
@method(LOADER, "__handed_over__")
def _handed_over(made: Call) -> Value:
    return NONE
