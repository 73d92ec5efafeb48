"""Replaced parts of torchvision and their replacements: `ta_lint/data/torchvision.toml`."""

from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

from ta_lint.core.data import read

_MODELS = "torchvision.models"

# All functions of this module have moved to its successor.
_MOVED = "torchvision.transforms.functional_tensor"


class Builder(NamedTuple):
    """A function that builds a model, and the full names of the weights that `pretrained=True` means."""

    weights: str | None
    backbone: str | None


class _Data(NamedTuple):
    weights: Mapping[str, Mapping[str, str]]
    backbone_weights: Mapping[str, Mapping[str, str]]
    successors: Mapping[str, str]
    renamed_parameters: Mapping[str, Mapping[str, str]]


@cache
def _data() -> _Data:
    return read("torchvision.toml", _Data)


def builder(qualified: str) -> Builder | None:
    """The model builder of this full name: where torchvision exports it, or where it is defined."""
    package, _, name = qualified.rpartition(".")
    if package not in _data().weights:
        package = package.rpartition(".")[0]
    weights = _data().weights.get(package, {}).get(name)
    if weights is None:
        return None
    backbone = _data().backbone_weights.get(package, {}).get(name)
    return Builder(
        f"{package}.{weights}" if weights else None,
        f"{_MODELS}.{backbone}" if backbone else None,
    )


@cache
def gone() -> frozenset[str]:
    """The last parts of the removed names."""
    return frozenset(name.rpartition(".")[2] for name in _data().successors)


def successor(qualified: str) -> str | None:
    """The replacement of a name that torchvision has removed."""
    package, _, name = qualified.rpartition(".")
    if package == _MOVED and name[:1].islower():
        return f"{_data().successors[package]}.{name}"
    return _data().successors.get(qualified)


def renamed_parameters(qualified: str) -> Mapping[str, str]:
    """The renamed parameters of a function: old name to new name."""
    return _data().renamed_parameters.get(qualified, {})
