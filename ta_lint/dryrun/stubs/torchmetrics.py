"""`torchmetrics`: a metric is a module without parameters; it computes outside of the graph."""

from ta_lint.dryrun.machine.call import Call
from ta_lint.dryrun.machine.frame import Frame
from ta_lint.dryrun.machine.library import family, method, new_class
from ta_lint.dryrun.stubs.torch import dtypes
from ta_lint.dryrun.stubs.torch.modules import MODULE
from ta_lint.dryrun.stubs.torch.rows import FOLLOWS, Row
from ta_lint.dryrun.stubs.torch.shapes import unknown
from ta_lint.dryrun.stubs.torch.tensors import Facts, Tensor
from ta_lint.dryrun.values import NONE, Native, Object, Unknown, Value

METRIC = new_class("torchmetrics.Metric", "torchmetrics.metric.Metric", bases=(MODULE,))


@method(METRIC, "__init__", "add_state")
def _kept(made: Call) -> Value:
    return NONE


@method(METRIC, "reset", "update")
def _gathers(made: Call) -> Value:
    _happens(made, made.name)
    return NONE


def _happens(made: Call, how: str) -> None:
    """Something is done with a metric, which has a name."""
    own = made.own()
    named = [item for frame in reversed(made.machine.frames) for item in _names(frame)]
    name = next((name for name, value in named if value is own), "")
    made.emit("metric", own, how=how, name=name)


def _names(frame: Frame) -> list[tuple[str, Value]]:
    """The variables of a frame, and the attributes of its object."""
    own = frame.receiver.fields if isinstance(frame.receiver, Object) else {}
    return [*frame.names.items(), *own.items()]


@method(METRIC, "__call__", "forward")
def _value(made: Call) -> Value:
    """The value of this batch, by the class of the program if it defines one."""
    _happens(made, "other")
    return Tensor(Facts(), made.place)


@method(METRIC, "compute")
def _computed(made: Call) -> Value:
    _happens(made, "compute")
    return Tensor(Facts(), made.place)


COLLECTION = new_class(
    "torchmetrics.MetricCollection", "torchmetrics.collections.MetricCollection", bases=(METRIC,)
)


@method(COLLECTION, "__call__", "compute", "forward")
def _several(made: Call) -> Value:
    return Unknown("the values of several metrics", "values")


@method(COLLECTION, "clone")
def _cloned(made: Call) -> Value:
    own = made.args[0]
    return Object(own.cls, made.place, dict(own.fields)) if isinstance(own, Object) else own


_FUNCTION = Row(FOLLOWS, unknown, dtypes.unknown, "")


def _of_torchmetrics(name: str) -> Value | None:
    """A class of a metric, or a function of `torchmetrics.functional`, which autograd may go through."""
    last = name.rpartition(".")[2]
    if last[:1].isupper() and not last.isupper():
        return new_class(name, bases=(METRIC,))
    return Native(name, _FUNCTION.run) if ".functional." in name and name.count(".") <= 3 else None


family("torchmetrics.", _of_torchmetrics)
