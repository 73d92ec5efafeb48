"""Which release of a framework a project pins, where rules depend on it."""

import os
import re
from collections.abc import Iterator, Mapping
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

# A requirement with its bounds, as pip and conda write it.
_LIGHTNING = regex(r"(?<![\w.-])(?:pytorch[-_])?lightning(?:\[[\w, -]*\])?[ \t]*([<>=~!][^#;\"'\n]*)")
_LATER = ("2.0.0", "2.1.0", "2.2.0", "2.4.0", "2.6.0", "2.99.0")


def pins_lightning_1(tables: Mapping[str, Any], directory: str) -> bool:
    """Whether a project asks for a release of Lightning before 2, by its `pyproject.toml`, or else by another list."""
    for text in (_of_tables(tables), *_of_lists(directory)):
        if bounds := _LIGHTNING.findall(text):
            return not any(_allows_2(bound) for bound in bounds)
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


def _allows_2(bound: str) -> bool:
    """Whether a bound, such as `>=1.5,<2`, allows a release from 2.0 on; one that cannot be read does."""
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    text = re.sub(r"^=(?!=)", "==", bound.strip().rstrip(","))  # as conda writes it
    try:
        allowed = SpecifierSet(text)
    except InvalidSpecifier:
        return True
    return any(allowed.contains(version) for version in _LATER)
