"""A walk through an autograd graph, from a loss to the parameters: on thorough steps alone, at a microsecond a node.

Nodes are marked in their `metadata`, a dictionary that torch keeps with each: it dies with the node, and holds nothing of ours
but the number of a step.
"""

from collections.abc import Hashable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor, nn
from torch.autograd.function import BackwardCFunction

MOST = 20_000
"""Nodes that are visited: a transformer of 24 blocks has 1,100."""
_LEAF = "AccumulateGrad"
_FLAT = frozenset(
    {"CeilBackward0", "FloorBackward0", "RoundBackward0", "RoundBackward1", "SignBackward0", "TruncBackward0"}
)
"""What hands on a gradient of zero, whatever it is given."""


@dataclass(slots=True)
class GraphTraversal:
    """What a graph leads to. Leaves are ids of what can be learned."""

    through: set[int] = field(default_factory=set)
    """Leaves to which a gradient other than zero can come."""
    stepped: set[int] = field(default_factory=set)
    """Leaves behind rounding and its kin; they may be in `through` as well."""
    earlier: set[int] = field(default_factory=set)
    """The steps whose graphs it goes into."""
    own: set[int] = field(default_factory=set)
    """Leaves that this step's part of the graph uses."""
    carried: set[int] = field(default_factory=set)
    """Leaves that the parts of earlier steps use."""
    opaque: bool = False
    """Whether it meets a function written in Python, which may go back by itself, or is too large to be seen whole."""

    @property
    def recurs(self) -> bool:
        """Whether what ran in this step also ran in the earlier ones whose graphs it goes into."""
        return not self.own.isdisjoint(self.carried)


def walk(
    root: Any, key: Hashable, step: int, *, marking: bool, others: AbstractSet[int] = frozenset()
) -> GraphTraversal:
    """Follow the graph above `root`, a node, and with `marking` note `step` in the metadata of each node that is new.

    Leaves are parameters, and what else has one of the ids in `others`.
    """
    found = GraphTraversal()
    stack, behind, seen = [root], [], {root}
    leaves = found.through
    while stack and len(seen) < MOST:
        node = stack.pop()
        at = node.metadata.get(key, step)
        if at < step:
            found.earlier.add(at)
        elif marking:
            node.metadata[key] = step
        found.opaque |= isinstance(node, BackwardCFunction)
        used = found.carried if at < step else found.own
        flat = type(node).__name__ in _FLAT and leaves is found.through
        for above, _ in node.next_functions:
            if above is None:
                continue
            if type(above).__name__ == _LEAF:
                leaf = above.variable
                if isinstance(leaf, nn.Parameter) or id(leaf) in others:
                    used.add(id(leaf))
                    (found.stepped if flat else leaves).add(id(leaf))
            elif flat:
                behind.append(above)
            elif above not in seen:
                seen.add(above)
                stack.append(above)
        if not stack and behind:  # what is left can be come to by a function that is flat alone
            stack, behind, leaves = (
                [above for above in dict.fromkeys(behind) if above not in seen],
                [],
                found.stepped,
            )
            seen.update(stack)
    found.opaque |= bool(stack)
    return found


def leaves(tensor: Tensor) -> Iterator[Tensor]:
    """What a backward pass from here brings a gradient to: each once, in the order of the graph."""
    if tensor.grad_fn is None:
        return
    stack, seen = [tensor.grad_fn], {tensor.grad_fn}
    while stack and len(seen) < MOST:
        node: Any = stack.pop()
        if type(node).__name__ == _LEAF:
            yield node.variable
        for above, _ in node.next_functions:
            if above is not None and above not in seen:
                seen.add(above)
                stack.append(above)
