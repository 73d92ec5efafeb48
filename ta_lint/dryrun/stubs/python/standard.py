"""The rest of the standard library that training code uses."""

import math

from ta_lint.dryrun.machine import iteration
from ta_lint.dryrun.machine.amounts import of_product
from ta_lint.dryrun.machine.call import Call
from ta_lint.dryrun.machine.calling import attempt, call, enter, leave
from ta_lint.dryrun.machine.library import (
    OBJECT,
    define,
    find,
    keeps,
    list_of,
    method,
    new_class,
    stub,
    table_of,
    tuple_of,
)
from ta_lint.dryrun.streams import Stream
from ta_lint.dryrun.values import (
    DATA,
    NONE,
    Bound,
    Class,
    External,
    Function,
    Known,
    Object,
    Sequence,
    Table,
    Unknown,
    Value,
    is_number,
    joined,
    options,
)


@stub("types.MethodType")
def _bound(made: Call) -> Value:
    return Bound(made.argument(1, "instance"), made.argument(0, "function"))


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
    own = made.own()
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
    own = made.own()
    own.fields["kinds"] = tuple_of(made.args[1:])
    return NONE


@method(SUPPRESS, "__suppressed__")
def _suppressed(made: Call) -> Value:
    own = made.own()
    return own.fields["kinds"]  # type: ignore[no-any-return]


NOTHING = new_class("contextlib.nullcontext")
keeps(NOTHING, "enter_result")


@method(NOTHING, "__enter__")
def _entered(made: Call) -> Value:
    return made.own().fields["enter_result"]  # type: ignore[no-any-return]


@stub("ta_lint.keeps")
def _keeps(made: Call) -> Value:
    return made.args[0] if made.args else NONE


KEEPS = find("ta_lint.keeps")
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
    return made.args[0] if made.args and isinstance(made.args[0], Function | External) else KEEPS


@stub("functools.wraps")
def _wraps(made: Call) -> Value:
    return KEEPS


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
    given = made.argument(0, "x")
    return joined([_copy_of(made, one) for one in options(given)])


def _copy_of(made: Call, value: Value) -> Value:
    deep = made.name == "deepcopy"
    names = ("__copied__",) if deep else ("__copy__", "__copied__")
    own = next(filter(None, map(value.cls.find, names)), None) if isinstance(value, Object) else None
    if own is not None:
        return call(made.machine, own, [value], {}, made.node)
    return copied(value, deep=deep) if deep or isinstance(value, Sequence | Table) else value


def copied(value: Value, done: dict[int, Value] | None = None, *, deep: bool = True) -> Value:
    """A copy of a list or dictionary, `deep` with all that is in it; any other value stays, and so does one that is inside of itself."""
    done = {} if done is None else done
    if id(value) in done or not isinstance(value, Object):
        return done.get(id(value), value)
    if not isinstance(value, Sequence | Table):
        return value.copied()
    done[id(value)] = value
    if isinstance(value, Sequence):
        items = tuple(copied(one, done) if deep else one for one in value.items)
        done[id(value)] = Sequence(value.cls, items, value.rest, value.made)
    else:
        fields = {key: copied(one, done) if deep else one for key, one in value.fields.items()}
        done[id(value)] = Table(value.cls, value.made, fields)
    return done[id(value)]


@stub("math.prod", "numpy.prod")
def _product(made: Call) -> Value:
    """The product of numbers, if all are known."""
    items, rest = iteration.collected(made.machine, made.argument(0, "iterable"), made.node)
    numbers = [one.value for one in items if is_number(one)]
    if len(made.args) == 1 and not made.kwargs and rest is None and len(numbers) == len(items):
        return Known(math.prod(numbers))
    every = [*items, *([] if rest is None else [rest])]
    of_batch = of_product(every) if len(made.args) == 1 and not made.kwargs else None
    return Unknown("a product", "int" if made.function == "math.prod" else DATA, amount=of_batch)


@stub("functools.reduce")
def _reduce(made: Call) -> Value:
    """The function is called with what it gave before and the next element."""
    items, rest = iteration.collected(made.machine, made.argument(1, "iterable"), made.node)
    values = [*made.args[2:], *items, *([] if rest is None else [rest])]
    if not values:
        return Unknown("nothing is there")
    result = values[0]
    for one in values[1:]:
        result = call(made.machine, made.args[0], [result, one], {}, made.node)
    return result


STACK = new_class("contextlib.ExitStack", "contextlib.AsyncExitStack")


@method(STACK, "__init__")
def _stack(made: Call) -> Value:
    own = made.own()
    made.machine.state.write(own.fields, "managers", list_of(()))
    return NONE


@method(STACK, "enter_context")
def _enter_context(made: Call) -> Value:
    own, manager = made.own(), made.argument(1, "cm")
    if not isinstance(manager, Object) or isinstance(manager, Stream):
        return Unknown("what a context manager gives")
    entered = own.fields["managers"]
    made.machine.state.refill(entered, (*entered.items, manager), entered.rest)
    return enter(made.machine, manager, made.node)


@method(STACK, "__exit__", "close")
def _leave_all(made: Call) -> Value:
    own = made.own()
    for manager in reversed(own.fields["managers"].items):
        leave(made.machine, manager, made.node)
    return NONE


@method(STACK, "callback", "pop_all", "push")
def _kept(made: Call) -> Value:
    return made.args[0] if made.name == "pop_all" else made.argument(1, "callback")


define(Known(3.141592653589793), "math.pi", "torch.pi", "numpy.pi")

define(Known(float("inf")), "math.inf", "torch.inf", "numpy.inf")

define(Known(False), "typing.TYPE_CHECKING", "typing_extensions.TYPE_CHECKING")


@stub(
    "time.monotonic",
    "time.perf_counter",
    "time.process_time",
    "time.time",
    "timeit.default_timer",
    "torch.cuda.Event",
)
def _clock(made: Call) -> Value:
    """A function that asks for the time measures something, perhaps."""
    made.emit("clock")
    return Unknown("a time", "float" if made.name != "Event" else None)
