"""The rest of the standard library that training code uses."""

from ta_lint.dryrun.machine import iteration
from ta_lint.dryrun.machine.call import Call
from ta_lint.dryrun.machine.calling import attempt, call
from ta_lint.dryrun.machine.library import (
    OBJECT,
    define,
    find,
    method,
    new_class,
    stub,
    table_of,
    tuple_of,
)
from ta_lint.dryrun.values import (
    NONE,
    Class,
    Function,
    Known,
    Object,
    Sequence,
    Table,
    Unknown,
    Value,
)


@stub("functools.partial")
def _partial(made: Call) -> Value:
    return Object(
        PARTIAL,
        made.place,
        {"function": made.args[0], "args": tuple_of(made.args[1:]), "kwargs": table_of(dict(made.kwargs))},
    )


PARTIAL = Class("functools.partial", (OBJECT,))


@method(PARTIAL, "__call__")
def _call_partial(made: Call) -> Value:
    own = made.args[0]
    assert isinstance(own, Object)
    kwargs = {**dict(own.fields["kwargs"].entries()), **made.kwargs}
    return call(
        made.machine,
        own.fields["function"],
        [*own.fields["args"].items, *made.args[1:]],
        kwargs,
        made.node,
        loose=made.loose,
    )


SUPPRESS = new_class("contextlib.suppress")


@method(SUPPRESS, "__init__")
def _suppress(made: Call) -> Value:
    own = made.args[0]
    assert isinstance(own, Object)
    own.fields["kinds"] = tuple_of(made.args[1:])
    return NONE


@method(SUPPRESS, "__suppressed__")
def _suppressed(made: Call) -> Value:
    own = made.args[0]
    assert isinstance(own, Object)
    return own.fields["kinds"]  # type: ignore[no-any-return]


@stub("functools.reduce")
def _reduce(made: Call) -> Value:
    items, rest = iteration.collected(made.machine, made.argument(1, "iterable"), made.node)
    parts = [*items, *([] if rest is None else [rest])]
    value = made.args[2] if len(made.args) > 2 else parts.pop(0) if parts else Unknown("nothing is there")
    for one in parts:
        value = call(made.machine, made.args[0], [value, one], {}, made.node)
    return value


@stub("ta_lint.keeps")
def _keeps(made: Call) -> Value:
    return made.args[0] if made.args else NONE


_KEEPS = find("ta_lint.keeps")
"""The decorator that leaves its function as it is."""


@stub(
    "contextlib.contextmanager",
    "contextlib.asynccontextmanager",
    "functools.lru_cache",
    "functools.cache",
    "abc.abstractmethod",
    "typing.final",
    "typing.overload",
    "atexit.register",
)
def _itself(made: Call) -> Value:
    """A decorator that keeps its function; with options it makes one that does."""
    return made.args[0] if made.args and isinstance(made.args[0], Function) else _KEEPS


@stub("functools.wraps")
def _wraps(made: Call) -> Value:
    return _KEEPS


@stub("dataclasses.field")
def _field(made: Call) -> Value:
    if "default_factory" in made.kwargs:
        return attempt(made.machine, made.kwargs["default_factory"], [], made.node)
    return made.kwargs.get("default", Unknown("a field without a default"))


@stub("typing.cast")
def _cast(made: Call) -> Value:
    return made.argument(1, "val")


@stub("copy.deepcopy", "copy.copy")
def _copy(made: Call) -> Value:
    value = made.argument(0, "x")
    own = value.cls.find("__copied__") if isinstance(value, Object) else None
    if own is not None:
        return call(made.machine, own, [value], {}, made.node)
    return copied(value)


def copied(value: Value) -> Value:
    """A copy of a list or dictionary, with all that is in it; any other value stays."""
    if isinstance(value, Sequence):
        return Sequence(value.cls, tuple(copied(one) for one in value.items), value.rest, value.made)
    if isinstance(value, Table):
        return Table(value.cls, value.made, {key: copied(one) for key, one in value.fields.items()})
    return value


@stub("math.sqrt", "math.log", "math.exp", "math.cos", "math.sin", "math.ceil", "math.floor", "math.pow", "time.time", "time.perf_counter", "random.random", "random.uniform", "random.gauss")  # fmt: skip
def _number(made: Call) -> Value:
    return Unknown("a number", "float")


@stub("random.randint", "random.randrange", "math.prod", "os.cpu_count")
def _integer(made: Call) -> Value:
    return Unknown("a number", "int")


define(Known(3.141592653589793), "math.pi", "torch.pi", "numpy.pi")

define(Known(float("inf")), "math.inf", "torch.inf", "numpy.inf")
