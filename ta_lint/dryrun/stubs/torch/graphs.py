"""Where graphs start, in which pass of the loops around them, and whether a backward pass has freed them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from ta_lint.dryrun.machine.frame import Pass, moments
from ta_lint.dryrun.machine.machine import Machine
from ta_lint.dryrun.values import Hidden, Place

MOST_STARTS = 16
"""Starts of a graph that are known: of more, the latest."""

USED = Hidden("how a backward pass has used a graph")
FREED: Final = "freed"
KEPT: Final = "kept"
"""It went through the graph with `retain_graph`."""


class Start:
    """The first operation on leaves that take a gradient, in one pass of the loops around it. What two tensors have of it in common, a
    backward pass through one of them frees for both.
    """

    __slots__ = ("born", "in_layer", "leaves", "passes", "place", "state")

    def __init__(
        self, machine: Machine, place: Place, leaves: frozenset[Any] = frozenset(), *, is_seen: bool = True
    ) -> None:
        self.place = place
        self.leaves = leaves
        """Empty if nobody knows them."""
        self.passes = passes_of(machine)
        self.in_layer = bool(machine.layers) or not is_seen
        """Whether a layer computes it, or perhaps does, and not the program itself with the parameters."""
        self.born = next(moments)
        self.state: dict[Any, Any] = {USED: None}

    @property
    def is_freed(self) -> bool:
        """Whether a backward pass has certainly freed it."""
        return self.state[USED] is FREED

    @property
    def is_used(self) -> bool:
        """Whether a backward pass has certainly gone through it."""
        return self.state[USED] in (FREED, KEPT)

    def is_in(self, now: Pass) -> bool:
        """Whether it was made in this pass."""
        return (now.loop, now.number) in self.passes

    def is_before(self, now: Pass) -> bool:
        """Whether it was made in an earlier pass of the same loop."""
        return any(loop == now.loop and number < now.number for loop, number in self.passes)


Starts = frozenset[Start]


@dataclass(frozen=True, slots=True)
class Graph:
    """The graph of a tensor, as far as it certainly has one."""

    starts: Starts = frozenset()
    """Where it starts, on some path; empty if it may have none."""
    contains: Starts = frozenset()
    """Where it starts on all paths."""
    part: Start | None = None
    """Of one of the values that a model out of sight gives: a start of its own, as it may have no graph where the others have one."""

    def either(self, other: "Graph") -> "Graph":
        """The graph of a tensor that has this one or another."""
        if not (self.starts and other.starts):
            return NO_GRAPH
        return Graph(_latest(self.starts | other.starts), self.contains & other.contains)

    def renewed(self, machine: Machine, since: int, made: dict[Any, Any]) -> "Graph":
        """The same with a new start for each that has been made since a moment."""

        def again(start: Start) -> Start:
            if start.born < since:
                return start
            if start not in made:
                made[start] = Start(machine, start.place, start.leaves)
            return made[start]  # type: ignore[no-any-return]

        if all(one.born < since for one in self.starts):
            return self
        return Graph(frozenset(map(again, self.starts)), frozenset(map(again, self.contains)))

    def part_of(self, machine: Machine, place: Place) -> "Graph":
        """The graph of one of several values that a model out of sight gives."""
        if not self.starts:
            return self
        part = Start(machine, place, frozenset().union(*(one.leaves for one in self.starts)))
        return Graph(self.starts | {part}, self.contains | {part}, part)


NO_GRAPH = Graph()


def passes_of(machine: Machine) -> tuple[tuple[Place, int], ...]:
    """The loops around what happens now, each with the number of the pass; those in a module that runs are its own matter."""
    passes = machine.passes[: machine.around_layers] if machine.layers else machine.passes
    return tuple((one.loop, one.number) for one in passes)


def started(machine: Machine, place: Place) -> Graph:
    """The graph of a loss of which nobody knows how it is computed."""
    start = frozenset({Start(machine, place, is_seen=False)})
    return Graph(start, start)


def made_of(machine: Machine, graphs: Sequence[Graph], place: Place, leaves: frozenset[Any]) -> Graph:
    """The graph of what is computed from tensors with these, and perhaps from leaves: a pass has one start, whatever leaves join it later."""
    if not leaves and len(graphs) == 1:
        return graphs[0] if graphs[0].part is None else Graph(graphs[0].starts, graphs[0].contains)
    starts = frozenset().union(*(one.starts for one in graphs))
    contains = frozenset().union(*(one.contains for one in graphs))
    if leaves:
        now = passes_of(machine)
        if not any(one.passes == now for one in contains):
            start = Start(machine, place, leaves)
            starts, contains = starts | {start}, contains | {start}
    return Graph(_latest(starts), _latest(contains)) if starts else NO_GRAPH


def _latest(starts: Starts) -> Starts:
    return starts if len(starts) <= MOST_STARTS else frozenset(sorted(starts, key=_born)[-MOST_STARTS:])


def _born(start: Start) -> int:
    return start.born


def use(machine: Machine, graph: Graph, *, keeps: bool) -> None:
    """A backward pass goes through a graph."""
    for one in graph.starts:
        machine.state.write(one.state, USED, KEPT if keeps else FREED)
