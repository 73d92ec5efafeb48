"""The arguments of `ta-lint check`, and which of them exclude each other."""

import argparse

from ta_lint.commands import EXAMPLES
from ta_lint.core.arguments import Parser, file, path
from ta_lint.core.errors import UsageError

_FORMATS = ("text", "concise", "json", "sarif", "github", "gitlab", "azure", "junit")
_COUNTED = ("text", "concise", "json")  # formats that `--statistics` has

_SELECTOR = (
    "an id (TA600), a prefix (TA6), a name (missing-zero-grad), a tag (loop), or another tool's id (TOR102)"
)


def add_arguments(parser: Parser) -> None:
    """Declare the arguments in the groups of the help."""
    parser.works_alone = True
    parser.usage = "ta-lint check [options] [PATH ...]"
    parser.description = "Lints Python files and notebooks; without PATH, all below this folder."
    parser.epilog = EXAMPLES
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
        help="file name of the standard input; its settings apply",
    )
    rules = parser.add_argument_group("rules", f"RULES: {_SELECTOR}; separate several by commas.")
    rules.add_argument(
        "--select", type=_listed, action="extend", metavar="RULES", help="run only these rules"
    )
    rules.add_argument(
        "--extend-select", type=_listed, action="extend", metavar="RULES", help="also run these"
    )
    rules.add_argument("--ignore", type=_listed, action="extend", metavar="RULES", help="do not run these")
    rules.add_argument(
        "--target-torch", metavar="VERSION", help="oldest torch that the code must run on, such as 2.3"
    )
    output = parser.add_argument_group("output")
    output.add_argument(
        "--format",
        "--output-format",
        "-f",
        choices=_FORMATS,
        default="text",
        metavar="FORMAT",
        help=f"report as {', '.join(_FORMATS)} (default: text)",
    )
    output.add_argument("--output", "-o", type=file, metavar="FILE", help="write the report to a file")
    output.add_argument(
        "--statistics",
        action="store_true",
        help="print the number of findings of each rule instead, as text, concise or json",
    )
    output.add_argument("--quiet", "-q", action="store_true", help="print only findings")
    output.add_argument("--fail-level", choices=("note", "warning", "error"),
                        help="lowest severity that makes the exit status 1 (default: warning)")  # fmt: skip
    output.add_argument(
        "--show-notes",
        action=argparse.BooleanOptionalAction,
        help="show notes in the text report (default: only count them, unless they make the exit status 1)",
    )
    output.add_argument("--exit-zero", action="store_true", help="exit with 0 even if there are findings")
    output.add_argument(
        "--watch", "-w", action="store_true", help="lint again whenever a file changes, until Ctrl-C"
    )
    output.add_argument(
        "--profile",
        action="store_true",
        help="print the time of each stage and rule to standard error; uses one process",
    )
    fixing = parser.add_argument_group("fixing")
    fixing.add_argument(
        "--fix",
        action="store_true",
        help="make the safe fixes, which do not change what the program computes",
    )
    fixing.add_argument(
        "--unsafe-fixes",
        action=argparse.BooleanOptionalAction,
        help="also make fixes that change what the program computes",
    )
    fixing.add_argument(
        "--diff", action="store_true", help="print what --fix would change, and write nothing"
    )
    fixing.add_argument(
        "--show-fixes",
        action="store_true",
        help="with --fix, list how often each rule was fixed in each file",
    )
    fixing.add_argument(
        "--exit-non-zero-on-fix", action="store_true", help="exit with 1 if something was fixed"
    )
    fixing.add_argument(
        "--add-noqa",
        action="store_true",
        help="suppress findings by comments (`# noqa: TA600`); with --show-notes also notes",
    )
    baseline = parser.add_argument_group("baseline")
    baseline.add_argument(
        "--baseline", type=file, metavar="FILE", help="do not count the findings recorded in FILE"
    )
    baseline.add_argument(
        "--update-baseline", action="store_true", help="record the current findings in the baseline"
    )
    settings = parser.add_argument_group("settings")
    settings.add_argument(
        "--config", type=file, metavar="FILE", help="use this file's settings for every folder"
    )
    settings.add_argument("--isolated", action="store_true", help="read no configuration file")
    settings.add_argument(
        "--force-exclude", action="store_true", help="apply exclude to files named on the command line, too"
    )
    settings.add_argument(
        "--show-settings", action="store_true", help="print the settings of this folder, or of PATH, and exit"
    )
    settings.add_argument("--show-files", action="store_true", help="print the files to lint and exit")
    settings.add_argument(
        "--jobs",
        "-j",
        type=_positive,
        metavar="N",
        help="number of processes (default: all cores, 1 for few files)",
    )

    # for benchmarks and tests: runs every check on every file, which must find the same
    settings.add_argument("--no-gates", action="store_true", help=argparse.SUPPRESS)

    cache = parser.add_argument_group(
        "cache",
        "Findings are kept until the file, the settings or ta-lint change; what files import and define, until they do.",
    )
    cache.add_argument("--no-cache", action="store_true", help="lint every file, and keep nothing")
    cache.add_argument(
        "--cache-dir",
        type=path,
        metavar="DIR",
        help="folder of the cache (default: TA_CACHE_DIR, or .ta_cache in the project)",
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
    if arguments.show_fixes and (arguments.diff or not arguments.fix):
        raise UsageError("--show-fixes: lists what --fix changed; give it with --fix and without --diff")
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
        raise UsageError("--profile: uses one process; leave --jobs out")


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
            f"--add-noqa: not together with {option}; it writes comments into files instead of a report"
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
        raise UsageError(f"--watch: not together with {option}; it only shows findings")


def _listed(text: str) -> list[str]:
    names = text.replace(",", " ").split()
    if not names:
        raise argparse.ArgumentTypeError("no rule is named")
    return names


def _positive(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of processes")
    return int(text)
