"""What names say is meant: words of functions, classes and variables that do on purpose what is a mistake elsewhere."""

import re
from functools import cache

from ta_lint.core.data import read

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


def is_meant(purpose: str, *names: str) -> bool:
    """Whether the whole words of one of these names say so: those of one entry of `names.toml` together."""
    return any(one <= words for words in map(_words, names) for one in _purposes()[purpose])


def _words(name: str) -> frozenset[str]:
    """The words of `residual_gradient`, or of `ResidualGradient`."""
    return frozenset(word.lower() for word in _WORD.findall(name))


@cache
def _purposes() -> dict[str, list[frozenset[str]]]:
    table = read("names.toml", dict[str, dict[str, str]])["purposes"]
    return {purpose: [frozenset(one.split("+")) for one in said.split()] for purpose, said in table.items()}
