"""The command line of `ta-lint`. `ta_lint.commands` has the arguments and the work of each command."""

import io
import os
import sys
from importlib import import_module

from ta_lint import __version__
from ta_lint.commands import ERROR, EXAMPLES, INTERRUPTED
from ta_lint.core.arguments import Parser, PrintCompletion, parsed
from ta_lint.core.errors import UsageError

TYPE_CHECKING = False  # `typing` takes longer to load than all of this module
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_COMMANDS = {
    "check": "lint files and folders",
    "clean": "remove the cache",
    "explain": "tell a script's training as the linter understands it",
    "rule": "explain a rule",
    "merge": "join the reports of the linter and of runs",
    "server": "start the language server, for editors",
    "rules": "list the rules, with what each finds",
}

_ELSEWHERE = {
    "lint": "ta-lint check",
    **{
        name: f"ta-runtime {name}"
        for name in ("audit", "collect", "diff", "infer", "preflight", "report", "run")
    },
}
"""Words for a command that other tools have, and the commands of `ta-runtime`."""


def main(argv: list[str] | None = None) -> int:
    """Run the command; returns its exit status."""
    words = sys.argv[1:] if argv is None else argv
    advice = "to lint it, write `ta-lint check {}`"
    arguments = parsed(_parser, words, with_path=advice, elsewhere=_ELSEWHERE)
    if sys.stdout is None:  # closed by the caller
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    if isinstance(sys.stdout, io.TextIOWrapper):  # the terminal's encoding may lack a character
        sys.stdout.reconfigure(errors="backslashreplace")
    from ta_lint.commands.messages import complain

    try:
        status: int = import_module(f"ta_lint.commands.{arguments.command}").run(arguments)
        sys.stdout.flush()
        return status
    except UsageError as error:
        complain(str(error))
        return ERROR
    except KeyboardInterrupt:
        print("ta-lint: interrupted, nothing was written", file=sys.stderr)
        return INTERRUPTED
    except OSError as error:  # from standard output: errors with files are a UsageError or a finding
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):  # a reader such as `head` may stop early
            what = error.filename or "cannot write the report"
            complain(f"{what}: {error.strerror or error}")
        return ERROR
    except Exception as error:  # noqa: BLE001 - status 1 would mean findings
        import traceback

        traceback.print_exception(error, limit=-5, chain=False)  # a recursion has thousands of frames
        complain(f"{type(error).__name__}, a bug in ta-lint: please report the traceback above")
        return ERROR


def _parser(words: "Sequence[str]") -> tuple[Parser, "Mapping[str, Parser]"]:
    """The parser of a command line and those of its commands; only a named command is loaded."""
    parser = Parser(
        prog="ta-lint",
        description="Finds bugs in PyTorch training code that raise no error and train a worse model.",
        epilog=EXAMPLES,
    )
    parser.add_argument("--version", action="version", version=f"ta-lint {__version__}")
    parser.add_argument(
        "--print-completion", action=PrintCompletion, whole=lambda: _parser(list(_COMMANDS))[0]
    )
    commands = parser.add_subparsers(prog="ta-lint", metavar="COMMAND", required=True)
    for name, summary in _COMMANDS.items():
        command = commands.add_parser(name, help=summary)
        command.set_defaults(command=name)
        if name in words:
            import_module(f"ta_lint.commands.{name}").add_arguments(command)
    return parser, commands.choices
