"""How `sklearn.model_selection` splits data, so that disjoint parts of it are known as such. Its metrics are in `ta_lint/data/plain.toml`."""

from dataclasses import replace

from ta_lint.dryrun.flow import Flow
from ta_lint.dryrun.machine import sizes
from ta_lint.dryrun.machine.call import Call
from ta_lint.dryrun.machine.counts import LENGTH
from ta_lint.dryrun.machine.library import STREAM, list_of, method, new_class, stub, tuple_of
from ta_lint.dryrun.streams import Consumer, Stream
from ta_lint.dryrun.stubs.torch.tensors import Tensor, computed
from ta_lint.dryrun.values import DATA, NONE, Known, Object, Place, Sequence, Unknown, Value, joined

PART = new_class("sklearn.model_selection.Part")
"""A part of data, or of the indices of it: `of` is the whole, `split` where it was split, and `number` tells its parts apart."""


def part(of: Value, split: Place, number: int) -> Value:
    """A part of some data."""
    if isinstance(of, Sequence):
        return list_of((), joined(of.every)) if of.every else list_of(())
    if isinstance(of, Tensor):
        shape = of.facts.shape
        return Tensor(replace(of.facts, shape=shape and (None, *shape[1:])), split)
    known = sizes.of(of)
    shape = None if known is None else (None, *known[1:])
    return Object(PART, split, {"of": of, "split": split, "number": number, sizes.OF_PART: shape})


@stub("sklearn.model_selection.train_test_split")
def _split(made: Call) -> Value:
    """Two parts of each array, in the order of the arrays."""
    names = ("random_state", "shuffle", "stratify", "test_size", "train_size")
    arrays = [*made.args, *(value for name, value in made.kwargs.items() if name not in names)]
    if made.loose:
        return list_of((), Unknown("a part of data"))
    return list_of([part(array, made.place, number) for array in arrays for number in range(2)])


_FOLDS = """
    GroupKFold GroupShuffleSplit KFold LeaveOneGroupOut LeaveOneOut LeavePOut PredefinedSplit RepeatedKFold RepeatedStratifiedKFold
    ShuffleSplit StratifiedGroupKFold StratifiedKFold StratifiedShuffleSplit
"""
FOLDS = new_class(*(f"sklearn.model_selection.{name}" for name in _FOLDS.split()))
new_class("sklearn.model_selection.TimeSeriesSplit", bases=(FOLDS,))
"""Its test rows come after those of all folds before."""


@method(FOLDS, "__init__")
def _folds(made: Call) -> Value:
    own = made.own()
    made.machine.state.write(own.fields, "n_splits", made.argument(1, "n_splits", 5))
    return NONE


@method(FOLDS, "get_n_splits")
def _count(made: Call) -> Value:
    own = made.args[0]
    return own.fields.get("n_splits", NONE) if isinstance(own, Object) else NONE


@method(FOLDS, "split")
def _indices(made: Call) -> Value:
    """The indices of two disjoint parts, in each pass those of others."""
    of, place = made.argument(1, "X"), made.place

    def each(consumer: Consumer) -> Flow:
        for _ in range(2):
            if made.own().cls is FOLDS:
                made.emit("fold")
            pair = [Object(PART, place, {"of": of, "split": place, "number": number}) for number in range(2)]
            flow = consumer(tuple_of(pair))
            if flow is not Flow.ON:
                return flow
        return Flow.ON

    return Stream(STREAM, each, None, place)


def _taken(made: Call) -> Value:
    return Unknown("a value of a part of data", DATA)


@method(PART, "__getitem__")
def _item(made: Call) -> Value:
    shape = sizes.of_item(sizes.of(made.args[0]), made.args[1])
    return Unknown("a value of a part of data", DATA, shape=shape)


@method(PART, "__getattr__")
def _attribute(made: Call) -> Value:
    shape = sizes.of_attribute(sizes.of(made.args[0]), str(made.constant(1, "name")))
    return Unknown("a value of a part of data", DATA, shape=shape)


@method(PART, "__len__")
def _length(made: Call) -> Value:
    return Unknown(LENGTH, "int")


@method(PART, "__bool__")
def _truth(made: Call) -> Value:
    return Unknown("the truth of data", "bool")


@method(PART, "__iter__")
def _iterated(made: Call) -> Value:
    return list_of((), Unknown("an element of data", DATA))


def _with_other(made: Call) -> Value:
    other = made.args[1] if len(made.args) > 1 else Known(0)
    return computed(made.machine, [other], made.place) if isinstance(other, Tensor) else _taken(made)


for _name in "add eq floordiv ge gt le lt matmul mod mul ne pow sub truediv".split():
    method(PART, f"__{_name}__", f"__r{_name}__")(_with_other)
