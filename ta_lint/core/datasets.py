"""How many samples well-known datasets have: `ta_lint/data/datasets.toml`."""

from functools import cache

from ta_lint.core.data import read

_SWITCH = {"True": True, "False": False}


@cache
def samples_of(name: str) -> dict[bool | str, int]:
    """The numbers of samples of a dataset, such as `torchvision.datasets.MNIST`, by its argument `train` or `split`, the default first;
    empty if nobody knows. They are those of torchvision's documentation.
    """
    package, _, last = name.rpartition(".")
    table = read("datasets.toml", dict[str, dict[str, dict[str, int]]]).get(package, {}).get(last, {})
    return {_SWITCH.get(choice, choice): samples for choice, samples in table.items()}
