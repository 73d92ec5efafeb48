"""Which frameworks a project pins to an old release, where rules depend on it."""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ta_lint.core.lazy import regex

# Where the dependencies of a project stand if not in its `pyproject.toml`.
_LISTS = (
    "requirements.txt",
    "setup.py",
    "setup.cfg",
    "environment.yml",
    "environment.yaml",
    "requirements/base.txt",
)
_LONGEST_LIST = 1 << 16  # bytes

# A requirement with its bounds, as pip and conda write it, and releases that rules speak of: one of them has to be allowed.
_BOUNDS = r"(?<![\w.-]){name}(?:\[[\w, -]*\])?[ \t]*([<>=~!][^#;\"'\n]*)"
_RELEASES = {
    "lightning": (
        regex(_BOUNDS.format(name="(?:pytorch[-_])?lightning")),
        ("2.0.0", "2.1.0", "2.2.0", "2.4.0", "2.6.0", "2.99.0"),
    ),
    "transformers": (
        regex(_BOUNDS.format(name="transformers")),
        ("4.46.0", "4.48.0", "4.50.0", "4.53.0", "4.57.0", "4.99.0", "5.0.0", "5.2.0", "5.99.0"),
    ),
}


def old_frameworks(tables: Mapping[str, Any], directory: str) -> frozenset[str]:
    """The frameworks of which a project asks for an old release, by its `pyproject.toml`, or else by another list.

    Old is Lightning before 2, and transformers before 4.46.
    """
    texts = (_of_tables(tables), *_of_lists(directory))
    return frozenset(name for name in _RELEASES if _is_old(name, texts))


def _is_old(name: str, texts: Iterable[str]) -> bool:
    pattern, releases = _RELEASES[name]
    for text in texts:
        if bounds := pattern.findall(text):
            return not any(_allows(bound, releases) for bound in bounds)
    return False


def _of_tables(tables: Mapping[str, Any]) -> str:
    """The requirements of a `pyproject.toml`, one a line."""
    project = tables.get("project")
    listed = project.get("dependencies") if isinstance(project, Mapping) else None
    return "\n".join(item for item in listed if isinstance(item, str)) if isinstance(listed, list) else ""


def _of_lists(directory: str) -> Iterator[str]:
    for name in _LISTS:
        path = os.path.join(directory, name)
        if not os.path.isfile(path):  # nor a pipe, which could block forever
            continue
        try:
            with open(path, "rb") as file:
                yield file.read(_LONGEST_LIST).decode("utf-8", "replace")
        except OSError:
            continue


def _allows(bound: str, releases: Iterable[str]) -> bool:
    """Whether a bound, such as `>=1.5,<2`, allows one of the releases; one that cannot be read does."""
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    text = re.sub(r"^=(?!=)", "==", bound.strip().rstrip(","))  # as conda writes it
    try:
        allowed = SpecifierSet(text)
    except InvalidSpecifier:
        return True
    return any(allowed.contains(version) for version in releases)
