"""`ta-runtime preflight`: a script up to its first step, and what is about to enter the model."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from ta_lint.core.errors import UsageError
from ta_runtime.commands import CLEAN, ERROR, Commands, auditing, launching
from ta_runtime.commands.program import finished
from ta_runtime.commands.progress import progress

if TYPE_CHECKING:
    from ta_runtime.preflight.briefing import Briefing

_DESCRIPTION = """\
Runs a script up to its first optimizer step and stops there, so nothing is trained.
Shows what enters the model: the first batches with ranges and labels, and duplicates
within the training data and between training and validation. Of a language model it
shows rows as text, with what the loss learns from. Then it tries the model
on copies of its weights: whether samples of a batch affect each other, and whether
the loss of one batch can fall.
"""

_EPILOG = """\
examples:
  ta-runtime preflight train.py --lr 3e-4
  ta-runtime preflight --output ta.sarif -m mypackage.train

exit status: 0 clean, 1 findings at or above --fail-level, 2 wrong usage, no
optimizer step, or a report that could not be written; that of the script if it fails
before its first step; 130 interrupted
"""


def add(commands: Commands) -> None:
    """Add its arguments to the command line."""
    parser = commands.add_parser(
        "preflight",
        help="run a script up to its first step, and show what enters the model",
        usage="ta-runtime preflight [options] SCRIPT [ARGS ...]\n"
        "       ta-runtime preflight [options] -m MODULE [ARGS ...]",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        allow_abbrev=False,  # what looks like one may be the script's
    )
    parser.set_defaults(run=run, parser=parser, extra="runtime")
    launching.add_program(parser)
    parser.add_argument(
        "--page",
        type=Path,
        metavar="FILE",
        help="write what is shown, and the findings, as a page of HTML as well",
    )
    auditing.add_options(parser, script=False)


def run(arguments: argparse.Namespace) -> int:
    """Run the program up to its first step; returns the exit status."""
    if not launching.words(arguments):
        usage = "`ta-runtime preflight SCRIPT`, or `ta-runtime preflight -m MODULE`"
        raise UsageError(f"name a script or module: {usage}")
    program = launching.program(arguments)
    auditing.need_torch()
    from ta_runtime import api, ranks  # and torch, for seconds: not before it is known what to run
    from ta_runtime.preflight.flight import Preflight, PreflightOver
    from ta_runtime.reports import ReportFile

    page = ReportFile(arguments.page, "html") if arguments.page is not None else None
    settings = auditing.settings(arguments, every_n_steps=1, live=False, looks_at_data=True)
    with auditing.own_stdout(arguments, sys.stdout) as stream:
        audit = auditing.made(arguments, settings, program.path)
        flight = Preflight(audit, lambda briefing: None, stops=True, progress=progress)
        api.begin(audit, command=True)
        flight.attach()
        status, error = finished(program)
        if not isinstance(error, (PreflightOver, KeyboardInterrupt)):
            flight.finish()
        api.leave(audit)
        if ranks.rank() != 0:  # rank 0 speaks for all
            return status
        _show(arguments, flight.briefing, stream, settings.root)
        report = auditing.report(arguments, audit, stream)
    if page is not None:
        from ta_runtime.preflight.page import as_html
        from ta_runtime.storage import replace

        replace(page.path, as_html(flight.briefing, audit.findings, settings.root))
    if status != CLEAN:
        return status
    if not flight.done:
        print("ta-runtime: the script ended without an optimizer step", file=sys.stderr)
        return ERROR
    return auditing.status(arguments, audit, report)


def _show(arguments: argparse.Namespace, briefing: "Briefing", stream: TextIO, root: Path) -> None:
    """What was seen, before the findings."""
    from ta_lint.core.terminal import wants_color
    from ta_runtime.preflight import text

    if not arguments.quiet and auditing.form(arguments) == "text":
        stream.write(text.rendered(briefing, root, color=wants_color(stream)) + "\n")
