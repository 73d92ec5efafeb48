"""The rest of the standard library that training code uses."""

import ast

from ta_lint.dryrun.machine.call import Call
from ta_lint.dryrun.machine.calling import attempt, call
from ta_lint.dryrun.machine.library import (
    OBJECT,
    define,
    find,
    method,
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


@stub(
    "contextlib.contextmanager",
    "contextlib.asynccontextmanager",
    "functools.lru_cache",
    "functools.cache",
    "functools.wraps",
    "abc.abstractmethod",
    "typing.final",
    "typing.overload",
    "atexit.register",
    "dataclasses.field",
    "typing.cast",
)
def _itself(made: Call) -> Value:
    """A decorator that keeps its function; with arguments of its own it makes one."""
    name = getattr(made.node, "func", made.node)
    if isinstance(name, ast.Call) or not made.args or not isinstance(made.args[-1], Function):
        if "default" in made.kwargs:
            return made.kwargs["default"]
        if "default_factory" in made.kwargs:
            return attempt(made.machine, made.kwargs["default_factory"], [], made.node)
        return made.args[-1] if len(made.args) > 1 else find_itself()
    return (
        find_itself()
        if isinstance(made.node, ast.Call)
        and getattr(made.node.func, "attr", getattr(made.node.func, "id", "")) == "wraps"
        else made.args[0]
    )


def find_itself() -> Value:
    """The decorator that keeps its function."""
    return _ITSELF


@stub("ta_lint.keeps")
def _keeps(made: Call) -> Value:
    return made.args[0] if made.args else NONE


_ITSELF = find("ta_lint.keeps")


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
