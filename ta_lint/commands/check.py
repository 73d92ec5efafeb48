"""`ta-lint check`: which files, what of them, and how it is told."""

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from ta_lint import __version__
from ta_lint.commands import CLEAN, ERROR, FINDINGS, INTERRUPTED, STDIN
from ta_lint.core.collector import paused, settled

if TYPE_CHECKING:
    from ta_lint.cache import Cache
    from ta_lint.core.baseline import Entry
    from ta_lint.core.config import Config, Configs, Options
    from ta_lint.core.finding import Finding
    from ta_lint.core.source import Source
    from ta_lint.file import File
    from ta_lint.fixing import Fixed
    from ta_lint.runner import Result
    from ta_lint.watching import Tree

    Fixes = Callable[[Finding], bool]

T = TypeVar("T")

_NOT_LOOKED_AT = ("TA000", "TA001")  # a file, or by one rule: what was not found there cannot be fixed
_CLEAR = "\x1b[H\x1b[2J"


@paused()
def run(arguments: argparse.Namespace) -> int:
    """Lint, or fix; returns the exit status."""
    if arguments.profile:
        return _profiled(arguments)
    from ta_lint.core import report
    from ta_lint.core.config import Configs, project_root
    from ta_lint.core.errors import UsageError
    from ta_lint.core.files import display
    from ta_lint.core.terminal import harmless
    from ta_lint.discovery import discover, named
    from ta_lint.file import worth_a_look

    if arguments.statistics and arguments.format in ("sarif", "github"):
        raise UsageError(f"--statistics: not with --format {arguments.format}, which lists every finding")
    if arguments.update_baseline and (arguments.fix or arguments.diff):
        raise UsageError(
            "--update-baseline: not together with --fix or --diff; fix first, then record what is left"
        )
    try:
        cwd = Path.cwd()
    except FileNotFoundError as error:
        raise UsageError("the working folder does not exist any more") from error
    if arguments.watch and not arguments.show_settings:
        return _watch(arguments, cwd)
    configs = Configs(_options(arguments), cwd)
    config = configs.root_config
    _warn_of_overlooked(configs)
    if arguments.show_settings:
        print(_settings(config), end="")
        return CLEAN
    if arguments.update_baseline and config.baseline is None:
        raise UsageError("--update-baseline: name the file with --baseline FILE, or set [tool.ta] baseline")
    accepted = []
    if config.baseline is not None and (config.baseline.exists() or not arguments.update_baseline):
        from ta_lint.core import baseline

        accepted = baseline.load(config.baseline)
    root = project_root(cwd)
    given = _standard_input(arguments)
    if given is not None:
        files = named(arguments.stdin_filename or STDIN, given, configs, root)
    else:
        files = discover(arguments.paths or [Path()], configs, root)
    if arguments.no_gates:
        files = [file._replace(gated=False) for file in files]
    if not files and given is None:
        print("ta-lint: warning: no Python files to lint under the given paths", file=sys.stderr)
    outcome = None
    if arguments.fix or arguments.diff:
        from ta_lint.runner import fix_files, lint_files

        fingerprints = frozenset(entry.fingerprint for entry in accepted)
        fixing = fix_files(files, fingerprints, arguments.jobs)
        fixed = list(_with_progress(fixing, files, lambda result: result.file))
        for complaint in (complaint for result in fixed for complaint in result.complaints):
            print(f"ta-lint: warning: {harmless(complaint)}", file=sys.stderr)
        if arguments.diff:
            left = [finding for result in fixed for finding in result.findings if not _makes(result, finding)]
            return _show_changes(arguments, fixed, _marked(left, accepted)[0])
        if given is None:
            outcome = _saved(fixed, root)
        else:
            given = fixed[0].after if fixed else given
            outcome = _handed_back(fixed, given)
        findings = _ordered([*outcome.linted, *lint_files(outcome.unwritten, 1)])
    elif not worth_a_look(files):
        findings = []
    else:
        from ta_lint.runner import lint_files

        cache = _cache(arguments, config, root) if given is None else None
        linted = lint_files(files, arguments.jobs, cache)
        findings = _ordered(_with_progress(linted, files, lambda result: result[0]))
        if cache is not None and not arguments.quiet:
            _warn_of_cache(cache)

    findings, stale = _marked(findings, accepted)
    judged = _unmatched(stale, files, root)
    if arguments.update_baseline:
        from ta_lint.core import baseline

        assert config.baseline is not None
        kept = [entry for entry in stale if entry not in judged]
        count = baseline.save(config.baseline, findings, kept)
        if not arguments.quiet:
            print(
                f"Recorded {count} {'finding' if count == 1 else 'findings'} in {display(config.baseline)}."
            )
        return CLEAN
    makes = {file.name: file.config.makes for file in files}
    fixes: Fixes = lambda finding: finding.fix is not None and makes[finding.site.path](finding.fix)
    done = report.fixed(outcome.count, outcome.files) if outcome is not None else ""
    _report(arguments, config, findings, root, fixes, done, given)
    if not arguments.quiet:
        _warn_of_baseline(judged, config)
    if outcome is not None and outcome.unwritten:
        return ERROR
    failing = any(finding.counts and finding.severity.rank >= config.fail_level.rank for finding in findings)
    failing = failing or (arguments.exit_non_zero_on_fix and outcome is not None and outcome.count > 0)
    return FINDINGS if failing and not arguments.exit_zero else CLEAN


def _cache(arguments: argparse.Namespace, config: "Config", root: Path) -> "Cache | None":
    if arguments.no_cache or arguments.no_gates:
        return None
    from ta_lint.cache import Cache, cache_folder

    return Cache(cache_folder(config, root), root)


def _warn_of_overlooked(configs: "Configs") -> None:
    from ta_lint.core.terminal import harmless

    for remark in configs.overlooked:
        print(f"ta-lint: warning: {harmless(remark)}", file=sys.stderr)


def _warn_of_cache(cache: "Cache") -> None:
    from ta_lint.core.terminal import harmless

    if cache.problem:
        print(
            "ta-lint: warning: the cache cannot be written, so each run lints every file: "
            f"{harmless(cache.problem)}, --no-cache does without",
            file=sys.stderr,
        )


def _unmatched(stale: "list[Entry]", files: "list[File]", root: Path) -> "list[Entry]":
    """Of the entries of a baseline that match no finding, those whose file was linted for their rule, or is gone."""
    from ta_lint.core.files import encodable

    config_of = {encodable(file.name): file.config for file in files} if stale else {}
    return [
        entry
        for entry in stale
        if (entry.path in config_of and entry.rule in config_of[entry.path].rules)
        or not (root / entry.path).exists()
    ]


def _warn_of_baseline(unmatched: "list[Entry]", config: "Config") -> None:
    from ta_lint.core.files import display

    if unmatched and config.baseline is not None:
        one = len(unmatched) == 1
        entries = "1 entry" if one else f"{len(unmatched)} entries"
        print(
            f"ta-lint: {entries} of {display(config.baseline)} {'matches' if one else 'match'} nothing; "
            "--update-baseline drops them",
            file=sys.stderr,
        )


def _profiled(arguments: argparse.Namespace) -> int:
    """Lint in this process, and say what took how long."""
    from ta_lint.core.errors import UsageError
    from ta_lint.profiling import profiling

    if arguments.watch:
        raise UsageError("--profile: not together with --watch, which does not end")
    if arguments.jobs not in (None, 1):
        raise UsageError("--profile: it is of one process; leave --jobs out")
    arguments.profile, arguments.jobs = False, 1
    with profiling() as profile:
        status = run(arguments)
    sys.stdout.flush()
    print(f"\n{profile.rendered()}", end="", file=sys.stderr)
    return status


def _watch(arguments: argparse.Namespace, cwd: Path) -> int:
    """Lint again what changes, until Ctrl-C, which is how it ends: nothing is left undone, so the status is 0."""
    from ta_lint.core import baseline
    from ta_lint.core.config import Configs, project_root
    from ta_lint.core.errors import UsageError

    refused = {
        "--fix": arguments.fix,  # an editor may hold what it would write over
        "--diff": arguments.diff,
        "--no-gates": arguments.no_gates,
        "--update-baseline": arguments.update_baseline,
        "--output": arguments.output is not None,
        f"--format {arguments.format}": arguments.format not in ("text", "concise"),
        "-": any(path is STDIN for path in arguments.paths),
        "--stdin-filename": arguments.stdin_filename is not None,
    }
    for option in (option for option, given in refused.items() if given):
        raise UsageError(
            f"--watch: not together with {option}; it shows findings to a reader, and writes nothing"
        )
    try:
        from ta_lint.watching import Settings, Tree, watch
    except ModuleNotFoundError as error:
        if error.name != "watchfiles":
            raise
        raise UsageError("--watch needs watchfiles: pip install 'ta-lint[watch]'") from error

    def read() -> Settings:
        configs = Configs(_options(arguments), cwd)
        config = configs.root_config
        accepted = baseline.load(config.baseline) if config.baseline is not None else []
        sources = [path for path in (arguments.config, config.baseline) if path is not None]
        return Settings(configs, project_root(cwd), accepted, sources)

    cache: Cache | None = None

    def lint(files: "list[File]") -> "Iterator[Result]":
        nonlocal cache
        from ta_lint.runner import lint_files

        cache = _cache(arguments, tree.settings.configs.root_config, tree.settings.root)
        linted = lint_files(files, arguments.jobs, cache)
        return _with_progress(linted, files, lambda result: result[0])

    try:
        tree = Tree(arguments.paths or [Path()], read, lint)
        settled()
        watch(tree, lambda: _show(arguments, tree, cache))
    except KeyboardInterrupt:
        if sys.stdout.isatty():
            print()  # the prompt that follows begins a line
    return CLEAN


def _show(arguments: argparse.Namespace, tree: "Tree", cache: "Cache | None") -> None:
    """What is found now, alone on the screen of a terminal; below one another anywhere else."""
    import os
    import time

    from ta_lint.core import report
    from ta_lint.core.terminal import harmless, wants_color

    terminal = sys.stdout.isatty() and os.environ.get("TERM") != "dumb"
    settings = tree.settings
    findings, stale = _marked(_ordered(tree.results), settings.accepted)
    makes = {file.name: file.config.makes for file in tree.files}
    fixes: Fixes = lambda finding: finding.fix is not None and makes[finding.site.path](finding.fix)
    config, color = settings.configs.root_config, wants_color(sys.stdout)
    text = _rendered(arguments, config, findings, settings.root, color, fixes, None)
    print(f"{_CLEAR if terminal else ''}{text}", end="", flush=True)
    _warn_of_overlooked(settings.configs)
    if not tree.files:
        print("ta-lint: warning: no Python files to lint under the given paths", file=sys.stderr)
    if tree.trouble:
        print(f"ta-lint: error: {harmless(tree.trouble)}; what held before stays", file=sys.stderr)
    if not arguments.quiet:
        if cache is not None:
            _warn_of_cache(cache)
        _warn_of_baseline(_unmatched(stale, tree.files, settings.root), config)
        now = time.strftime("%H:%M:%S")
        summary = report.summary(findings).strip()
        print(f"{report.remedies(findings, fixes)}[{now}] {summary} Watching for file changes.", flush=True)


def _standard_input(arguments: argparse.Namespace) -> bytes | None:
    """What standard input holds, where `-` asks for it."""
    from ta_lint.core.errors import UsageError

    if not any(path is STDIN for path in arguments.paths):
        if arguments.stdin_filename is not None:
            raise UsageError("--stdin-filename: it names what comes on standard input; give - as the path")
        return None
    if len(arguments.paths) > 1:
        raise UsageError("-: standard input is linted alone; leave the other paths out")
    if arguments.stdin_filename is not None and arguments.stdin_filename.is_dir():
        raise UsageError(f"--stdin-filename: {arguments.stdin_filename} is a folder; give the name of a file")
    if sys.stdin is None:
        raise UsageError("-: standard input is closed")
    return sys.stdin.buffer.read()


def _options(arguments: argparse.Namespace) -> "Options":
    from ta_lint.core.config import Options, cache_variable
    from ta_lint.core.terms import Severity

    return Options(
        select=arguments.select,
        extend_select=arguments.extend_select or [],
        ignore=arguments.ignore or [],
        target_torch=arguments.target_torch,
        fail_level=Severity(arguments.fail_level) if arguments.fail_level else None,
        baseline=arguments.baseline,
        unsafe_fixes=arguments.unsafe_fixes,
        force_exclude=arguments.force_exclude,
        cache_dir=arguments.cache_dir or cache_variable(),
        config=arguments.config,
        isolated=arguments.isolated,
    )


def _ordered(results: "Iterable[Result]") -> "list[Finding]":
    findings = [finding for _, of_file in results for finding in of_file]
    return sorted(
        findings,
        key=lambda finding: (
            finding.site.path,
            finding.site.cell.number if finding.site.cell is not None else 0,
            finding.site.line,
            finding.site.column,
            finding.rule,
        ),
    )


def _marked(findings: "list[Finding]", accepted: "list[Entry]") -> "tuple[list[Finding], list[Entry]]":
    """The findings, those in the baseline marked, and the entries that match none."""
    if not accepted:
        return findings, []
    from ta_lint.core import baseline

    return baseline.marked(findings, accepted)


class _Outcome:
    """What `--fix` has done: the files as they are now, and those that could not be written."""

    def __init__(self) -> None:
        self.linted: list[Result] = []
        self.unwritten: list[File] = []
        self.count = 0
        self.files = 0


def _saved(fixed: "list[Fixed]", root: Path) -> _Outcome:
    """Write the files that fixes changed, each at once or not at all.

    A link out of the project is not followed: who wrote the project chose where it leads.
    """
    from ta_lint.core.config import project_root
    from ta_lint.core.errors import UsageError
    from ta_lint.core.files import display, is_within
    from ta_lint.core.terminal import harmless
    from ta_lint.fixing import save

    outcome = _Outcome()
    try:
        for result in sorted(fixed, key=lambda result: result.file.name):
            if result.changes:
                path = result.file.path
                try:
                    if not is_within(path, root, project_root(path.parent)):
                        raise UsageError(
                            f"{display(path)} leads out of the project by a link: name {path.resolve()} to have it fixed"
                        )
                    save(result)
                except UsageError as error:
                    print(f"ta-lint: error: {harmless(str(error))}", file=sys.stderr)
                    outcome.unwritten.append(result.file)
                    continue
                outcome.count += result.count
                outcome.files += 1
            outcome.linted.append((result.file, result.findings))
    except KeyboardInterrupt:
        print(f"ta-lint: interrupted, files fixed before: {outcome.files}", file=sys.stderr)
        raise SystemExit(INTERRUPTED) from None
    return outcome


def _handed_back(fixed: "list[Fixed]", after: bytes) -> _Outcome:
    """Write what came on standard input to standard output, as it is now; where it is excluded, as it came."""
    sys.stdout.flush()
    sys.stdout.buffer.write(after)
    sys.stdout.buffer.flush()
    outcome = _Outcome()
    outcome.linted = [(result.file, result.findings) for result in fixed]
    outcome.count = sum(result.count for result in fixed)
    outcome.files = sum(result.changes for result in fixed)
    return outcome


def _makes(result: "Fixed", finding: "Finding") -> bool:
    return finding.fix is not None and result.file.config.makes(finding.fix)


def _show_changes(arguments: argparse.Namespace, fixed: "list[Fixed]", left: "list[Finding]") -> int:
    """Print what fixes would change: as bytes, which `patch` takes, or, on a terminal, for reading.

    `left` are the findings whose fixes the settings do not admit, or that have none.
    """
    from ta_lint.core import report
    from ta_lint.core.files import display, write_atomically
    from ta_lint.core.terminal import harmless, wants_color

    for finding in left:
        if finding.rule in _NOT_LOOKED_AT:
            where = f"{finding.site.path}:{finding.site.position}"
            print(f"ta-lint: warning: {harmless(f'{where}: {finding.message}')}", file=sys.stderr)
    changed = sorted((result for result in fixed if result.changes), key=lambda result: result.file.name)
    changes = b"".join(
        report.diff(result.before, result.after, display(result.file.path)) for result in changed
    )
    if arguments.output is not None:
        write_atomically(arguments.output, changes)
    elif sys.stdout.isatty():
        sys.stdout.write(report.readable(changes, color=wants_color(sys.stdout)))
    else:
        sys.stdout.flush()
        sys.stdout.buffer.write(changes)
    if not arguments.quiet:
        would = report.fixed(sum(result.count for result in changed), len(changed))
        said = f"Would have {would[0].lower()}{would[1:]}" if would else ""
        print(f"{said}{report.remedies(left, report.never)}", end="", file=sys.stderr)
    return FINDINGS if changed and not arguments.exit_zero else CLEAN


def _with_progress(
    results: "Iterator[T]", files: "list[File]", file_of: "Callable[[T], File]"
) -> "Iterator[T]":
    """Show a bar on a terminal while the run is long enough to wonder; it leaves no trace.

    It counts bytes: the largest files come first, and of files it would say that they take hours.
    """
    if len(files) < 20 or not sys.stderr.isatty():
        yield from results
        return
    import time

    began, done = time.monotonic(), 0
    for result in results:
        yield result
        done += file_of(result).size
        if time.monotonic() - began > 1:
            break
    else:
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as progress:
        bar = progress.add_task("Linting", total=sum(file.size for file in files), completed=done)
        for result in results:
            yield result
            progress.advance(bar, file_of(result).size)


def _report(
    arguments: argparse.Namespace,
    config: "Config",
    findings: "list[Finding]",
    root: Path,
    fixes: "Fixes",
    done: str,
    given: bytes | None,
) -> None:
    """Write the report; `done` says what was fixed, beside it where a machine reads it.

    `given` is what was linted instead of files; standard output is for it, where it was to be fixed.
    """
    from ta_lint.core import report
    from ta_lint.core.files import write_atomically
    from ta_lint.core.terminal import wants_color

    stream = sys.stderr if given is not None and arguments.fix else sys.stdout
    color = arguments.output is None and wants_color(stream)
    text = _rendered(arguments, config, findings, root, color, fixes, given)
    if not arguments.quiet:
        if arguments.format in ("text", "concise"):
            text = f"{text}{done}{report.summary(findings)}{report.remedies(findings, fixes)}"
        elif (
            stream is not sys.stderr or arguments.output is not None
        ):  # a machine reads nothing but the report
            print(done, end="", file=sys.stderr)
    if arguments.output is not None:
        write_atomically(arguments.output, text)
    else:
        stream.write(text)


def _rendered(
    arguments: argparse.Namespace,
    config: "Config",
    findings: "list[Finding]",
    root: Path,
    color: bool,
    fixes: "Fixes",
    given: bytes | None,
) -> str:
    from ta_lint.core import report
    from ta_lint.core.files import display

    @lru_cache(maxsize=1)  # a notebook may be large, and is asked for each of its cells
    def source_at(path: str) -> "Source":
        from ta_lint.core.source import read, source_of

        return source_of(path, given if given is not None else read(root / path))

    def read_lines(path: str, cell: int | None) -> list[str]:
        from ta_lint.core.errors import Unreadable

        try:
            source = source_at(path)
        except Unreadable:
            return []
        notebook = source.notebook
        return notebook.lines_of(cell) if notebook is not None and cell is not None else source.lines

    def shown(path: str) -> str:
        return display(root / path)

    if not arguments.statistics and arguments.format == "text":
        return report.text(findings, read_lines=read_lines, display=shown, color=color, fixes=fixes)
    if not arguments.statistics and arguments.format == "concise":
        return report.concise(findings, display=shown, color=color, fixes=fixes)
    from ta_lint.core.catalogue import catalogue

    rules = catalogue()
    if arguments.format == "sarif":
        from ta_lint.core.sarif import sarif_log

        known = config.baseline is not None
        seen = {rule.id: rule for rule in rules.values() if "static" in rule.observers}
        return sarif_log(findings, seen, version=__version__, root=root, baseline=known)
    if arguments.format == "github":
        return report.github(findings, rules)
    if arguments.format != "json":
        return report.statistics(findings, rules, color=color, fixes=fixes)
    from ta_lint.core.json_report import as_json, statistics_as_json

    if arguments.statistics:
        return statistics_as_json(findings, rules, fixes)
    return as_json(findings, rules)


def _settings(config: "Config") -> str:
    """The resolved settings as TOML, so that they can be copied."""
    import json

    from ta_lint.core.catalogue import catalogue
    from ta_lint.core.files import encodable

    with_fix = [rule.id for rule in catalogue().values() if rule.fix != "none" and rule.id in config.rules]
    settings: dict[str, object] = {
        "select": sorted(config.rules),
        "exclude": list(config.exclude),
        "respect-gitignore": config.respect_gitignore,
        "force-exclude": config.force_exclude,
        "fail-level": config.fail_level.value,
        "fixable": [rule for rule in with_fix if rule in config.fixable],
        "unfixable": [rule for rule in with_fix if rule not in config.fixable],
        "unsafe-fixes": config.unsafe_fixes,
        "extend-safe-fixes": sorted(config.declared_safe),
        "extend-unsafe-fixes": sorted(config.declared_unsafe),
    }
    if config.target_torch is not None:
        settings["target-torch"] = ".".join(map(str, config.target_torch))
    if config.baseline is not None:
        settings["baseline"] = str(config.baseline)
    if config.cache_dir is not None:
        settings["cache-dir"] = str(config.cache_dir)
    unset = [key for key in ("target-torch", "baseline", "cache-dir") if key not in settings]
    lines = [f"# {config.source}", "[tool.ta]"]
    lines += [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in settings.items()]
    lines += [f"# {key} is not set" for key in unset]
    lines += ["", "[tool.ta.per-file-ignores]"] * bool(config.per_file_ignores)
    lines += [
        f"{json.dumps(pattern, ensure_ascii=False)} = {json.dumps(rules)}"
        for pattern, rules in config.per_file_ignores
    ]
    return encodable("\n".join(lines) + "\n")
