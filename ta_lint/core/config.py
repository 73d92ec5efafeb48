"""Settings in three stages: from the command line, from a file (`core.settings`), and as they apply to one folder."""

import os
from collections.abc import Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from ta_lint.core.dependencies import dependencies, of_pyproject
from ta_lint.core.errors import UsageError
from ta_lint.core.patterns import Patterns, is_pattern, patterns
from ta_lint.core.settings import (
    FILES,
    PYPROJECT,
    Place,
    RawConfig,
    Tables,
    decode,
    overlooked,
    parse,
    present,
    settings_of,
)
from ta_lint.core.terms import Applicability, InTests, Severity

if TYPE_CHECKING:
    from pathlib import Path

    from packaging.version import Version

    from ta_lint.core.finding import Fix

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
    ".ta_cache",
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


class Options(NamedTuple):
    """Settings from the command line; None and empty mean not given."""

    select: Sequence[str] | None = None
    extend_select: Sequence[str] = ()
    ignore: Sequence[str] = ()
    target_torch: str | None = None
    fail_level: Severity | None = None
    show_notes: bool | None = None
    baseline: "Path | None" = None
    unsafe_fixes: bool | None = None
    force_exclude: bool = False
    cache_dir: "Path | None" = None
    config: "Path | None" = None
    isolated: bool = False


class Config(NamedTuple):
    """The settings for the files of one folder. A `target_torch` of None means the newest release."""

    directory: str
    selected: frozenset[str] | None
    """The enabled rules, None for the default ones; `rules` looks those up in the catalogue."""
    per_file_ignores: tuple[tuple[str, tuple[str, ...]], ...]
    exclude: tuple[str, ...]
    respect_gitignore: bool
    force_exclude: bool
    target_torch: tuple[int, int] | None
    target_named: bool
    """Whether the target was set; otherwise it comes from the dependencies, and a nearer project overrides it."""
    old_frameworks: frozenset[str]
    """The frameworks of which the dependencies ask for an old release (`core.dependencies`)."""
    fail_level: Severity
    show_notes: bool
    """Whether the text report shows notes; they are always shown if they fail a run."""
    tests: InTests
    """What is done in test files about the rules that are about other code."""
    baseline: "Path | None"
    chosen_fixable: frozenset[str] | None
    """The rules whose fixes are applied, None for all; see `fixable`."""
    unsafe_fixes: bool
    """Whether unsafe fixes are applied as well."""
    declared_safe: frozenset[str]
    """The rules whose fixes count as safe here, regardless of their pages."""
    declared_unsafe: frozenset[str]
    cache_dir: "Path | None"
    """The cache folder; None for the usual one."""
    source: str
    """Where the settings come from, for `--show-settings`."""

    @property
    def rules(self) -> frozenset[str]:
        """The ids of the enabled rules."""
        if self.selected is not None:
            return self.selected
        from ta_lint.core.catalogue import default_rules

        return default_rules()

    @property
    def fixable(self) -> frozenset[str]:
        """The ids of the rules whose fixes may be applied."""
        if self.chosen_fixable is not None:
            return self.chosen_fixable
        from ta_lint.core.catalogue import catalogue

        return frozenset(catalogue())

    @property
    def excluded(self) -> Patterns:
        return patterns(self.exclude)

    def applicability(self, rule: str, unsafe: bool) -> Applicability | None:
        """The applicability of a rule's fix, from its page and these settings; None if it must not be applied.

        `unsafe` marks a fix that is less safe than the rule's page says.
        """
        from ta_lint.core.catalogue import rule_of

        of_page = rule_of(rule).fix
        if of_page == "none" or (self.chosen_fixable is not None and rule not in self.chosen_fixable):
            return None
        if rule in self.declared_safe:
            return Applicability.SAFE
        unsafe = unsafe or of_page == "unsafe" or rule in self.declared_unsafe
        return Applicability.UNSAFE if unsafe else Applicability.SAFE

    def makes(self, fix: "Fix") -> bool:
        """Whether `--fix` applies a fix here."""
        return self.unsafe_fixes or fix.applicability is Applicability.SAFE

    def ignored_rules(self, path: "Path") -> dict[str, str]:
        """The rules that `per-file-ignores` turns off for a file, each with the pattern that matched."""
        found: dict[str, str] = {}
        if self.per_file_ignores and path.is_relative_to(self.directory):
            name = path.relative_to(self.directory).as_posix()
            for pattern, spec, rules in _ignores(self.per_file_ignores):
                if spec.exclude(name):
                    found.update((rule, pattern) for rule in rules if rule not in found)
        return found

    def idle_ignores(self, paths: "Iterable[Path]") -> list[str]:
        """The patterns of `per-file-ignores` that match none of these files."""
        names = [
            path.relative_to(self.directory).as_posix()
            for path in paths
            if path.is_relative_to(self.directory)
        ]
        return [
            pattern
            for pattern, spec, _ in _ignores(self.per_file_ignores)
            if not any(map(spec.exclude, names))
        ]


@cache
def _ignores(
    per_file: tuple[tuple[str, tuple[str, ...]], ...],
) -> list[tuple[str, Patterns, list[str]]]:
    """Each pattern of `per-file-ignores` with the ids of the rules it turns off."""
    from ta_lint.core.catalogue import catalogue, specificity

    rules = catalogue().values()
    return [
        (
            pattern,
            patterns((pattern,)),
            [rule.id for rule in rules if any(specificity(selector, rule) for selector in selectors)],
        )
        for pattern, selectors in per_file
    ]


class Configs:
    """The config of each folder: that of the nearest file with settings; the command line overrides it.

    Raises UsageError: from the constructor for the command line and the working folder, later for the file of another
    folder.
    """

    def __init__(self, options: Options, cwd: "str | Path") -> None:
        self._options = options
        self._cwd = os.fspath(cwd)
        self._of_directory: dict[str, Config] = {}
        self._parsed: dict[str, Tables] = {}
        self.overlooked: list[str] = []
        """What looks like ta-lint settings but is not read, each with where it should be."""
        if options.config is not None and not options.config.is_file():
            raise UsageError(f"--config: {options.config} is not a file")
        self.root_config = self.of_directory(cwd)

    def of_directory(self, directory: "str | Path") -> Config:
        alone = self._options.config is not None or self._options.isolated
        path = self._cwd if alone else os.fspath(directory)
        if path not in self._of_directory:
            self._of_directory[path] = self._read(path)
        return self._of_directory[path]

    def _read(self, directory: str) -> Config:
        options = self._options
        if options.isolated:
            return _resolve(options, RawConfig(), directory, Place("defaults (--isolated)"), None)
        if options.config is not None:
            path = str(options.config)
            tables = self._tables(path)
            found = settings_of(path, tables)
            raw, place = (decode(*found), found[1]) if found is not None else (RawConfig(), Place(path))
            return _resolve(options, raw, self._cwd, place, of_pyproject(tables))
        files = {path: self._tables(path) for path in present(directory)}
        self.overlooked += overlooked(directory, files, directory == self._cwd)
        project = files.get(os.path.join(directory, PYPROJECT), {})
        target, old = dependencies(project, directory)
        for path, tables in files.items():
            if (found := settings_of(path, tables)) is not None:
                config = _resolve(options, decode(*found), directory, found[1], target)
                return config._replace(old_frameworks=old)
        parent = os.path.dirname(directory)
        if parent == directory:
            return _resolve(options, RawConfig(), self._cwd, Place("defaults"), None)
        inherited = self.of_directory(parent)
        if old:
            inherited = inherited._replace(old_frameworks=inherited.old_frameworks | old)
        if target is None or inherited.target_named:
            return inherited
        return inherited._replace(target_torch=(target.major, target.minor))

    def _tables(self, path: str) -> Tables:
        if path not in self._parsed:
            self._parsed[path] = parse(path)
        return self._parsed[path]


def _resolve(
    options: Options, raw: RawConfig, directory: str, place: Place, target: "Version | None"
) -> Config:
    chosen_rules = _chosen_rules(options, raw, place)
    named = options.target_torch or raw.target_torch
    if named is not None:
        from packaging.version import Version

        where = "--target-torch" if options.target_torch else place.key("target-torch")
        try:
            target = Version(named)
        except ValueError as error:  # also for an integer with more digits than Python reads
            raise UsageError(f"{where}: {named[:40]!r} is not a version such as 2.6") from error
    exclude = raw.exclude if raw.exclude is not None else DEFAULT_EXCLUDE
    for pattern in (*(raw.exclude or ()), *raw.extend_exclude, *raw.per_file_ignores):
        if not is_pattern(pattern):
            raise UsageError(f"{place.key(repr(pattern))} is not a pattern as in .gitignore")
    baseline = options.baseline
    if baseline is None and raw.baseline is not None:
        baseline = _own_place("baseline", raw.baseline, directory, place)
    cache_dir = options.cache_dir
    if cache_dir is None and raw.cache_dir:
        cache_dir = _own_place("cache-dir", raw.cache_dir, directory, place)
    fixable, safe, unsafe = _chosen_fixes(raw, place)
    fail_level = options.fail_level or raw.fail_level or Severity.WARNING
    show_notes = raw.show_notes if options.show_notes is None else options.show_notes
    return Config(
        directory=directory,
        selected=chosen_rules,
        per_file_ignores=tuple(raw.per_file_ignores.items()),
        exclude=(*exclude, *raw.extend_exclude),
        respect_gitignore=raw.respect_gitignore,
        force_exclude=options.force_exclude or raw.force_exclude,
        target_torch=(target.major, target.minor) if target is not None else None,
        target_named=named is not None,
        fail_level=fail_level,
        show_notes=show_notes or fail_level is Severity.NOTE,
        tests=raw.tests,
        old_frameworks=frozenset(),
        baseline=baseline,
        chosen_fixable=fixable,
        unsafe_fixes=raw.unsafe_fixes if options.unsafe_fixes is None else options.unsafe_fixes,
        declared_safe=safe,
        declared_unsafe=unsafe,
        cache_dir=cache_dir,
        source=place.path,
    )


def _own_place(key: str, named: str, directory: str, place: Place) -> "Path":
    """The path of something to write. It must lie in the project of the settings, as a stranger may have written them.

    Raises:
        UsageError: the path lies elsewhere, directly or through a link.
    """
    from pathlib import Path

    from ta_lint.core.files import is_within

    path = Path(directory, named)
    if not is_within(path, project_root(Path(directory))):
        raise UsageError(
            f"{place.key(key)}: {named!r} is outside the project; only the option --{key} may name such a place"
        )
    return path


def _chosen_rules(options: Options, raw: RawConfig, place: Place) -> frozenset[str] | None:
    """The enabled rules; None if no setting names any: then the default ones apply without reading the catalogue."""
    adjustments = (raw.extend_select, raw.ignore, raw.per_file_ignores, options.extend_select, options.ignore)
    if options.select is None and raw.select is None and not any(adjustments):
        return None
    from ta_lint.core.catalogue import adjusted, check_selector, selected

    given = {"--select": options.select, "--extend-select": options.extend_select, "--ignore": options.ignore}
    for option, selectors in given.items():
        for selector in selectors or ():
            check_selector(selector, option)
    if options.select is not None:
        rules = selected(options.select, options.extend_select, options.ignore, "command line")
    else:
        rules = selected(raw.select, raw.extend_select, raw.ignore, place.path)
        rules = adjusted(rules, options.extend_select, options.ignore, "command line")
    for pattern, selectors in raw.per_file_ignores.items():
        for selector in selectors:
            check_selector(selector, f"{place.key('per-file-ignores')} {pattern!r}")
    return rules


def _chosen_fixes(
    raw: RawConfig, place: Place
) -> tuple[frozenset[str] | None, frozenset[str], frozenset[str]]:
    """The rules whose fixes may be applied (None for all), and those whose fixes are declared safe and unsafe."""
    selections = {
        "fixable": raw.fixable,
        "unfixable": raw.unfixable,
        "extend-safe-fixes": raw.extend_safe_fixes,
        "extend-unsafe-fixes": raw.extend_unsafe_fixes,
    }
    if raw.fixable is None and not any(selections.values()):
        return None, frozenset(), frozenset()
    from ta_lint.core.catalogue import check_selector, chosen

    for key, selectors in selections.items():
        for selector in selectors or ():
            check_selector(selector, place.key(key))
    return (
        chosen(("ALL",) if raw.fixable is None else raw.fixable, raw.unfixable),
        chosen(raw.extend_safe_fixes, raw.extend_unsafe_fixes),
        chosen(raw.extend_unsafe_fixes, raw.extend_safe_fixes, ties=True),
    )


def cache_variable() -> "Path | None":
    """The folder in TA_CACHE_DIR; None if the variable is unset or empty."""
    from pathlib import Path

    named = os.environ.get("TA_CACHE_DIR")
    return Path(named) if named else None


def project_root(start: "Path") -> "Path":
    """The folder that paths in findings are relative to: the repository root, so that uploads and baselines agree.

    Without a repository it is the nearest folder with a settings file, otherwise `start`.
    """
    for markers in ((".git",), FILES):
        for directory in (start, *start.parents):
            if any((directory / marker).exists() for marker in markers):
                return directory
    return start
