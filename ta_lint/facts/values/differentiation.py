"""What operations of torch do to the graph of the tensors that they are given: `data/graphs.toml`."""

from functools import cache
from typing import NamedTuple

import libcst as cst

from ta_lint.core.data import read
from ta_lint.facts.values.calls import called_name
from ta_lint.facts.values.names import Names
from ta_lint.facts.values.value import Origin
from ta_lint.syntax.tree import Node, dotted, literal_text


class Words(frozenset[str]):
    """Names, written in one line."""

    @classmethod
    def of(cls, text: str) -> "Words":
        return cls(text.split())


class Methods(NamedTuple):
    of_one: Words
    of_several: Words


class Cuts(NamedTuple):
    detaching: Words
    stepping: Words


class Integers(NamedTuple):
    """What makes integers, which have no graph."""

    results: Words
    indices: Words
    conversions: Words
    types: Words


class Joins(NamedTuple):
    functions: Words


class Losses(NamedTuple):
    of_classes: Words


class Differentiation(NamedTuple):
    """Tensor methods by what becomes of the graph, and functions that put tensors together."""

    methods: Methods
    cuts: Cuts
    integers: Integers
    joins: Joins
    losses: Losses

    @property
    def keeps(self) -> frozenset[str]:
        """The methods whose result has the graph of the tensor."""
        return self.methods.of_one | self.methods.of_several

    @property
    def steps(self) -> frozenset[str]:
        """The methods and functions whose result has no gradient, as it is constant but for jumps."""
        return self.cuts.stepping | self.integers.results


@cache
def differentiation() -> Differentiation:
    return read("graphs.toml", Differentiation)


def is_integer(origin: Origin, names: Names) -> bool:
    """Whether torch makes a value as integers or booleans, or the part of it that is meant: `x.max(1)[1]`, `x.long()`, `x > 0`.

    No integer has a graph.
    """
    node, path = origin.node, origin.path
    if isinstance(node, cst.Comparison):
        return True
    if not isinstance(node, cst.Call):
        return False
    qualified, name = names.qualified(node.func), called_name(node)
    is_method = qualified is None and isinstance(node.func, cst.Attribute)
    if not is_method and not (qualified or "").startswith("torch."):
        return False
    integers = differentiation().integers
    if path[:1] in ((1,), (-1,), ("indices",)) and name in integers.indices:
        return True
    if is_method and name in integers.conversions:
        return any(_is_integer_type(arg.value) for arg in node.args)
    return name in integers.results


def _is_integer_type(node: Node) -> bool:
    """Whether a node is an integer type: `torch.long`, `torch.int64`, `"torch.LongTensor"`."""
    name = literal_text(node) or dotted(node) or ""
    return name.rpartition(".")[2] in differentiation().integers.types
