"""Comprehensions and generator expressions."""

import ast
from collections.abc import Callable
from typing import Any

from ta_lint.dryrun.flow import Flow
from ta_lint.dryrun.machine import library
from ta_lint.dryrun.machine.assigning import assign
from ta_lint.dryrun.machine.conditions import decide
from ta_lint.dryrun.machine.frame import Frame, Pass
from ta_lint.dryrun.machine.iteration import UNROLLED, Elements, elements
from ta_lint.dryrun.machine.last_batches import KEPT, used
from ta_lint.dryrun.machine.machine import Machine
from ta_lint.dryrun.machine.tables import evaluate, evaluates
from ta_lint.dryrun.streams import Stream
from ta_lint.dryrun.values import REST, Known, Sequence, Table, Unknown, Value, join, joined

MOST_ENTRIES = 200
"""Of a list or dictionary that is written down. A longer one is a table of constants, and only what an entry may be is kept."""


def INSIDE(value: Value) -> Flow:
    """The consumer of the frame of a comprehension: what is yielded or bound there is of the frame around it."""
    return Flow.ON


@evaluates(ast.ListComp, ast.SetComp)
def _list(machine: Machine, node: ast.ListComp, frame: Frame) -> Value:
    return _collected(machine, node, frame, None)


def _collected(machine: Machine, node: Any, frame: Frame, over: Elements | Stream | None) -> Value:
    items, certain = _gathered(machine, node, frame, lambda inner: evaluate(machine, node.elt, inner), over)
    cls = library.SET if isinstance(node, ast.SetComp) else library.LIST
    if certain:
        return Sequence(cls, tuple(items), None, machine.place(node))
    first = items[:-1] if certain is None else []
    rest = joined(items[len(first) :]) if items else Unknown("an element")
    return Sequence(cls, tuple(first), rest, machine.place(node))


@evaluates(ast.GeneratorExp)
def _generator(machine: Machine, node: ast.GeneratorExp, frame: Frame) -> Value:
    first = elements(machine, evaluate(machine, node.generators[0].iter, frame), node)
    if isinstance(first, Stream) and not (first.few is not None and len(node.generators) == 1):
        over = first

        def run(consumer: Callable[[Value], Flow]) -> Flow:
            inner = Frame(frame.file, frame, frame.function, frame.owner)
            inner.consumer = INSIDE

            def one(element: Value) -> Flow:
                assign(machine, node.generators[0].target, element, inner)
                for test in node.generators[0].ifs:
                    evaluate(machine, test, inner)
                items: list[Value] = []
                _nested(machine, node, 1, inner, lambda deep: evaluate(machine, node.elt, deep), items)
                for item_ in items:
                    flow = consumer(item_)
                    if flow is not Flow.ON:
                        return flow
                return Flow.ON

            return over.each(one)

        return Stream(library.STREAM, run, over.of, machine.place(node), settles=over.settles)
    return library.once(_collected(machine, node, frame, first))


@evaluates(ast.DictComp)
def _dict_of(machine: Machine, node: ast.DictComp, frame: Frame) -> Value:
    pairs, certain = _gathered(
        machine, node, frame,
        lambda inner: library.tuple_of([evaluate(machine, node.key, inner), evaluate(machine, node.value, inner)]),
    )  # fmt: skip
    table = Table(library.DICT, machine.place(node))
    for pair in pairs:
        assert isinstance(pair, Sequence)
        key, value = pair.items
        at = key.value if certain and isinstance(key, Known) else REST
        table.fields[at] = value if at not in table.fields else join(table.fields[at], value)
    return table


def _gathered(
    machine: Machine,
    node: Any,
    frame: Frame,
    result: Callable[[Frame], Value],
    over: Elements | Stream | None = None,
) -> tuple[list[Value], bool | None]:
    """The values that a comprehension makes, and whether these are all, each once; None if the last stands for more of them.

    `over` is what it goes over, if that is evaluated already.
    """
    inner = Frame(frame.file, frame, frame.function, frame.owner)
    inner.consumer = INSIDE
    items: list[Value] = []
    certain = _nested(machine, node, 0, inner, result, items, over)
    return items, certain


def _nested(
    machine: Machine,
    node: Any,
    index: int,
    inner: Frame,
    result: Callable[[Frame], Value],
    items: list[Value],
    over: Elements | Stream | None = None,
) -> bool | None:
    """The loops of a comprehension from this one on; returns what `_gathered` says."""
    if index == len(node.generators):
        item = result(inner)
        used(machine, (item,), node, KEPT)
        items.append(item)
        return True
    generator = node.generators[index]
    found = over or elements(machine, evaluate(machine, generator.iter, inner), generator.iter)
    if isinstance(found, Stream) and found.few is not None and len(node.generators) == 1:
        found = found.few, None
    certain: bool | None = isinstance(found, tuple) and found[1] is None and len(found[0]) <= MOST_ENTRIES
    chosen = True

    def one(element: Value) -> Flow:
        nonlocal certain, chosen
        machine.step()
        assign(machine, generator.target, element, inner)
        for test in generator.ifs:
            holds = decide(machine, test, inner)
            if holds is False:
                return Flow.ON
            certain = certain and holds is True
            chosen = chosen and holds is True
        certain = _nested(machine, node, index + 1, inner, result, items) and certain
        return Flow.ON

    if isinstance(found, Stream):
        number = 0

        def counted(element: Value) -> Flow:
            nonlocal number
            over, site = found if found.of is None else found.of, machine.frames[-1].site
            machine.passes.append(
                Pass(machine.place(node), number, over, not found.settles, doubt=machine.doubt, site=site)
            )
            number += 1
            try:
                return one(element)
            finally:
                machine.passes.pop()

        found.each(counted)
        return None if chosen and len(node.generators) == 1 else False
    known, rest = found
    for element in known if certain else known[: UNROLLED * 4]:
        one(element)
    if rest is None:
        return certain
    machine.passes.append(
        Pass(machine.place(node), 0, rest, doubt=machine.doubt, site=machine.frames[-1].site)
    )
    one(rest)
    machine.passes.pop()
    return None if chosen and len(known) <= UNROLLED * 4 and len(node.generators) == 1 else False
