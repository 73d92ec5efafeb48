"""Sees averages of parameters that hang on one another by their graphs: they keep everything that they were computed from.

On thorough steps it is noted where the code loops over parameters. If it does, what lives is looked through before the
step for tensors that were made of parameters by arithmetic alone, and marked; one that later leads to a mark grows with
each step.
"""

import gc
import linecache
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from ta_runtime.facts import Average
from ta_runtime.observers.observer import Observer
from ta_runtime.probes import construction
from ta_runtime.probes.patching import Call
from ta_runtime.probes.places import Place, here

if TYPE_CHECKING:
    from ta_runtime.facts import Run
    from ta_runtime.observers.context import Context
    from ta_runtime.observers.window import Window

_MOST = 8
"""How often what lives is looked through, at 50 ms for the 170,000 objects that torch alone brings."""
_NODES = 500
"""Of one average that are visited: by then it has taken in a hundred steps or more."""
_TENSORS = (Tensor, nn.Parameter)
_ARITHMETIC = re.compile(r"(AccumulateGrad|(Add|Alias|Clone|Div|Lerp|Mul|Rsub|Sub|ToCopy)Backward\d)$")
_LOOP = re.compile(r"\bfor\b")


class Averages(Observer):
    """Watches what loops over parameters leave behind."""

    def __init__(self, session: "Context") -> None:
        super().__init__(session)
        self._key = object()
        self._looks = 0
        self._loops: list[Place] = []  # of this window, in order
        self._averages: dict[Place, Average] = {}

    def begin(self, window: "Window") -> None:
        self.detach()
        if window.thorough and self._looks < _MOST and not self.session.compilers.used:
            self._listen("named_parameters", self._note)

    def detach(self) -> None:
        super().detach()
        self._loops = []

    def before_step(self, optimizer: torch.optim.Optimizer, window: "Window") -> None:
        if not self._loops:
            return
        self._looks += 1
        graphs = nodes = 0
        grows = False
        for average in _computed(parameters := construction.held(optimizer)):
            size, earlier = self._visit(average.grad_fn, parameters, window.index)
            if size:
                graphs, nodes, grows = graphs + 1, max(nodes, size), grows or earlier
        for place in self._loops:
            found = self._averages.setdefault(place, Average(place))
            found.looks += 1
            found.others = max(found.others, graphs)
        if (graphs and not grows) or not window.index:  # a second look tells, and there is none before a step
            self.session.audit_next()
        if grows:  # an average is taken after a step, and so by the first loop
            first = self._averages[self._loops[0]]
            first.graphs, first.nodes = max(first.graphs, graphs), max(first.nodes, nodes)
        self._loops = []

    def report(self, run: "Run") -> None:
        run.averages = list(self._averages.values())

    def _note(self, call: Call) -> None:
        place = here()
        lines = linecache.getlines(place.path)[place.line - 1 : place.end_line or place.line]
        if place not in self._loops and _LOOP.search("".join(lines)):
            self._loops.append(place)

    def _visit(self, root: Any, parameters: dict[int, Tensor], step: int) -> tuple[int, bool]:
        """The nodes of a graph, none unless it is arithmetic with parameters, and whether it takes in one seen before."""
        stack, seen, earlier, leaves = [root], {root}, False, 0
        while stack and len(seen) < _NODES:
            node = stack.pop()
            if not _ARITHMETIC.match(type(node).__name__):
                return 0, False
            earlier |= node is not root and self._key in node.metadata
            leaves += id(getattr(node, "variable", None)) in parameters
            following = {above for above, _ in node.next_functions if above is not None} - seen
            stack += following
            seen |= following
        if not leaves:
            return 0, False
        grows = earlier and self._key not in root.metadata
        root.metadata[self._key] = step
        return len(seen), grows


def _computed(parameters: dict[int, Tensor]) -> Iterator[Tensor]:
    """The living tensors that have a graph and the shape of a parameter."""
    shapes = {tuple(tensor.shape) for tensor in parameters.values()}
    for value in gc.get_objects():
        if type(value) in _TENSORS:
            try:
                computed = value.grad_fn is not None and tuple(value.shape) in shapes
            except RuntimeError:  # of a function transform that is over
                continue
            if computed:
                yield value
