"""Functions that make something to iterate over, or go over it."""

import ast
from functools import partial

from ta_lint.dryrun.flow import Flow
from ta_lint.dryrun.machine import iteration
from ta_lint.dryrun.machine.amounts import gone_over
from ta_lint.dryrun.machine.batches import END, STEP
from ta_lint.dryrun.machine.call import Call
from ta_lint.dryrun.machine.calling import call
from ta_lint.dryrun.machine.counts import BOUND, COUNT, LENGTH, limit_passes, number_of
from ta_lint.dryrun.machine.library import (
    STREAM,
    list_of,
    method,
    once,
    stub,
    tuple_of,
)
from ta_lint.dryrun.machine.machine import Machine
from ta_lint.dryrun.machine.objects import truth
from ta_lint.dryrun.machine.operators import binary
from ta_lint.dryrun.streams import Consumer, Stream
from ta_lint.dryrun.values import (
    FALSE,
    NONE,
    Class,
    Hidden,
    Known,
    Object,
    Sequence,
    Unknown,
    Value,
    join,
    joined,
)

_FEW = 3
"""A `range` of at most so many numbers is gone over number by number."""
_FEW_INSIDE = 12
"""The same in a loop that has no loop inside."""


@stub("builtins.range")
def _range(made: Call) -> Value:
    bounds = [number_of(one) for one in made.args]
    if len(bounds) > 1:
        made.emit("start", None, at=made.args[0])
    if bounds and None not in bounds:
        try:
            numbers = range(*bounds)  # type: ignore[arg-type]
        except (TypeError, ValueError):
            return Unknown("a range that does not fit")
        if len(numbers[: _FEW + 1]) <= _FEW:
            listed = list_of(map(Known, numbers))
            listed.fields[BOUND] = Known(len(numbers))
            return listed
        first: Value = Known(numbers[0])
        few = tuple(map(Known, numbers)) if len(numbers[: _FEW_INSIDE + 1]) <= _FEW_INSIDE else None
        count: Value = Known(numbers.index(numbers[-1]) + 1)  # `len` fails for very many
    else:
        few, count = None, Unknown(LENGTH, "int")
        first = Known(0) if len(bounds) == 1 else made.args[0] if made.args else Unknown("a number", "int")

    def each(consumer: Consumer) -> Flow:
        for element in (first, Unknown(COUNT, "int")):
            flow = consumer(element)
            if flow is not Flow.ON:
                return flow
        return Flow.ON

    result = Stream(RANGE, each, None, made.place)
    result.few = few
    result.fields[NUMBERS] = count
    if len(bounds) == 3:
        result.fields[STEP] = made.args[2]
        result.fields[END] = made.args[1]
    if len(bounds) == 1:
        result.fields[BOUND] = made.args[0]
    elif len(bounds) == 2 and isinstance(made.args[0], Known):
        result.fields[BOUND] = binary(made.machine, ast.Sub(), made.args[1], made.args[0], made.node)
    elif len(bounds) == 2:  # from where a run resumes
        result.fields[BOUND] = made.args[1]
    return result


RANGE = Class("range", (STREAM,))
NUMBERS = Hidden("how many numbers a range has")


@method(RANGE, "__len__")
def _numbers(made: Call) -> Value:
    known: Value = made.own().fields[NUMBERS]
    return known


@stub("builtins.enumerate", "tqdm.contrib.tenumerate")
def _enumerate(made: Call) -> Value:
    start = made.constant(1, "start", 0)
    found = iteration.streamed(made.machine, made.argument(0, "iterable"), made.node)
    if isinstance(found, tuple):
        items, rest = found
        numbered = [
            tuple_of([Known(start + index) if isinstance(start, int) else Unknown("a number", "int"), one])
            for index, one in enumerate(items)
        ]
        return list_of(numbered, None if rest is None else tuple_of([Unknown(COUNT, "int"), rest]))
    over = found

    def each(consumer: Consumer) -> Flow:
        number = -1

        def numbered(element: Value) -> Flow:
            nonlocal number
            number += 1
            known = number == 0 and isinstance(start, int)
            return consumer(tuple_of([Known(start) if known else Unknown(COUNT, "int"), element]))

        return over.each(numbered)

    result = Stream(STREAM, each, over.of, made.place, settles=over.settles)
    if BOUND in over.fields:
        result.fields[BOUND] = over.fields[BOUND]
    return result


def _turned(rows: list[iteration.Elements]) -> Value:
    """`zip(*rows)`, where the last row stands for more of them."""
    count = min(len(items) for items, _ in rows)
    *known, last = rows
    columns = [tuple_of([items[index] for items, _ in known], last[0][index]) for index in range(count)]
    further = [rest for _, rest in rows if rest is not None]
    return list_of(columns, tuple_of((), joined(further)) if further else None)


@stub("builtins.zip", "itertools.zip_longest", "tqdm.contrib.tzip")
def _zip(made: Call) -> Value:
    for one in made.args:
        gone_over(made.machine, one, made.node)
    found = [iteration.elements(made.machine, one, made.node) for one in made.args]
    stream = next((one for one in found if isinstance(one, Stream)), None)
    if made.loose and stream is None and found:
        return _turned(found)  # type: ignore[arg-type]
    if stream is None:
        lists = [one for one in found if isinstance(one, tuple)]
        short = min((len(items) for items, rest in lists if rest is None), default=0)
        rows = [
            tuple_of([items[index] if index < len(items) else rest or NONE for items, rest in lists])
            for index in range(short)
        ]
        if all(rest is not None for _, rest in lists) and lists:
            return list_of(
                rows, tuple_of([joined([*items, rest]) for items, rest in lists if rest is not None])
            )
        return list_of(rows)
    position = found.index(stream)
    counts = [len(one[0]) for one in found if isinstance(one, tuple) and one[1] is None]
    over, least = stream, min(counts, default=None)

    def each(consumer: Consumer) -> Flow:
        number, ended = 0, False

        def row(element: Value) -> Flow:
            nonlocal number, ended
            number += 1
            parts = [
                element if index == position else
                iteration.taken(made.machine, one) if isinstance(one, Stream) else
                joined([*one[0], *([] if one[1] is None else [one[1]])])
                for index, one in enumerate(found)
            ]  # fmt: skip
            known = [one for one in parts if one is not None]
            ended = len(known) < len(parts) or (least is not None and number > least)
            return Flow.BREAK if ended else consumer(tuple_of(known))

        flow = Flow.ON if least == 0 else over.each(row)
        return Flow.ON if ended else flow

    result = Stream(STREAM, each, over.of, made.place, settles=over.settles)
    result.fields[BOUND] = Unknown("the least of several lengths", "int")
    return result


@stub("builtins.iter")
def _iterator(made: Call) -> Value:
    value = made.argument(0, "iterable")
    if isinstance(value, Stream):
        return value
    found = iteration.elements(made.machine, value, made.node)
    return found if isinstance(found, Stream) else list_of(*found)


@stub("builtins.reversed")
def _reversed(made: Call) -> Value:
    items, rest = iteration.collected(made.machine, made.argument(0, "iterable"), made.node)
    return list_of(reversed(items)) if rest is None else list_of((), joined([*items, rest]))


@stub("builtins.sorted")
def _sorted(made: Call) -> Value:
    items, rest = iteration.collected(made.machine, made.argument(0, "iterable"), made.node)
    return in_order(items, rest, dict(made.kwargs))


def in_order(items: tuple[Value, ...], rest: Value | None, how: dict[str, Value]) -> Sequence:
    """A sorted list: constants are compared, and of other values nobody knows the order."""
    reverse = how.pop("reverse", FALSE)
    if (
        rest is None
        and not how
        and isinstance(reverse, Known)
        and all(isinstance(one, Known) for one in items)
    ):
        try:
            return list_of(map(Known, sorted((one.value for one in items), reverse=bool(reverse.value))))  # type: ignore[attr-defined]
        except TypeError:
            pass
    if rest is None and len(items) < 2:
        return list_of(items)
    return list_of([joined(items)] * len(items)) if rest is None else list_of((), joined([*items, rest]))


@stub("builtins.next")
def _next(made: Call) -> Value:
    value = made.argument(0, "iterator")
    made.emit("next", value)
    if isinstance(value, Object) and (own := value.cls.find("__next__")) is not None:
        return call(made.machine, own, [value], {}, made.node)
    found = iteration.elements(made.machine, value, made.node)
    if isinstance(found, tuple):
        items, rest = found
        return (
            items[0]
            if items
            else rest or (made.args[1] if len(made.args) > 1 else Unknown("the next element"))
        )
    return iteration.taken(made.machine, found) or Unknown("the next element")


@stub("builtins.map")
def _map(made: Call) -> Value:
    if len(made.args) != 2:
        return list_of((), Unknown("an element"))
    function = made.args[0]
    return iteration.stream_of(
        made.machine, made.args[1], made.node, lambda one: call(made.machine, function, [one], {}, made.node)
    )


@stub("builtins.filter")
def _filter(made: Call) -> Value:
    function = made.argument(0, "function")
    items, rest = iteration.collected(made.machine, made.argument(1, "iterable"), made.node)
    kept: list[Value] = []
    for one in items:
        said = one if function == NONE else call(made.machine, function, [one], {}, made.node)
        verdict = truth(made.machine, said, made.node)
        if verdict is True:
            kept.append(one)
        elif verdict is None:
            rest = one if rest is None else join(rest, one)
    return once(list_of(kept, rest))


@stub("itertools.chain", "itertools.chain.from_iterable")
def _chain(made: Call) -> Value:
    items: list[Value] = []
    rest: Value | None = None
    for one in made.args:
        known, more = iteration.collected(made.machine, one, made.node)
        items += known
        rest = more if rest is None else rest if more is None else join(rest, more)
    return once(list_of(items, rest))


@stub("itertools.cycle", "itertools.islice")
def _on_and_on(made: Call) -> Value:
    found = iteration.elements(made.machine, made.argument(0, "iterable"), made.node)
    if isinstance(found, Stream) and made.name == "cycle":
        made.emit("keep", found.of)
    elif isinstance(found, Stream) and isinstance(made.node, ast.Call) and len(made.args) == 2:
        limit_passes(made.machine, made.node, made.node.args[-1], found.of)
    if not isinstance(found, Stream):
        return list_of(*found)
    each = partial(_again, made.machine, found) if made.name == "cycle" else found.each
    result = Stream(STREAM, each, found.of, found.made, settles=found.settles)
    is_first = made.name == "islice" and len(made.args) == 2
    result.fields[BOUND] = made.args[1] if is_first else Unknown("how many there are", "int")
    return result


def _again(machine: Machine, stream: Stream, consumer: Consumer) -> Flow:
    """The elements of a stream, and for who takes them one by one, after the end the last again."""
    given: list[Value] = []

    def keep(element: Value) -> Flow:
        given[:] = [element]
        return consumer(element)

    flow = stream.each(keep)
    return consumer(given[0]) if flow is Flow.ON and given and machine.draws else flow


@stub("itertools.count")
def _count(made: Call) -> Value:
    return _range(Call(made.machine, made.node, [made.argument(0, "start", 0), Unknown("no end", "int")]))


@stub(
    "itertools.combinations",
    "itertools.combinations_with_replacement",
    "itertools.pairwise",
    "itertools.permutations",
)
def _rows(made: Call) -> Value:
    """Tuples of elements."""
    one = iteration.joined_elements(made.machine, made.argument(0, "iterable"), made.node)
    count = 2 if made.name == "pairwise" else made.constant(1, "r")
    return list_of((), tuple_of([one] * count) if isinstance(count, int) and count < 9 else tuple_of((), one))


@stub("itertools.product")
def _product(made: Call) -> Value:
    """A tuple with an element of each."""
    return list_of(
        (), tuple_of([iteration.joined_elements(made.machine, one, made.node) for one in made.args])
    )


@stub(
    "itertools.accumulate",
    "itertools.compress",
    "itertools.dropwhile",
    "itertools.filterfalse",
    "itertools.takewhile",
)
def _some(made: Call) -> Value:
    over = (
        made.args[1]
        if made.name in ("dropwhile", "filterfalse", "takewhile") and len(made.args) > 1
        else made.argument(0, "iterable")
    )
    return list_of((), iteration.joined_elements(made.machine, over, made.node))


@stub("itertools.repeat")
def _repeat(made: Call) -> Value:
    times = made.constant(1, "times")
    value = made.argument(0, "object")
    if isinstance(times, int) and times <= iteration.UNROLLED:
        return list_of([value] * times)
    return list_of((), value)


@stub("itertools.starmap")
def _starmap(made: Call) -> Value:
    function = made.args[0]

    def each(one: Value) -> Value:
        items, rest = iteration.collected(made.machine, one, made.node)
        return call(made.machine, function, list(items), {}, made.node, loose=rest is not None)

    return iteration.stream_of(made.machine, made.args[1], made.node, each)


@stub("random.sample", "random.choices")
def _drawn(made: Call) -> Value:
    """Some of the items, nobody knows which."""
    return list_of((), iteration.joined_elements(made.machine, made.argument(0, "population"), made.node))
