"""The command `ta-lint`."""

import argparse
import io
import os
import sys
from importlib import import_module

from ta_lint import __version__
from ta_lint.core.arguments import parsed

TYPE_CHECKING = False  # `typing` takes longer to load than all of this module
if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

FORMATS = ("text", "concise", "json", "sarif", "github")

_EPILOG = """\
examples:
  ta-lint check                                   lint every Python file and notebook below this folder
  ta-lint check train.py --select loop,TA4        only rules tagged loop, and all of TA4xx
  ta-lint check --fix                             make the safe fixes; --unsafe-fixes adds the others
  ta-lint check --watch                           again whenever a file is saved
  ta-lint check --format sarif --output ta.sarif  a file for code scanning
  ta-lint check - --stdin-filename train.py       what an editor holds; with --fix it gets it back, fixed
  ta-lint merge lint.sarif run.sarif              what a run says of what the linter suspects
  ta-lint rule TA600                              what a rule means, with examples
  ta-lint rules                                   every rule
  ta-lint clean                                   remove what is remembered of earlier runs

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

_SERVER = """\
Speaks the Language Server Protocol on standard input and output: findings while
you type, fixes and comments against findings as actions, and the page of a rule
where the pointer rests. Settings are those of `ta-lint check`, and the nearest
[tool.ta] holds for each file. It needs pip install 'ta-lint[server]'.
"""

_SERVER_EPILOG = """\
docs/editors.md has what to write in the settings of VS Code, Neovim, Helix, Emacs and Zed.

exit status: 0 the editor left, 1 it left without asking for a shutdown first, 2 pygls is not installed
"""

_SELECTOR = (
    "an id (TA600), a prefix (TA6), a name (missing-zero-grad), a tag (loop), or another tool's id (TOR102)"
)


def main(argv: list[str] | None = None) -> int:
    """Run the command; returns its exit status."""
    parser, known = _parser()
    arguments = parsed(
        parser, known, sys.argv[1:] if argv is None else argv, "to lint it, write `ta-lint check {}`"
    )
    if sys.stdout is None:  # closed by the caller
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    if isinstance(sys.stdout, io.TextIOWrapper):  # source text must not stop a terminal of a lesser encoding
        sys.stdout.reconfigure(errors="backslashreplace")
    from ta_lint.commands import ERROR, INTERRUPTED
    from ta_lint.core.errors import UsageError
    from ta_lint.core.terminal import harmless

    try:
        status: int = import_module(f"ta_lint.commands.{arguments.command}").run(arguments)
        sys.stdout.flush()
        return status
    except UsageError as error:
        print(f"ta-lint: error: {harmless(str(error))}", file=sys.stderr)
        return ERROR
    except KeyboardInterrupt:
        print("ta-lint: interrupted, nothing was written", file=sys.stderr)
        return INTERRUPTED
    except OSError as error:  # standard output: what concerns a file is a UsageError or a finding
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):  # a reader such as `head` may go when it likes
            what = error.filename or "cannot write the report"
            print(f"ta-lint: error: {harmless(str(what))}: {error.strerror}", file=sys.stderr)
        return ERROR
    except Exception as error:  # noqa: BLE001 - status 1 would say that there are findings
        import traceback

        traceback.print_exception(error, limit=-5, chain=False)  # a recursion has thousands
        kind = type(error).__name__
        print(f"ta-lint: error: {kind}, a defect of ta-lint: please report what is above", file=sys.stderr)
        return ERROR


def _parser() -> tuple[argparse.ArgumentParser, "Mapping[str, argparse.ArgumentParser]"]:
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(
        prog="ta-lint",
        description="Finds the bugs in PyTorch training code that run, look fine and train a worse model.",
        epilog=_EPILOG,
        formatter_class=raw,
    )
    parser.add_argument("--version", action="version", version=f"ta-lint {__version__}")
    commands = parser.add_subparsers(prog="ta-lint", metavar="COMMAND", required=True)

    check = commands.add_parser("check", help="lint files and folders", epilog=_EPILOG, formatter_class=raw)
    check.set_defaults(command="check")
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
    output.add_argument("--output", type=_file, metavar="FILE", help="write the report to a file")
    output.add_argument(
        "--statistics",
        action="store_true",
        help="count the findings of each rule instead (not with sarif, github)",
    )
    output.add_argument("--quiet", "-q", action="store_true", help="print findings and nothing else")
    output.add_argument("--fail-level", choices=("note", "warning", "error"),
                        help="the least severity that gives exit status 1 (default: warning)")  # fmt: skip
    output.add_argument("--exit-zero", action="store_true", help="exit 0 even with findings")
    output.add_argument(
        "--watch", "-w", action="store_true", help="stay, and lint again what changes, until Ctrl-C"
    )
    output.add_argument(
        "--profile",
        action="store_true",
        help="print afterwards, on standard error, which stages and rules took how long, in one process",
    )
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
        "--baseline", type=_file, metavar="FILE", help="do not count the findings recorded in FILE"
    )
    known.add_argument(
        "--update-baseline", action="store_true", help="record the present findings in the baseline"
    )
    settings = check.add_argument_group("settings")
    settings.add_argument(
        "--config", type=_file, metavar="FILE", help="use this file's [tool.ta] for every folder"
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

    # for benchmarks and tests: every check looks at every file whole, which must find the same
    settings.add_argument("--no-gates", action="store_true", help=argparse.SUPPRESS)

    cache = check.add_argument_group(
        "cache", "What was found in a file is remembered until the file, the settings or ta-lint change."
    )
    cache.add_argument("--no-cache", action="store_true", help="lint every file, and remember nothing")
    cache.add_argument(
        "--cache-dir",
        type=_path,
        metavar="DIR",
        help="where to remember (default: TA_CACHE_DIR, or .ta_cache in the project)",
    )

    clean = commands.add_parser(
        "clean",
        help="remove the cache",
        description="Removes the caches of the project and of all folders below PATH, and nothing else.",
    )
    clean.set_defaults(command="clean")
    clean.add_argument("path", nargs="?", type=_path, default=".", metavar="PATH", help="(default: .)")
    clean.add_argument("--cache-dir", type=_path, metavar="DIR", help="remove the cache in this folder too")
    clean.add_argument("--quiet", "-q", action="store_true", help="do not say what was removed")

    rule = commands.add_parser("rule", help="explain a rule")
    rule.set_defaults(command="rule")
    rule.add_argument("rule", metavar="ID|NAME", help="TA600, missing-zero-grad or another tool's id")

    merge = commands.add_parser(
        "merge",
        help="join what the linter suspects and what runs measured",
        description=_MERGE,
        epilog=_MERGE_EPILOG,
        formatter_class=raw,
    )
    merge.set_defaults(command="merge")
    merge.add_argument(
        "logs", nargs="+", type=_path, metavar="SARIF", help="logs of ta-lint and ta-runtime, in any order"
    )
    merge.add_argument("--output", "-o", type=_file, metavar="FILE", help="write the merged log, as SARIF")
    merge.add_argument("--format", choices=("table", "text", "concise", "json", "sarif", "github"), default="table",
                       help="how to report on standard output (default: table)")  # fmt: skip
    merge.add_argument("--quiet", "-q", action="store_true", help="print nothing beside --output")
    merge.add_argument("--fail-level", choices=("note", "warning", "error"), default="warning",
                       help="the least severity that gives exit status 1 (default: warning)")  # fmt: skip
    merge.add_argument("--exit-zero", action="store_true", help="exit 0 even with findings")

    server = commands.add_parser(
        "server",
        help="the language server, for editors",
        description=_SERVER,
        epilog=_SERVER_EPILOG,
        formatter_class=raw,
    )
    server.set_defaults(command="server")
    server.add_argument(
        "--stdio", action="store_true", help="what it does anyway: some editors add this argument"
    )

    listing = commands.add_parser("rules", help="list the rules, who sees them, and which have a fix")
    listing.set_defaults(command="rules")
    listing.add_argument("--format", choices=("text", "json"), default="text")
    return parser, commands.choices


def _listed(text: str) -> list[str]:
    names = text.replace(",", " ").split()
    if not names:
        raise argparse.ArgumentTypeError("no rule is named")
    return names


def _path(text: str) -> "Path":
    """A path, where `-` is standard input."""
    if text == "-":  # `./-` is a file of that name
        from ta_lint.commands import STDIN

        return STDIN
    if not text:  # an empty variable of a script: the whole folder is not what it meant
        raise argparse.ArgumentTypeError("the path is empty")
    return _file(text)


def _file(text: str) -> "Path":
    from pathlib import Path

    return Path(text)


def _positive(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of processes")
    return int(text)
