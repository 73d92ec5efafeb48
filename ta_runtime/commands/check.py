"""`ta-runtime check`: a trace, held against invariants."""

import argparse
import dataclasses
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from ta_runtime.commands import Commands, auditing
from ta_runtime.commands.progress import progress

if TYPE_CHECKING:
    from ta_runtime.audit.session import Session
    from ta_runtime.invariants.checking import Checker
    from ta_runtime.invariants.invariant import Invariant
    from ta_runtime.runs import Run

_DESCRIPTION = """\
Checks a trace against the invariants that `ta-runtime infer` learned, and against those
of every training loop. Each violation is a finding (TA510) on the line that caused it,
with the step in which it first happened.
"""

_EPILOG = """\
examples:
  ta-runtime collect train.py -o healthy             a run that is known to be good
  ta-runtime infer healthy -o invariants.json        learn what always holds in it
  ta-runtime collect train.py -o suspect             another run
  ta-runtime check suspect -i invariants.json        where it first broke what held
  ta-runtime check suspect                           only against what holds for every loop
  ta-runtime check suspect -i invariants.json --output ta.sarif

`ta-runtime run --invariants invariants.json train.py` checks while it trains.

exit status: 0 clean, 1 findings at or above --fail-level, 2 wrong usage, a
damaged file, or a report that could not be written
"""


def add(commands: Commands) -> None:
    """Add its arguments to the command line."""
    parser = commands.add_parser(
        "check",
        help="check a trace against what healthy runs always do",
        usage="ta-runtime check [options] TRACE",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        allow_abbrev=False,
    )
    parser.set_defaults(run=run, parser=parser, extra="invariants")
    parser.add_argument("trace", metavar="TRACE", help="the folder of a trace, or a URL that fsspec knows")
    held = parser.add_argument_group("invariants")
    held.add_argument("--invariants", "-i", type=Path, action="append", default=[], metavar="FILE",
                      help="a file of `ta-runtime infer`; repeatable (default: only what holds for every loop)")  # fmt: skip
    held.add_argument("--no-shipped", action="store_true",
                      help="leave out the invariants of every loop, which come with ta-runtime")  # fmt: skip
    auditing.add_options(parser, script=False)


def run(arguments: argparse.Namespace) -> int:
    """Check the trace; returns the exit status."""
    auditing.need_torch()
    from ta_runtime.runs import Run  # isort: skip - it says how to get pyarrow, which the others need

    from ta_runtime.invariants.checking import Checker
    from ta_runtime.settings import VIOLATED, check_told

    trace = Run(arguments.trace)
    settings = auditing.settings(arguments, live=False)
    check_told(settings.rules, auditing.KEYS)
    settings = dataclasses.replace(settings, rules=settings.rules & {"TA000", VIOLATED})
    with auditing.own_stdout(arguments, sys.stdout) as stream:
        audit = auditing.made(arguments, settings, _script(trace), optimizers=[])  # nothing is to step
        audit.start()
        try:
            session = audit.session
            checker = Checker(_chosen(arguments), lambda text: session.fail(text, text))
            _check(trace, checker, session)
        finally:
            progress("")
            audit.stop()
        report = auditing.report(arguments, audit, stream)
    return auditing.status(arguments, audit, report)


def _check(trace: "Run", checker: "Checker", session: "Session") -> None:
    """Ask about what the trace breaks, and note what it does not show."""
    from ta_runtime.invariants import replay
    from ta_runtime.invariants.breaches import by_step, unseen

    found = replay.violations(trace, checker, lambda step: progress(f"checking step {step} ..."))
    for breach in by_step(found):
        session.ask("violation", breach, breach.step)
    for text in [replay.unequal(trace), *unseen(checker.not_seen)]:
        if text is not None:
            session.not_seen[text] = 1


def _chosen(arguments: argparse.Namespace) -> "Iterable[Invariant]":
    from ta_runtime.invariants import file, shipped

    return file.merged([*([] if arguments.no_shipped else [shipped.FILE]), *arguments.invariants])


def _script(trace: "Run") -> str:
    """The program that was traced, for what has no line of its own."""
    command = next(iter(trace.about.values())).get("command")
    words = command if isinstance(command, list) else str(command or "").split()
    return next((word for word in words if word.endswith(".py")), "")
