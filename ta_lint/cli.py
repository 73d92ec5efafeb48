"""The command `ta-lint`."""

import argparse
import io
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from ta_lint import __version__

if TYPE_CHECKING:
    from ta_lint.core.config import Config, Options
    from ta_lint.core.finding import Finding
    from ta_lint.engine import File
    from ta_lint.fixing import Fixed
    from ta_lint.merging import Merged
    from ta_lint.runner import Result

    Fixes = Callable[[Finding], bool]

T = TypeVar("T")

FORMATS = ("text", "concise", "json", "sarif", "github")
CLEAN, FINDINGS, ERROR, INTERRUPTED = 0, 1, 2, 130

_STDIN = Path("-")

_EPILOG = """\
examples:
  ta-lint check                                   lint every Python file and notebook below this folder
  ta-lint check train.py --select loop,TA4        only rules tagged loop, and all of TA4xx
  ta-lint check --fix                             make the safe fixes; --unsafe-fixes adds the others
  ta-lint check --format sarif --output ta.sarif  a file for code scanning
  ta-lint check - --stdin-filename train.py       what an editor holds; with --fix it gets it back, fixed
  ta-lint merge lint.sarif run.sarif              what a run says of what the linter suspects
  ta-lint rule TA600                              what a rule means, with examples
  ta-lint rules                                   every rule

exit status: 0 clean, 1 findings at or above --fail-level, or with --diff something to fix,
             2 wrong usage or a file that could not be written, 130 interrupted
"""

_MERGE = """\
Joins the SARIF of a lint with that of runs: each suspicion of the source ends as
confirmed, refuted or unobserved, with what was measured. What only a run found
stays. A refuted finding is suppressed, with the numbers as its justification.
Files may have been edited in between: places are matched by fingerprint, not by
line. One run or rank that confirms outweighs all that refute.
"""

_MERGE_EPILOG = """\
examples:
  ta-lint merge lint.sarif run.sarif -o ta.sarif      one log for code scanning
  ta-lint merge lint.sarif nightly/*.sarif            of many runs: the verdicts as a table
  ta-lint merge ta.sarif new-run.sarif -o ta.sarif    what was merged may be merged again

exit status: 0 clean, 1 findings at or above --fail-level that no run refutes,
             2 wrong usage, or a file that cannot be read or written
"""

_SELECTOR = (
    "an id (TA600), a prefix (TA6), a name (missing-zero-grad), a tag (loop), or another tool's id (TOR102)"
)


def main(argv: list[str] | None = None) -> int:
    """Run the command; returns its exit status."""
    arguments = _parser().parse_args(argv)
    if sys.stdout is None:  # closed by the caller
        sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115
    if isinstance(sys.stdout, io.TextIOWrapper):  # source text must not stop a terminal of a lesser encoding
        sys.stdout.reconfigure(errors="backslashreplace")
    from ta_lint.core.errors import UsageError

    try:
        status: int = arguments.run(arguments)
        sys.stdout.flush()
        return status
    except UsageError as error:
        print(f"ta-lint: error: {error}", file=sys.stderr)
        return ERROR
    except KeyboardInterrupt:
        print("ta-lint: interrupted, nothing was written", file=sys.stderr)
        return INTERRUPTED
    except OSError as error:  # standard output: what concerns a file is a UsageError or a finding
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):  # a reader such as `head` may go when it likes
            what = error.filename or "cannot write the report"
            print(f"ta-lint: error: {what}: {error.strerror}", file=sys.stderr)
        return ERROR
    except Exception as error:  # noqa: BLE001 - status 1 would say that there are findings
        import traceback

        traceback.print_exc()
        kind = type(error).__name__
        print(f"ta-lint: error: {kind}, a defect of ta-lint: please report what is above", file=sys.stderr)
        return ERROR


def _parser() -> argparse.ArgumentParser:
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(
        prog="ta-lint",
        description="Finds the bugs in PyTorch training code that run, look fine and train a worse model.",
        epilog=_EPILOG,
        formatter_class=raw,
    )
    parser.add_argument("--version", action="version", version=f"ta-lint {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)

    check = commands.add_parser("check", help="lint files and folders", epilog=_EPILOG, formatter_class=raw)
    check.set_defaults(run=_check)
    check.add_argument(
        "paths",
        nargs="*",
        type=_path,
        metavar="PATH",
        help="files and folders (default: .); - reads standard input",
    )
    check.add_argument(
        "--stdin-filename",
        type=_path,
        metavar="NAME",
        help="the name that what comes on standard input has: settings are looked up for it",
    )
    rules = check.add_argument_group(
        "rules", f"A rule is named by {_SELECTOR}; several are separated by commas."
    )
    rules.add_argument(
        "--select", type=_listed, action="extend", metavar="RULES", help="run these rules alone"
    )
    rules.add_argument(
        "--extend-select", type=_listed, action="extend", metavar="RULES", help="run these as well"
    )
    rules.add_argument("--ignore", type=_listed, action="extend", metavar="RULES", help="do not run these")
    rules.add_argument(
        "--target-torch", metavar="VERSION", help="oldest torch the code must run on, such as 2.3"
    )
    output = check.add_argument_group("output")
    output.add_argument("--format", choices=FORMATS, default="text", help="how to report (default: text)")
    output.add_argument("--output", type=Path, metavar="FILE", help="write the report to a file")
    output.add_argument(
        "--statistics",
        action="store_true",
        help="count the findings of each rule instead (not with sarif, github)",
    )
    output.add_argument("--quiet", "-q", action="store_true", help="print findings and nothing else")
    output.add_argument("--fail-level", choices=("note", "warning", "error"),
                        help="the least severity that gives exit status 1 (default: warning)")  # fmt: skip
    output.add_argument("--exit-zero", action="store_true", help="exit 0 even with findings")
    fixing = check.add_argument_group("fixing")
    fixing.add_argument(
        "--fix", action="store_true", help="make the safe fixes: what the program computes stays the same"
    )
    fixing.add_argument(
        "--unsafe-fixes", action=argparse.BooleanOptionalAction, help="count unsafe fixes among those to make"
    )
    fixing.add_argument("--diff", action="store_true", help="print what --fix would change; write nothing")
    fixing.add_argument("--exit-non-zero-on-fix", action="store_true", help="exit 1 if something was fixed")
    known = check.add_argument_group("baseline")
    known.add_argument(
        "--baseline", type=Path, metavar="FILE", help="do not count the findings recorded in FILE"
    )
    known.add_argument(
        "--update-baseline", action="store_true", help="record the present findings in the baseline"
    )
    settings = check.add_argument_group("settings")
    settings.add_argument(
        "--config", type=Path, metavar="FILE", help="use this file's [tool.ta] for every folder"
    )
    settings.add_argument("--isolated", action="store_true", help="read no configuration file")
    settings.add_argument(
        "--force-exclude", action="store_true", help="exclude files even if named on the command line"
    )
    settings.add_argument(
        "--show-settings", action="store_true", help="print the settings of this folder and stop"
    )
    settings.add_argument(
        "--jobs", "-j", type=_positive, metavar="N", help="processes (default: all cores, 1 for few files)"
    )

    rule = commands.add_parser("rule", help="explain a rule")
    rule.set_defaults(run=_rule)
    rule.add_argument("rule", metavar="ID|NAME", help="TA600, missing-zero-grad or another tool's id")

    merge = commands.add_parser(
        "merge",
        help="join what the linter suspects and what runs measured",
        description=_MERGE,
        epilog=_MERGE_EPILOG,
        formatter_class=raw,
    )
    merge.set_defaults(run=_merge)
    merge.add_argument(
        "logs", nargs="+", type=_path, metavar="SARIF", help="logs of ta-lint and ta-runtime, in any order"
    )
    merge.add_argument("--output", "-o", type=Path, metavar="FILE", help="write the merged log, as SARIF")
    merge.add_argument("--format", choices=("table", "text", "concise", "json", "sarif", "github"), default="table",
                       help="how to report on standard output (default: table)")  # fmt: skip
    merge.add_argument("--quiet", "-q", action="store_true", help="print nothing beside --output")
    merge.add_argument("--fail-level", choices=("note", "warning", "error"), default="warning",
                       help="the least severity that gives exit status 1 (default: warning)")  # fmt: skip
    merge.add_argument("--exit-zero", action="store_true", help="exit 0 even with findings")

    listing = commands.add_parser("rules", help="list the rules, who sees them, and which have a fix")
    listing.set_defaults(run=_rules)
    listing.add_argument("--format", choices=("text", "json"), default="text")
    return parser


def _listed(text: str) -> list[str]:
    names = text.replace(",", " ").split()
    if not names:
        raise argparse.ArgumentTypeError("no rule is named")
    return names


def _path(text: str) -> Path:
    if not text:  # an empty variable of a script: the whole folder is not what it meant
        raise argparse.ArgumentTypeError("the path is empty")
    return _STDIN if text == "-" else Path(text)  # `./-` is a file of that name


def _positive(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of processes")
    return int(text)


# -- check ----------------------------------------------------------------------------------------------------


def _check(arguments: argparse.Namespace) -> int:
    from ta_lint.core import baseline, report
    from ta_lint.core.config import Configs, project_root
    from ta_lint.core.errors import UsageError
    from ta_lint.core.files import display, encodable
    from ta_lint.discovery import discover, named
    from ta_lint.runner import fix_files, lint_files

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
    configs = Configs(_options(arguments), cwd)
    config = configs.root_config
    if arguments.show_settings:
        print(_settings(config), end="")
        return CLEAN
    if arguments.update_baseline and config.baseline is None:
        raise UsageError("--update-baseline: name the file with --baseline FILE, or set [tool.ta] baseline")
    accepted = []
    if config.baseline is not None and (config.baseline.exists() or not arguments.update_baseline):
        accepted = baseline.load(config.baseline)
    root = project_root(cwd)
    given = _standard_input(arguments)
    if given is not None:
        files = named(arguments.stdin_filename or _STDIN, given, configs, root)
    else:
        files = discover(arguments.paths or [Path()], configs, root)
    if not files and given is None:
        print("ta-lint: warning: no Python files to lint under the given paths", file=sys.stderr)
    outcome = None
    if arguments.fix or arguments.diff:
        fingerprints = frozenset(entry.fingerprint for entry in accepted)
        fixed = list(_with_progress(fix_files(files, fingerprints, arguments.jobs), len(files)))
        for complaint in (complaint for result in fixed for complaint in result.complaints):
            print(f"ta-lint: warning: {encodable(complaint)}", file=sys.stderr)
        if arguments.diff:
            left = [finding for result in fixed for finding in result.findings if not _makes(result, finding)]
            return _show_changes(arguments, fixed, baseline.marked(left, accepted)[0])
        if given is None:
            outcome = _saved(fixed)
        else:
            given = fixed[0].after if fixed else given
            outcome = _handed_back(fixed, given)
        findings = _ordered([*outcome.linted, *lint_files(outcome.unwritten, 1)])
    else:
        findings = _ordered(_with_progress(lint_files(files, arguments.jobs), len(files)))

    findings, stale = baseline.marked(findings, accepted)
    enabled = {encodable(file.name): file.config.rules for file in files}
    judged = [
        entry
        for entry in stale
        if entry.rule in enabled.get(entry.path, ()) or not (root / entry.path).exists()
    ]
    if arguments.update_baseline:
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
    if judged and config.baseline is not None and not arguments.quiet:
        entries = "1 entry" if len(judged) == 1 else f"{len(judged)} entries"
        matches = "matches" if len(judged) == 1 else "match"
        where = display(config.baseline)
        print(
            f"ta-lint: {entries} of {where} {matches} nothing; --update-baseline drops them", file=sys.stderr
        )
    if outcome is not None and outcome.unwritten:
        return ERROR
    failing = any(finding.counts and finding.severity.rank >= config.fail_level.rank for finding in findings)
    failing = failing or (arguments.exit_non_zero_on_fix and outcome is not None and outcome.count > 0)
    return FINDINGS if failing and not arguments.exit_zero else CLEAN


def _standard_input(arguments: argparse.Namespace) -> bytes | None:
    """What standard input holds, where `-` asks for it."""
    from ta_lint.core.errors import UsageError

    if not any(path is _STDIN for path in arguments.paths):
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
    from ta_lint.core.config import Options
    from ta_lint.core.finding import Severity

    return Options(
        select=arguments.select,
        extend_select=arguments.extend_select or [],
        ignore=arguments.ignore or [],
        target_torch=arguments.target_torch,
        fail_level=Severity(arguments.fail_level) if arguments.fail_level else None,
        baseline=arguments.baseline,
        unsafe_fixes=arguments.unsafe_fixes,
        force_exclude=arguments.force_exclude,
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


@dataclass
class _Outcome:
    """What `--fix` has done: the files as they are now, and those that could not be written."""

    linted: "list[Result]" = field(default_factory=list)
    unwritten: "list[File]" = field(default_factory=list)
    count: int = 0
    files: int = 0


def _saved(fixed: "list[Fixed]") -> _Outcome:
    """Write the files that fixes changed, each at once or not at all."""
    from ta_lint.core.errors import UsageError
    from ta_lint.fixing import save

    outcome = _Outcome()
    try:
        for result in sorted(fixed, key=lambda result: result.file.name):
            if result.changes:
                try:
                    save(result)
                except UsageError as error:
                    print(f"ta-lint: error: {error}", file=sys.stderr)
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
    outcome = _Outcome(linted=[(result.file, result.findings) for result in fixed])
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

    changed = sorted((result for result in fixed if result.changes), key=lambda result: result.file.name)
    changes = b"".join(
        report.diff(result.before, result.after, display(result.file.path)) for result in changed
    )
    if arguments.output is not None:
        write_atomically(arguments.output, changes)
    elif sys.stdout.isatty():
        sys.stdout.write(report.readable(changes, color=_colors()))
    else:
        sys.stdout.flush()
        sys.stdout.buffer.write(changes)
    if not arguments.quiet:
        would = report.fixed(sum(result.count for result in changed), len(changed))
        said = f"Would have {would[0].lower()}{would[1:]}" if would else ""
        print(f"{said}{report.remedies(left, report.never)}", end="", file=sys.stderr)
    return FINDINGS if changed and not arguments.exit_zero else CLEAN


def _colors() -> bool:
    return not (os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb")


def _with_progress(results: "Iterator[T]", total: int) -> "Iterator[T]":
    """Show a bar on a terminal while the run is long enough to wonder; it leaves no trace."""
    if total < 50 or not sys.stderr.isatty():
        yield from results
        return
    from rich.console import Console
    from rich.progress import track

    yield from track(results, "Linting", total, console=Console(stderr=True), transient=True)


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

    stream = sys.stderr if given is not None and arguments.fix else sys.stdout
    color = arguments.output is None and stream.isatty() and _colors()
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
    from ta_lint.core.catalogue import catalogue
    from ta_lint.core.files import display
    from ta_lint.core.source import Source, Unreadable, read, source_of

    @lru_cache(maxsize=1)  # a notebook may be large, and is asked for each of its cells
    def source_at(path: str) -> Source:
        return source_of(path, given if given is not None else read(root / path))

    def read_lines(path: str, cell: int | None) -> list[str]:
        try:
            source = source_at(path)
        except Unreadable:
            return []
        notebook = source.notebook
        return notebook.lines_of(cell) if notebook is not None and cell is not None else source.lines

    rules = catalogue()
    if arguments.format == "sarif":
        from ta_lint.core.sarif import sarif_log

        known = config.baseline is not None
        seen = {rule.id: rule for rule in rules.values() if "static" in rule.observers}
        return sarif_log(findings, seen, version=__version__, root=root, baseline=known)
    if arguments.format == "json":
        if arguments.statistics:
            return report.statistics_as_json(findings, rules, fixes)
        return report.as_json(findings, rules)
    if arguments.format == "github":
        return report.github(findings, rules)
    if arguments.statistics:
        return report.statistics(findings, rules, color=color, fixes=fixes)
    if arguments.format == "concise":
        return report.concise(findings, display=lambda path: display(root / path), color=color, fixes=fixes)
    return report.text(
        findings, read_lines=read_lines, display=lambda path: display(root / path), color=color, fixes=fixes
    )


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
    unset = [key for key in ("target-torch", "baseline") if key not in settings]
    lines = [f"# {config.source}", "[tool.ta]"]
    lines += [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in settings.items()]
    lines += [f"# {key} is not set" for key in unset]
    lines += ["", "[tool.ta.per-file-ignores]"] * bool(config.per_file_ignores)
    lines += [
        f"{json.dumps(pattern, ensure_ascii=False)} = {json.dumps(rules)}"
        for pattern, rules in config.per_file_ignores
    ]
    return encodable("\n".join(lines) + "\n")


# -- merge ----------------------------------------------------------------------------------------------------


def _merge(arguments: argparse.Namespace) -> int:
    from ta_lint.core.errors import UsageError
    from ta_lint.core.files import write_atomically
    from ta_lint.core.finding import Severity
    from ta_lint.merging import merged

    if any(path is _STDIN for path in arguments.logs):
        raise UsageError("-: name the files of the logs; standard input is not read")
    result = merged(arguments.logs)
    if arguments.output is not None:
        write_atomically(arguments.output, result.sarif)
    if not (arguments.quiet and arguments.output is not None):
        sys.stdout.write(_merged_report(arguments.format, result))
    level = Severity(arguments.fail_level).rank
    failing = any(finding.counts and finding.severity.rank >= level for finding in result.findings)
    return FINDINGS if failing and not arguments.exit_zero else CLEAN


def _merged_report(form: str, result: "Merged") -> str:
    from ta_lint.core import report
    from ta_lint.core.catalogue import catalogue

    color = sys.stdout.isatty() and _colors()
    if form == "sarif":
        return result.sarif
    if form == "table":
        return result.table(color=color)
    if form == "json":
        return report.as_json(result.findings, catalogue())
    if form == "github":
        return report.github(result.findings, catalogue())
    if form == "concise":
        return report.concise(result.findings, display=str, color=color)
    return report.text(
        result.findings, read_lines=lambda path, cell: [], display=str, color=color
    ) + report.summary(result.findings)


# -- rule, rules ----------------------------------------------------------------------------------------------


def _rule(arguments: argparse.Namespace) -> int:
    from ta_lint.core.catalogue import find

    page = "\n".join(rule.page for rule in find(arguments.rule))
    if sys.stdout.isatty():
        from rich.console import Console
        from rich.markdown import Markdown

        Console().print(Markdown(page))
    else:
        print(page, end="")
    return CLEAN


def _rules(arguments: argparse.Namespace) -> int:
    from ta_lint.core.catalogue import catalogue

    rules = catalogue().values()
    if arguments.format == "json":
        import json

        fields = (
            "id",
            "name",
            "severity",
            "observers",
            "default",
            "precision",
            "fix",
            "tags",
            "since",
            "also",
            "summary",
            "url",
        )
        print(json.dumps([{field: getattr(rule, field) for field in fields} for rule in rules], indent=2))
        return CLEAN
    for rule in rules:
        state = "on" if rule.default else "opt-in"
        seen = "+".join(rule.observers)
        fix = f"{rule.fix} fix" if rule.fix != "none" else ""
        print(
            f"{rule.id}  {rule.name:<38} {rule.severity.value:<8} {state:<7} {seen:<15} {fix:<11} "
            f"{', '.join(rule.tags)}"
        )
    return CLEAN
