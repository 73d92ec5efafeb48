"""What there is to iterate over."""

import ast
from collections.abc import Callable, Iterable
from functools import partial, reduce
from typing import Final

from ta_lint.dryrun.flow import Flow
from ta_lint.dryrun.machine import library
from ta_lint.dryrun.machine.calling import attempt, call
from ta_lint.dryrun.machine.counts import COUNT
from ta_lint.dryrun.machine.machine import Machine
from ta_lint.dryrun.sources import read_of
from ta_lint.dryrun.streams import Consumer, Stream
from ta_lint.dryrun.values import (
    DATA,
    NONE,
    REST,
    TRUE,
    Choice,
    Class,
    Hidden,
    Items,
    Known,
    Object,
    Sequence,
    Table,
    Unknown,
    Value,
    is_data,
    joined,
    options,
)

UNROLLED = 12
"""A list of at most so many items is gone over item by item; of a longer one the first, and one for all others."""
UNROLLED_OBJECTS = 64
"""The same for layers, parameters and other objects: what is done to one of them is not done to another."""

Elements = tuple[tuple[Value, ...], Value | None]
"""The elements that are known, and what any further one is."""


def elements(machine: Machine, value: Value, node: ast.AST) -> Elements | Stream:
    """What iteration over a value gives."""
    if isinstance(value, Sequence):
        return value.items, value.rest
    if isinstance(value, Table):
        rest = None if value.rest is None else Unknown("a key")
        return tuple(Known(key) for key, _ in value.entries()), rest
    if isinstance(value, Stream):
        return value
    if isinstance(value, Known) and isinstance(value.value, (str, tuple, list)):
        return tuple(Known(one) for one in value.value), None
    if isinstance(value, Choice):
        return _of_either(machine, value, node)
    if isinstance(value, Class) and value.is_a(library.find("enum.Enum")):  # type: ignore[arg-type]
        return tuple(
            one for one in value.fields.values() if isinstance(one, Object) and one.cls is value
        ), None
    if isinstance(value, Object):
        over = value.cls.find("__iter__")
        found = value if over is None else call(machine, over, [value], {}, node)
        if found is not value:
            return elements(machine, found, node)
        following = value.cls.find("__next__") or value.cls.find("__getitem__")
        if following is not None:
            args: list[Value] = [value] if value.cls.find("__next__") else [value, Unknown("an index", "int")]
            one = Unknown("an element")
            return Stream(
                library.STREAM,
                lambda consumer: each(((), one), lambda _: consumer(attempt(machine, following, args, node))),
            )
    if isinstance(value, Unknown):
        read = read_of(value)
        is_part = read is not None and read.key is not None  # a loop over the whole file goes over its keys
        return (), Unknown(value.why, DATA if is_data(value) else None, source=read if is_part else None)
    return (), Unknown("an element of what is not known")


def streamed(machine: Machine, value: Value, node: ast.AST) -> Elements | Stream:
    """The same, where a stream over what nobody knows says what it goes over."""
    found = elements(machine, value, node)
    if isinstance(found, Stream) or not isinstance(value, Unknown):
        return found
    return Stream(library.STREAM, lambda consumer: each(found, consumer), value, machine.place(node))


def _are_over_one(several: list[Elements | Stream]) -> bool:
    """Whether all of these go over the same, as a loader and a bar around it do."""
    return (
        len({id(one.of) if isinstance(one, Stream) and one.of is not None else id(one) for one in several})
        == 1
    )


def _of_either(machine: Machine, value: Choice, node: ast.AST) -> Elements | Stream:
    """The elements of one of several values: of lists, the first of each, the second of each, and so on."""
    several = [elements(machine, one, node) for one in value.options if one != NONE]
    if len(several) == 1 or _are_over_one(several):
        return several[0]
    lists = [Items(*one) for one in several if not isinstance(one, Stream)]
    if len(lists) == len(several) and all(one.known for one in lists):
        both = reduce(Items.either, lists)
        return both.known, both.rest
    any_one = joined([joined_elements(machine, one, node) for one in value.options])
    first = several[0]
    if isinstance(first, Stream) and all(isinstance(one, Stream) and one.of is not None for one in several):
        return Stream(library.STREAM, partial(each, ((), any_one)), first.of, machine.place(node))
    return (), any_one


def exact(found: Elements | Stream) -> bool:
    """Whether `each` gives these elements one by one, so that none stands for others."""
    return not found.settles if isinstance(found, Stream) else found[1] is None and _are_few(found[0])


def in_two(found: Elements) -> Elements:
    """The first element, and one that stands for all others."""
    items, rest = found
    others = [*items[1:], *([] if rest is None else [rest])]
    return items[:1], joined(others) if others else None


def _are_few(items: tuple[Value, ...]) -> bool:
    return len(items) <= UNROLLED or (
        len(items) <= UNROLLED_OBJECTS and all(_is_itself(one) for one in items)
    )


def _several(machine: Machine, one: Value, count: int, node: ast.AST) -> list[Value]:
    """So many of the elements that this one stands for: copies, unless it matters which is which."""
    copied = one.cls.find("__copied__") if isinstance(one, Object) and one.alike() is not None else None
    if copied is None:
        return [Unknown("one of several")] * count
    return [call(machine, copied, [one], {}, node) for _ in range(count)]


def _is_itself(value: Value, *, alike: bool = False, outer: frozenset[int] = frozenset()) -> bool:
    """Whether a value is an object with an identity, or a tuple with one, such as a name with its parameter, other than the `outer` ones; with
    `alike`, one that another may stand for as well, such as a tensor of data.
    """
    if isinstance(value, Sequence):
        inner = outer | {id(value)}
        return any(id(one) not in outer and _is_itself(one, alike=alike, outer=inner) for one in value.items)
    return isinstance(value, Object) and (alike or value.alike() is None)


def each(found: Elements | Stream, consumer: Consumer) -> Flow:
    """Give elements to a consumer: the known ones if they are few, else the first and one for all others.

    Returns how it ended: `ON` after the last, and else what the consumer said.
    """
    if isinstance(found, Stream):
        return found.each(consumer)
    items, rest = found if _are_few(found[0]) else in_two(found)
    passes = [*items, *([] if rest is None else [rest])]
    if rest is not None and not items:
        passes.append(_another(rest))
    for one in passes:
        flow = consumer(one)
        if flow is not Flow.ON:
            return flow
    return Flow.ON


def _another(value: Value, outer: frozenset[int] = frozenset()) -> Value:
    """Another element that nobody knows. What is inside itself, one of the `outer` ones, stays."""
    if isinstance(value, Sequence) and value.rest is None and id(value) not in outer:
        if any(isinstance(one, Unknown) for one in value.items):
            items = tuple(_another(one, outer | {id(value)}) for one in value.items)
            return Sequence(value.cls, items, None, value.made)
        return value
    if isinstance(value, Unknown) and value.why != COUNT:
        return Unknown(value.why, value.type, value.of, value.cuts, source=read_of(value))
    return value


def collected(
    machine: Machine, value: Value, node: ast.AST, keep: Callable[[Value], Value] | None = None
) -> Elements:
    """The elements of a value, all at once; a stream runs for that."""
    found = elements(machine, value, node)
    if isinstance(found, tuple):
        return found
    gathered: list[Value] = []
    doubt = machine.doubt
    certain = 0

    def take(one: Value) -> Flow:
        nonlocal certain
        certain += not gathered and machine.doubt == doubt
        gathered.append(one)
        return Flow.ON

    found.each(take)
    rest = gathered[certain:]
    return tuple(gathered[:certain]), joined(rest) if rest else None


def joined_elements(machine: Machine, value: Value, node: ast.AST) -> Value:
    """What any element of a value is."""
    items, rest = collected(machine, value, node)
    every = [*items, *([] if rest is None else [rest])]
    return joined(every)


def unpacked(machine: Machine, value: Value, count: int, star: int | None, node: ast.AST) -> list[Value]:
    """The parts of a value that is assigned to so many targets, of which one may have a star."""
    fitting = [one for one in options(value) if _may_fit(machine, one, count, star, node)]
    items, rest = collected(machine, joined(fitting) if fitting else value, node)
    if star is None:
        if rest is None and len(items) != count:
            return [Unknown("it does not fit")] * count
        left = count - len(items)
        if rest is not None and _is_itself(rest, alike=True) and left > 1:
            return [*items[:count], *_several(machine, rest, left, node)]
        return [*items[:count], *[rest or NONE] * left]
    behind = count - star - 1
    if rest is not None:
        any_one = joined([*items, rest])
        return [*[any_one] * star, library.list_of((), any_one), *[any_one] * behind]
    middle = items[star : len(items) - behind]
    return [*items[:star], library.list_of(middle), *items[len(items) - behind :]]


def _may_fit(machine: Machine, value: Value, count: int, star: int | None, node: ast.AST) -> bool:
    """Whether a value may have as many parts as are assigned: else the program does not go on with it."""
    if isinstance(value, Known):
        return isinstance(value.value, Iterable)
    if not isinstance(value, Object) or isinstance(value, Stream) or value.cls.node is not None:
        return True
    found = elements(machine, value, node)
    if not isinstance(found, tuple) or found[1] is not None:
        return True
    return len(found[0]) == count if star is None else len(found[0]) >= count - 1


BEGUN: Final = Hidden("it has given an element")


LATER: Final = 3
"""The element of a generator that stands for later ones, as those before it are of the first pass of a loop in it."""


def taken(machine: Machine, stream: Stream) -> Value | None:
    """The next element of a stream, None if there is none. What nobody calls is called often, and so takes later ones of a generator, too."""
    goes_on = BEGUN in stream.fields
    machine.state.write(stream.fields, BEGUN, TRUE)
    generates = stream.of is None and not stream.settles
    found = _drawn(machine, stream, LATER if goes_on and generates else 1, goes_on=goes_on)
    if generates and not goes_on and machine.entry is not None and not machine.passes:
        found = _drawn(machine, stream, LATER, goes_on=True)
    if goes_on and isinstance(found, Known):
        return Unknown("a later element", type(found.value).__name__)
    return found


def _drawn(machine: Machine, stream: Stream, number: int, *, goes_on: bool) -> Value | None:
    """An element by its number, None if there are not so many."""
    found: list[Value] = []

    def take(element: Value) -> Flow:
        found.append(element)
        return Flow.BREAK if len(found) == number else Flow.ON

    machine.draws, machine.goes_on = machine.draws + 1, machine.goes_on + goes_on
    try:
        stream.each(take)
    finally:
        machine.draws, machine.goes_on = machine.draws - 1, machine.goes_on - goes_on
    return found[-1] if len(found) == number else None


def stream_of(machine: Machine, value: Value, node: ast.AST, change: Callable[[Value], Value]) -> Value:
    """`map` of a function of ours over a value: a sequence stays one, a stream stays lazy."""
    found = elements(machine, value, node)
    if isinstance(found, Stream):
        return Stream(
            library.STREAM,
            lambda consumer: found.each(lambda one: consumer(change(one))),
            found.of,
            machine.place(node),
            settles=found.settles,
        )
    items, rest = found
    return library.list_of(map(change, items), None if rest is None else change(rest))


def keys_and_values(table: Table) -> Sequence:
    """`table.items()`."""
    pairs = [library.tuple_of([Known(key), value]) for key, value in table.entries()]
    rest = table.fields.get(REST)
    return library.list_of(pairs, None if rest is None else library.tuple_of([Unknown("a key"), rest]))
