"""The files that hold settings: which there are, which of a folder counts, and what stands in it."""

import os
import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from ta_lint.core.errors import Unreadable, UsageError, hint, oneline
from ta_lint.core.reading import read
from ta_lint.core.terms import InTests, Severity

PYPROJECT = "pyproject.toml"
OWN = (".ta-lint.toml", "ta-lint.toml")
"""Files that hold nothing but settings; of two the first counts, and each of them counts before `pyproject.toml`."""
FILES = (*OWN, PYPROJECT)

_NEARLY_TABLES = ("ta-lint", "ta_lint", "talint", "ta-runtime", "ta_runtime")
_NEARLY_FILES = (
    "ta_lint.toml",
    ".ta_lint.toml",
    "talint.toml",
    ".talint.toml",
    "ta.toml",
    ".ta.toml",
    "ta-runtime.toml",
    "ta_runtime.toml",
)

Tables = Mapping[str, Any]


class Place(NamedTuple):
    """Where settings stand: in a file whose keys are at its top if `whole`, otherwise in its table `[tool.ta]`."""

    path: str
    whole: bool = False

    def key(self, name: str) -> str:
        """The place of a key, as messages name it."""
        return f"{self.path}: {'' if self.whole else '[tool.ta] '}{name}"

    def __str__(self) -> str:
        return self.path if self.whole else f"{self.path}: [tool.ta]"


class RawConfig(NamedTuple):
    """The settings of one file as written; the keys in the file have hyphens.

    The text below a key is what the schema says of it (`docs/make_schema.py`).
    """

    select: tuple[str, ...] | None = None
    """The rules to run instead of the default rules: ids, prefixes, names, tags or ids of other tools."""
    extend_select: tuple[str, ...] = ()
    """Further rules to run."""
    ignore: tuple[str, ...] = ()
    """Rules not to run. The more exact selector of `select` and `ignore` wins."""
    per_file_ignores: Mapping[str, tuple[str, ...]] = MappingProxyType({})
    """Rules to ignore in files that match a pattern, as in .gitignore."""
    exclude: tuple[str, ...] | None = None
    """Files and folders not to lint, instead of the defaults; patterns as in .gitignore."""
    extend_exclude: tuple[str, ...] = ()
    """Further files and folders not to lint; patterns as in .gitignore."""
    respect_gitignore: bool = True
    """Whether to leave out files that .gitignore names."""
    force_exclude: bool = False
    """Whether `exclude` applies to files named on the command line, too."""
    target_torch: str | None = None
    """The oldest torch that the code must run on, such as 2.3. Default: from the dependencies."""
    fail_level: Severity | None = None
    """The lowest severity that makes the exit status 1. Default: warning."""
    show_notes: bool = False
    """Whether the text report shows notes. Default: it only counts them."""
    tests: InTests = InTests.SKIP
    """What rules with the mark 'not in tests' give in test files: nothing (skip), notes (note), or the same as elsewhere (lint)."""
    baseline: str | None = None
    """The file of accepted findings, which do not count. It must be inside the project."""
    fixable: tuple[str, ...] | None = None
    """The rules whose fixes --fix may make. Default: all."""
    unfixable: tuple[str, ...] = ()
    """Rules whose fixes --fix never makes."""
    unsafe_fixes: bool = False
    """Whether --fix also makes unsafe fixes, which may change what the program computes."""
    extend_safe_fixes: tuple[str, ...] = ()
    """Rules whose unsafe fixes are treated as safe."""
    extend_unsafe_fixes: tuple[str, ...] = ()
    """Rules whose safe fixes are treated as unsafe."""
    cache_dir: str | None = None
    """The folder of the cache, inside the project. Default: .ta_cache."""


def present(directory: str) -> list[str]:
    """The paths of the settings files in a folder, those that count first."""
    return [path for name in FILES if os.path.isfile(path := os.path.join(directory, name))]


def parse(path: str) -> Tables:
    """The tables of a TOML file.

    Raises:
        UsageError: the file is not readable as TOML.
    """
    import tomllib

    try:
        return tomllib.loads(read(path).decode("utf-8").replace("\r\n", "\n"))
    except RecursionError as error:
        raise UsageError(f"{path}: not readable as TOML: it is nested too deep") from error
    except Unreadable as error:
        raise UsageError(f"{path}: {error.reason}") from error
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"{path}: not readable as TOML: {oneline(error)}") from error
    except ValueError as error:
        reason = "an integer has more digits than Python reads"
        raise UsageError(f"{path}: not readable as TOML: {reason}") from error


def table(tables: Tables, *keys: str) -> Tables:
    """A nested table; empty if there is none, or if another tool keeps something else under that key."""
    for key in keys:
        tables = tables.get(key, {})
        if not isinstance(tables, dict):
            return {}
    return tables


def settings_of(path: str, tables: Tables) -> tuple[object, Place] | None:
    """The settings in a file with these tables, and where they stand; None if it has none."""
    name = os.path.basename(path)
    tool = table(tables, "tool")
    if "ta" in tool and (name not in OWN or len(tables) == 1):
        return tool["ta"], Place(path)
    if name in OWN or (name != PYPROJECT and not tool):
        return tables, Place(path, whole=True)
    return None


def overlooked(directory: str, files: Mapping[str, Tables], here: bool) -> Iterator[str]:
    """What a newcomer might take for settings: other tables of the settings files, and files of nearly their names.

    Those files count at the top of a project or `here`; elsewhere they may be somebody else's.
    """
    for path, tables in files.items():
        for name in _NEARLY_TABLES:
            if name in table(tables, "tool"):
                yield f"{path}: [tool.{name}] is not read; put settings into [tool.ta]"
    places = [found[1] for path, tables in files.items() if (found := settings_of(path, tables)) is not None]
    for place in places[1:]:
        yield f"{place} is not read, because this folder takes its settings from {places[0].path}"
    if here or files or os.path.exists(os.path.join(directory, ".git")):
        for name in _NEARLY_FILES:
            if os.path.isfile(path := os.path.join(directory, name)):
                yield f"{path} is not read; name it {OWN[1]}, or put its settings into [tool.ta] of {PYPROJECT}"


def shape() -> type:
    """The settings as a type that `msgspec` validates."""
    import msgspec

    defaults = {
        **RawConfig._field_defaults,
        "per_file_ignores": {},
    }  # no schema shows a mapping that is read-only
    fields = [(name, of_type, defaults[name]) for name, of_type in RawConfig.__annotations__.items()]
    return msgspec.defstruct("Settings", fields, forbid_unknown_fields=True, rename="kebab")


def decode(settings: object, place: Place) -> RawConfig:
    """The settings of one file.

    Raises:
        UsageError: a key is unknown, or has a wrong value; the message names it and what may be meant.
    """
    import msgspec

    fields = shape()
    try:
        return RawConfig(**msgspec.structs.asdict(msgspec.convert(settings, fields)))
    except msgspec.ValidationError as error:
        reason, _, key = str(error).partition(" - at `$")
        key = key.rstrip("`").lstrip(".")
        if (unknown := re.search(r"unknown field `(.+)`", reason)) is not None:
            known = [field.encode_name for field in msgspec.structs.fields(fields)]
            raise UsageError(f"{place} has no key {unknown[1]!r}{_meant(unknown[1], known)}") from error
        if reason.startswith("Invalid enum value"):
            wrong = re.search(r"'(.+)'", reason)
            words = InTests if key == "tests" else Severity
            near = hint(wrong[1], words) if wrong is not None else ""
            reason += near or f", it is one of {', '.join(words)}"
        reason = f"{reason[0].lower()}{reason[1:]}".replace(" | null", "").replace("`object", "`table")
        raise UsageError(f"{place.key(f'{key}: {reason}') if key else f'{place}: {reason}'}") from error


def _meant(key: str, known: list[str]) -> str:
    """What somebody may have meant by a key that there is not."""
    if key in ("tool", "ta", *_NEARLY_TABLES):
        return "; its keys stand at the top, in no table"
    return hint(key, known) or f"; the keys are {', '.join(known)}"
