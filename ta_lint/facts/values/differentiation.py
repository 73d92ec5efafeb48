"""What operations of torch do to the graph of the tensors that they are given: `data/graphs.toml`."""

from functools import cache
from typing import NamedTuple

from ta_lint.core.data import read


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


class Joins(NamedTuple):
    functions: Words


class Losses(NamedTuple):
    of_classes: Words


class Differentiation(NamedTuple):
    """Tensor methods by what becomes of the graph, and functions that put tensors together."""

    methods: Methods
    cuts: Cuts
    joins: Joins
    losses: Losses

    @property
    def keeps(self) -> frozenset[str]:
        """The methods whose result has the graph of the tensor."""
        return self.methods.of_one | self.methods.of_several


@cache
def differentiation() -> Differentiation:
    return read("graphs.toml", Differentiation)
