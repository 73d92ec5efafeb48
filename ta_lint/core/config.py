"""Settings, in three stages: what the command line says, what `[tool.ta]` says, and what holds for one folder."""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from pathspec import GitIgnoreSpec

from ta_lint.core.catalogue import adjusted, catalogue, check_selector, chosen, selected, specificity
from ta_lint.core.errors import UsageError, oneline
from ta_lint.core.finding import Applicability, Fix, Severity

if TYPE_CHECKING:
    from packaging.version import Version

DEFAULT_EXCLUDE = (
    ".bzr",
    ".eggs",
    ".git",
    ".hg",
    ".ipynb_checkpoints",
    ".mypy_cache",
    ".nox",
    ".pytest_cache",
    ".ruff_cache",
    ".svn",
    ".tox",
    ".venv",
    ".vscode",
    "__pycache__",
    "__pypackages__",
    "/build",
    "/dist",
    "node_modules",
    "site-packages",
    "venv",
)


@dataclass(frozen=True)
class Options:
    """What the command line says about settings; None and empty mean that it is silent."""

    select: list[str] | None = None
    extend_select: list[str] = field(default_factory=list)
    ignore: list[str] = field(default_factory=list)
    target_torch: str | None = None
    fail_level: Severity | None = None
    baseline: Path | None = None
    unsafe_fixes: bool | None = None
    force_exclude: bool = False
    config: Path | None = None
    isolated: bool = False


class RawConfig(msgspec.Struct, forbid_unknown_fields=True, rename="kebab", frozen=True):
    """The table `[tool.ta]` of a `pyproject.toml`, as written."""

    select: list[str] | None = None
    extend_select: list[str] = []
    ignore: list[str] = []
    per_file_ignores: dict[str, list[str]] = {}
    exclude: list[str] | None = None
    extend_exclude: list[str] = []
    respect_gitignore: bool = True
    force_exclude: bool = False
    target_torch: str | None = None
    fail_level: Severity | None = None
    baseline: str | None = None
    fixable: list[str] | None = None
    unfixable: list[str] = []
    unsafe_fixes: bool = False
    extend_safe_fixes: list[str] = []
    extend_unsafe_fixes: list[str] = []


@dataclass(frozen=True)
class Config:
    """What holds for the files of one folder. `target_torch` None means the newest release."""

    directory: Path
    rules: frozenset[str]
    per_file_ignores: tuple[tuple[str, tuple[str, ...]], ...]
    exclude: tuple[str, ...]
    respect_gitignore: bool
    force_exclude: bool
    target_torch: tuple[int, int] | None
    target_named: bool
    """Whether somebody named the target; otherwise it is from the dependencies, and a nearer project's hold."""
    fail_level: Severity
    baseline: Path | None
    fixable: frozenset[str]
    unsafe_fixes: bool
    """Whether unsafe fixes are made as well."""
    declared_safe: frozenset[str]
    """The rules whose fixes are safe here, whatever their pages say."""
    declared_unsafe: frozenset[str]
    source: str
    """Where it was read, for `--show-settings`."""

    @cached_property
    def excluded(self) -> GitIgnoreSpec:
        return GitIgnoreSpec.from_lines(self.exclude)

    @cached_property
    def _ignores(self) -> list[tuple[str, GitIgnoreSpec, list[str]]]:
        """Each pattern of `per-file-ignores`, and the ids of the rules it turns off."""
        rules = catalogue().values()
        return [
            (
                pattern,
                GitIgnoreSpec.from_lines([pattern]),
                [rule.id for rule in rules if any(specificity(selector, rule) for selector in selectors)],
            )
            for pattern, selectors in self.per_file_ignores
        ]

    def applicability(self, rule: str, unsafe: bool) -> Applicability | None:
        """What a fix of a rule is here, by its page and these settings; None where it is not to be made.

        `unsafe` marks a fix that is less safe than its page says.
        """
        of_page = catalogue()[rule].fix
        if of_page == "none" or rule not in self.fixable:
            return None
        if rule in self.declared_safe:
            return Applicability.SAFE
        unsafe = unsafe or of_page == "unsafe" or rule in self.declared_unsafe
        return Applicability.UNSAFE if unsafe else Applicability.SAFE

    def makes(self, fix: Fix) -> bool:
        """Whether `--fix` makes a fix here."""
        return self.unsafe_fixes or fix.applicability is Applicability.SAFE

    def ignored_rules(self, path: Path) -> dict[str, str]:
        """The rules that `per-file-ignores` turns off for a file, each with the pattern that did."""
        found: dict[str, str] = {}
        if path.is_relative_to(self.directory):
            name = path.relative_to(self.directory).as_posix()
            for pattern, spec, rules in self._ignores:
                if spec.match_file(name):
                    found.update((rule, pattern) for rule in rules if rule not in found)
        return found


class Configs:
    """The config of each folder: the nearest `pyproject.toml` with a `[tool.ta]` table, under the command line.

    Raises UsageError, from the constructor for the command line and the working folder, later for a folder's own
    file.
    """

    def __init__(self, options: Options, cwd: Path) -> None:
        self._options = options
        self._cwd = cwd
        self._of_directory: dict[Path, Config] = {}
        self._parsed: dict[Path, Mapping[str, Any]] = {}
        if options.config is not None and not options.config.is_file():
            raise UsageError(f"--config: {options.config} is not a file")
        self.root_config = self.of_directory(cwd)

    def of_directory(self, directory: Path) -> Config:
        if self._options.config is not None or self._options.isolated:
            directory = self._cwd
        if directory not in self._of_directory:
            self._of_directory[directory] = self._read(directory)
        return self._of_directory[directory]

    def _read(self, directory: Path) -> Config:
        options = self._options
        if options.isolated:
            return _resolve(options, RawConfig(), directory, "defaults (--isolated)", None)
        if options.config is not None:
            path = options.config
            tables = self._parse(path)
            tool = _table(tables, "tool")
            raw = _decode(tool.get("ta", {} if path.name == "pyproject.toml" or tool else tables), path)
            return _resolve(options, raw, self._cwd, str(path), _dependency_target(tables, path))
        path = directory / "pyproject.toml"
        tables = self._parse(path) if path.is_file() else {}
        if "ta" in _table(tables, "tool"):
            raw = _decode(tables["tool"]["ta"], path)
            return _resolve(options, raw, directory, str(path), _dependency_target(tables, path))
        parent = directory.parent
        if parent == directory:
            return _resolve(options, RawConfig(), self._cwd, "defaults", None)
        inherited = self.of_directory(parent)
        target = _dependency_target(tables, path)
        if target is None or inherited.target_named:
            return inherited
        return replace(inherited, target_torch=(target.major, target.minor))

    def _parse(self, path: Path) -> Mapping[str, Any]:
        if path not in self._parsed:
            try:
                self._parsed[path] = tomllib.loads(path.read_text(encoding="utf-8"))
            except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
                raise UsageError(f"{path}: not readable as TOML: {oneline(error)}") from error
        return self._parsed[path]


def _decode(table: object, path: Path) -> RawConfig:
    try:
        return msgspec.convert(table, RawConfig)
    except msgspec.ValidationError as error:
        reason, _, key = str(error).partition(" - at `$")
        key = key.rstrip("`").lstrip(".")
        if (unknown := re.search(r"unknown field `(.+)`", reason)) is not None:
            known = ", ".join(field.encode_name for field in msgspec.structs.fields(RawConfig))
            raise UsageError(f"{path}: [tool.ta] has no key {unknown[1]!r}; the keys are {known}") from error
        reason = f"{reason[0].lower()}{reason[1:]}".replace(" | null", "").replace("`object", "`table")
        raise UsageError(f"{path}: {f'[tool.ta] {key}'.strip()}: {reason}") from error


def _resolve(
    options: Options, raw: RawConfig, directory: Path, source: str, target: "Version | None"
) -> Config:
    if options.select is not None:
        rules = selected(options.select, options.extend_select, options.ignore, "command line")
    else:
        rules = selected(raw.select, raw.extend_select, raw.ignore, source)
        rules = adjusted(rules, options.extend_select, options.ignore, "command line")
    for pattern, selectors in raw.per_file_ignores.items():
        for selector in selectors:
            check_selector(selector, f"{source}: [tool.ta] per-file-ignores {pattern!r}")
    named = options.target_torch or raw.target_torch
    if named is not None:
        from packaging.version import InvalidVersion, Version

        where = "--target-torch" if options.target_torch else f"{source}: [tool.ta] target-torch"
        try:
            target = Version(named)
        except InvalidVersion as error:
            raise UsageError(f"{where}: {named!r} is not a version such as 2.6") from error
    fixable = ["ALL"] if raw.fixable is None else raw.fixable
    for key, selectors in (
        ("fixable", fixable),
        ("unfixable", raw.unfixable),
        ("extend-safe-fixes", raw.extend_safe_fixes),
        ("extend-unsafe-fixes", raw.extend_unsafe_fixes),
    ):
        for selector in selectors:
            check_selector(selector, f"{source}: [tool.ta] {key}")
    exclude = raw.exclude if raw.exclude is not None else list(DEFAULT_EXCLUDE)
    for pattern in (*(raw.exclude or []), *raw.extend_exclude, *raw.per_file_ignores):
        if not is_pattern(pattern):
            raise UsageError(f"{source}: [tool.ta] {pattern!r} is not a pattern as in .gitignore")
    baseline = options.baseline
    if baseline is None and raw.baseline is not None:
        baseline = directory / raw.baseline
    return Config(
        directory=directory,
        rules=rules,
        per_file_ignores=tuple((pattern, tuple(ids)) for pattern, ids in raw.per_file_ignores.items()),
        exclude=(*exclude, *raw.extend_exclude),
        respect_gitignore=raw.respect_gitignore,
        force_exclude=options.force_exclude or raw.force_exclude,
        target_torch=(target.major, target.minor) if target is not None else None,
        target_named=named is not None,
        fail_level=options.fail_level or raw.fail_level or Severity.WARNING,
        baseline=baseline,
        fixable=chosen(fixable, raw.unfixable),
        unsafe_fixes=raw.unsafe_fixes if options.unsafe_fixes is None else options.unsafe_fixes,
        declared_safe=chosen(raw.extend_safe_fixes, raw.extend_unsafe_fixes),
        declared_unsafe=chosen(raw.extend_unsafe_fixes, raw.extend_safe_fixes, ties=True),
        source=source,
    )


def is_pattern(text: str) -> bool:
    """Whether it is a line that `.gitignore` may hold."""
    try:
        GitIgnoreSpec.from_lines([text])
    except (ValueError, re.error):
        return False
    return True


def _dependency_target(tables: Mapping[str, Any], path: Path) -> "Version | None":
    """The lowest torch that a project's own dependencies admit; None if they do not say.

    Main dependencies count before extras and groups.
    """
    project = _table(tables, "project")
    extras = _table(project, "optional-dependencies").values()
    groups = _table(tables, "dependency-groups").values()
    for requirements in (project.get("dependencies"), *extras, *groups):
        texts = (
            [item for item in requirements if isinstance(item, str)] if isinstance(requirements, list) else []
        )
        if bounds := [bound for text in texts if (bound := _lower_bound(text)) is not None]:
            return min(bounds)
    poetry = _table(tables, "tool", "poetry", "dependencies").get("torch")
    if isinstance(poetry, dict):
        poetry = poetry.get("version")
    if not isinstance(poetry, str):
        return None
    return _lower_bound("torch" + re.sub(r"\^|(?<![~=])~(?!=)", ">=", poetry))


def _table(tables: Mapping[str, Any], *keys: str) -> Mapping[str, Any]:
    """A table within tables; empty where there is none, or another tool's file holds something else there."""
    for key in keys:
        tables = tables.get(key, {})
        if not isinstance(tables, dict):
            return {}
    return tables


def _lower_bound(text: str) -> "Version | None":
    if not text.startswith("torch"):  # most do not: spare them the parser, and its import
        return None
    from packaging.requirements import InvalidRequirement, Requirement
    from packaging.version import Version

    try:
        requirement = Requirement(text)
    except InvalidRequirement:
        return None
    if requirement.name != "torch":
        return None
    versions = [
        Version(specifier.version.removesuffix(".*"))
        for specifier in requirement.specifier
        if specifier.operator in (">=", "==", "~=", ">")
    ]
    return max(versions, default=None)


def project_root(start: Path) -> Path:
    """The folder that finding paths are relative to: the repository's, so that uploads and baselines agree.

    Without a repository, the folder of the nearest `pyproject.toml`, else `start`.
    """
    for marker in (".git", "pyproject.toml"):
        for directory in (start, *start.parents):
            if (directory / marker).exists():
                return directory
    return start
