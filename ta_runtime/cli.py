"""The command `ta-runtime`: its command line. What each command does is in `ta_runtime.commands`."""

import atexit
import contextlib
import os
import re
import signal
import sys
from collections.abc import Mapping

from ta_lint import __version__
from ta_lint.core.arguments import Parser, PrintCompletion, parsed
from ta_lint.core.errors import UsageError
from ta_lint.core.terminal import harmless
from ta_runtime import extras
from ta_runtime.commands import (
    ERROR,
    INTERRUPTED,
    audit,
    check,
    collect,
    diff,
    infer,
    preflight,
    report,
    run,
)
from ta_runtime.commands.program import Interrupted

_EPILOG = """\
examples:
  ta-runtime run train.py --lr 3e-4                  watch a script; arguments after its name belong to it
  ta-runtime run --lint train.py                     lint it first, and confirm or refute the findings
  ta-runtime preflight train.py --lr 3e-4            show what enters the model, up to the first step
  ta-runtime run --every 100 -m mypackage.train      a module, every 100th step audited in full
  ta-runtime run --output ta.sarif train.py          a file for code scanning
  torchrun --nproc-per-node 2 -m ta_runtime run train.py
                                                     every rank watches, rank 0 reports for all
  ta-runtime run --record runs/1 --snapshots "first 3" train.py
                                                     keep the numbers, for report and diff
  ta-runtime report runs/1                           one page of a run: losses, norms, layers, findings
  ta-runtime report runs/1 runs/2                    the curves of several runs together
  ta-runtime diff runs/1 runs/2                      the first thing that differs between two runs
  ta-runtime collect -o traces/1 train.py            trace a healthy run
  ta-runtime infer traces/1 -o invariants.json       learn what always holds in it
  ta-runtime check traces/2 -i invariants.json       where another traced run first breaks it
  ta-runtime audit models:Net --phase static         look at a model without training it
  ta-runtime audit train:build --phase init          at an optimizer: build() returns (model, optimizer)

`ta-lint rule TA102` explains a rule.
"""


_OBJECT = re.compile(r"[A-Za-z_][\w.]+:[A-Za-z_][\w.]*")

_ELSEWHERE = {
    "explain": "ta-lint explain",
    **{name: f"ta-lint {name}" for name in ("clean", "lint", "merge", "rule", "rules", "server")},
    "lint": "ta-lint check",
}
"""Words for a command that other tools have, and the commands of `ta-lint`."""


def main(argv: list[str] | None = None) -> int:
    """Run the command; returns its exit status."""
    if argv is None and os.name == "posix":
        atexit.register(_end_by_signal)  # first, and so after all that the program registers
    words = sys.argv[1:] if argv is None else argv
    if words and _OBJECT.fullmatch(words[0]):  # as the command line of torch-audit begins
        words = ["audit", *words]
    script = "to watch a script, write `ta-runtime run {}`"
    arguments = parsed(lambda _: _parser(), words, with_path=script, elsewhere=_ELSEWHERE)
    extras.asked_for(arguments.extra)
    try:
        status: int = arguments.run(arguments)
        return status
    except UsageError as error:
        print(f"ta-runtime: error: {harmless(str(error))}", file=sys.stderr)
        return ERROR
    except Interrupted:
        global _interrupted
        _interrupted = True
        return INTERRUPTED
    except KeyboardInterrupt:
        print("ta-runtime: interrupted", file=sys.stderr)
        return INTERRUPTED
    except OSError as error:  # standard output: what concerns a file is a UsageError
        if not isinstance(error, BrokenPipeError):  # a reader such as `head` may go when it likes
            what = error.filename or "cannot write the report"
            print(f"ta-runtime: error: {harmless(str(what))}: {error.strerror}", file=sys.stderr)
        return ERROR
    except Exception as error:  # noqa: BLE001 - status 1 would say that there are findings
        import traceback

        traceback.print_exc()
        kind = type(error).__name__
        print(
            f"ta-runtime: error: {kind}, a bug in ta-runtime: please report the traceback above",
            file=sys.stderr,
        )
        return ERROR


_interrupted = False


def _end_by_signal() -> None:
    """End as Python does where Ctrl-C ends a program: a shell then knows that it was the signal."""
    if not _interrupted:
        return
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):
            stream.flush()
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGINT)


def _parser() -> tuple[Parser, Mapping[str, Parser]]:
    parser = Parser(
        prog="ta-runtime",
        description="Watches PyTorch training and finds bugs that raise no error and train a worse model.",
        epilog=_EPILOG,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"ta-runtime {__version__}")
    audit.add_lists(parser)
    parser.add_argument("--print-completion", action=PrintCompletion, whole=lambda: _parser()[0])
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for command in (run, preflight, audit, diff, report, collect, infer, check):
        command.add(commands)
    return parser, commands.choices
