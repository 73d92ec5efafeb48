"""What optimizers decay: the groups of each, and what each of their parameters is in its layer."""

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from ta_lint.events.place import Place

_NORM = re.compile(r"Norm(?:\d[dD])?$")
_BIAS = re.compile(r"(?:^|\.)(?:\w+_)?bias(?:_\w+)?$")


class Role(StrEnum):
    """What a parameter is in its layer."""

    NORM = "norm weights"
    BIAS = "biases"
    EMBEDDING = "embeddings"
    MATRIX = "weights of linear layers and convolutions"
    NETWORK = "networks of other libraries"
    """All parameters of such a network at once: it has norms or biases."""
    OTHER = "others"


def role_of(name: str, layer: str, dimensions: int, *, is_embedding: bool, is_linear: bool) -> Role:
    """The role of a parameter, by its name in the model, and the name of the class of its layer.

    `is_embedding` says that every layer that has it is an embedding, `is_linear` that its layer is a linear one or a convolution.
    """
    if dimensions <= 1 and _BIAS.search(name):
        return Role.BIAS
    if dimensions <= 1 and _NORM.search(layer):
        return Role.NORM
    if is_embedding:
        return Role.EMBEDDING
    return Role.MATRIX if is_linear and name.endswith("weight") else Role.OTHER


@dataclass(frozen=True, slots=True)
class HeldParameter:
    """A parameter that an optimizer holds."""

    name: str
    role: Role | None
    """None where no layer is known that has it."""
    trainable: bool


@dataclass(frozen=True, slots=True)
class DecayGroup:
    """A group of parameters in an optimizer, and how they decay."""

    decay: float | None
    """The weight decay; None where it is not known."""
    is_decoupled: bool | None
    """Whether it shrinks the weights directly, and not through the gradient; None where that is not known."""
    parameters: tuple[HeldParameter, ...]
    is_known: bool = True
    """Whether these are all."""

    @property
    def is_named(self) -> bool:
        """Whether the layer of each parameter is known."""
        return self.is_known and all(one.role is not None for one in self.parameters)


class HasGroups(Protocol):
    """An optimizer, as both observers know it."""

    @property
    def place(self) -> Place:
        """Where it is built."""
        ...

    @property
    def torch_class(self) -> str:
        """Its class, such as `Adam`, if it is one of torch; else empty."""
        ...

    @property
    def decays(self) -> tuple[DecayGroup, ...]:
        """Its groups; without their parameters if none of them has a weight decay."""
        ...


@dataclass(frozen=True, slots=True)
class BuiltOptimizer:
    """An optimizer that a dry run has built."""

    place: Place
    torch_class: str
    decays: tuple[DecayGroup, ...]
