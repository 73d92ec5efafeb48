"""The arguments of `ta-lint check`, and which of them exclude each other."""

import argparse

from ta_lint.commands import EXAMPLES
from ta_lint.core.arguments import file, path
from ta_lint.core.errors import UsageError

_FORMATS = ("text", "concise", "json", "sarif", "github", "gitlab", "azure", "junit")
_COUNTED = ("text", "concise", "json")  # formats that `--statistics` has

_SELECTOR = (
    "an id (TA600), a prefix (TA6), a name (missing-zero-grad), a tag (loop), or another tool's id (TOR102)"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments in the groups of the help."""
    parser.epilog = EXAMPLES
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument(
        "paths",
        nargs="*",
        type=path,
        metavar="PATH",
        help="files and folders (default: .); - reads standard input",
    )
    parser.add_argument(
        "--stdin-filename",
        type=path,
        metavar="NAME",
        help="the name that what comes on standard input has: settings are looked up for it",
    )
    rules = parser.add_argument_group(
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
    output = parser.add_argument_group("output")
    output.add_argument(
        "--format",
        "--output-format",
        choices=_FORMATS,
        default="text",
        metavar="FORMAT",
        help=f"how to report: {', '.join(_FORMATS)} (default: text)",
    )
    output.add_argument("--output", type=file, metavar="FILE", help="write the report to a file")
    output.add_argument(
        "--statistics",
        action="store_true",
        help="count the findings of each rule instead, as text or json",
    )
    output.add_argument("--quiet", "-q", action="store_true", help="print findings and nothing else")
    output.add_argument("--fail-level", choices=("note", "warning", "error"),
                        help="the least severity that gives exit status 1 (default: warning)")  # fmt: skip
    output.add_argument(
        "--show-notes",
        action=argparse.BooleanOptionalAction,
        help="show notes in text too (default: only count them there, unless they give exit status 1)",
    )
    output.add_argument("--exit-zero", action="store_true", help="exit 0 even with findings")
    output.add_argument(
        "--watch", "-w", action="store_true", help="stay, and lint again what changes, until Ctrl-C"
    )
    output.add_argument(
        "--profile",
        action="store_true",
        help="print afterwards, on standard error, which stages and rules took how long, in one process",
    )
    fixing = parser.add_argument_group("fixing")
    fixing.add_argument(
        "--fix", action="store_true", help="make the safe fixes: what the program computes stays the same"
    )
    fixing.add_argument(
        "--unsafe-fixes", action=argparse.BooleanOptionalAction, help="count unsafe fixes among those to make"
    )
    fixing.add_argument("--diff", action="store_true", help="print what --fix would change; write nothing")
    fixing.add_argument("--exit-non-zero-on-fix", action="store_true", help="exit 1 if something was fixed")
    fixing.add_argument(
        "--add-noqa",
        action="store_true",
        help="suppress the findings by comments (`# noqa: TA600`), notes among them with --show-notes",
    )
    baseline = parser.add_argument_group("baseline")
    baseline.add_argument(
        "--baseline", type=file, metavar="FILE", help="do not count the findings recorded in FILE"
    )
    baseline.add_argument(
        "--update-baseline", action="store_true", help="record the present findings in the baseline"
    )
    settings = parser.add_argument_group("settings")
    settings.add_argument(
        "--config", type=file, metavar="FILE", help="use this file's settings for every folder"
    )
    settings.add_argument("--isolated", action="store_true", help="read no configuration file")
    settings.add_argument(
        "--force-exclude", action="store_true", help="exclude files even if named on the command line"
    )
    settings.add_argument(
        "--show-settings", action="store_true", help="print the settings of this folder and stop"
    )
    settings.add_argument("--show-files", action="store_true", help="print which files are linted and stop")
    settings.add_argument(
        "--jobs", "-j", type=_positive, metavar="N", help="processes (default: all cores, 1 for few files)"
    )

    # for benchmarks and tests: runs every check on every file, which must find the same
    settings.add_argument("--no-gates", action="store_true", help=argparse.SUPPRESS)

    cache = parser.add_argument_group(
        "cache", "What was found in a file is remembered until the file, the settings or ta-lint change."
    )
    cache.add_argument("--no-cache", action="store_true", help="lint every file, and remember nothing")
    cache.add_argument(
        "--cache-dir",
        type=path,
        metavar="DIR",
        help="where to remember (default: TA_CACHE_DIR, or .ta_cache in the project)",
    )


def refuse_contradictions(arguments: argparse.Namespace) -> None:
    """Refuse arguments that exclude each other.

    Raises:
        UsageError: two arguments contradict each other.
    """
    if arguments.profile:
        _refuse_beside_profile(arguments)
    if arguments.statistics and arguments.format not in _COUNTED:
        raise UsageError(f"--statistics: not with --format {arguments.format}, which lists every finding")
    if arguments.update_baseline and (arguments.fix or arguments.diff):
        raise UsageError(
            "--update-baseline: not together with --fix or --diff; fix first, then record what is left"
        )
    if arguments.add_noqa:
        _refuse_beside_add_noqa(arguments)
    if arguments.watch and not (arguments.show_settings or arguments.show_files):
        _refuse_beside_watch(arguments)


def _refuse_beside_profile(arguments: argparse.Namespace) -> None:
    if arguments.watch:
        raise UsageError("--profile: not together with --watch, which does not end")
    if arguments.jobs not in (None, 1):
        raise UsageError("--profile: it is of one process; leave --jobs out")


def _refuse_beside_add_noqa(arguments: argparse.Namespace) -> None:
    from ta_lint.core.files import STDIN  # not for `--help`: it loads `pathlib`

    beside = {
        "--fix": arguments.fix,
        "--diff": arguments.diff,
        "--update-baseline": arguments.update_baseline,
        "--output": arguments.output is not None,
        "-": any(path is STDIN for path in arguments.paths),
    }
    for option in (option for option, given in beside.items() if given):
        raise UsageError(
            f"--add-noqa: not together with {option}; it writes comments into files, and no report"
        )


def _refuse_beside_watch(arguments: argparse.Namespace) -> None:
    from ta_lint.core.files import STDIN  # not for `--help`: it loads `pathlib`

    beside = {
        "--fix": arguments.fix,  # an editor may have unsaved changes
        "--diff": arguments.diff,
        "--add-noqa": arguments.add_noqa,
        "--no-gates": arguments.no_gates,
        "--update-baseline": arguments.update_baseline,
        "--output": arguments.output is not None,
        f"--format {arguments.format}": arguments.format not in ("text", "concise"),
        "-": any(path is STDIN for path in arguments.paths),
        "--stdin-filename": arguments.stdin_filename is not None,
    }
    for option in (option for option, given in beside.items() if given):
        raise UsageError(
            f"--watch: not together with {option}; it shows findings to a reader, and writes nothing"
        )


def _listed(text: str) -> list[str]:
    names = text.replace(",", " ").split()
    if not names:
        raise argparse.ArgumentTypeError("no rule is named")
    return names


def _positive(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of processes")
    return int(text)
