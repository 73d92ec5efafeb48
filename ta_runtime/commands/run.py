"""`ta-runtime run`: a script, watched."""

import argparse
from pathlib import Path

from ta_lint.core.errors import UsageError, oneline
from ta_lint.core.terminal import standard_error
from ta_runtime import extras
from ta_runtime.commands import CLEAN, FINDINGS, Commands, auditing, launching
from ta_runtime.commands.program import Interrupted, finished
from ta_runtime.faults import Shield, after_the_run

_DESCRIPTION = """\
Runs a script like Python does, and watches its training steps. New findings are
printed on standard error at once, and a table ends the run; the script's standard
output stays as it is. With --output, the report is rewritten at each finding, so a
job that is killed leaves a report. Put options of ta-runtime before the name of the
script; arguments after it belong to the script.
"""

_EPILOG = """\
examples:
  ta-runtime run train.py --lr 3e-4
  ta-runtime run --lint train.py                    confirm or refute the linter's findings
  ta-runtime run --every 100 --output ta.sarif -m mypackage.train
  ta-runtime run --fail-level error train.py        fail a CI job on an error
  ta-runtime run --record runs/1 train.py           keep the numbers, for report and diff

exit status: that of the script; 2 wrong usage. If the script exits with 0: with
--fail-level, 1 if there are such findings; with that or --update-baseline, 2 if
nothing could be written
"""


def add(commands: Commands) -> None:
    """Add its arguments to the command line."""
    parser = commands.add_parser(
        "run",
        help="run a script and watch its training steps",
        usage="ta-runtime run [options] SCRIPT [ARGS ...]\n       ta-runtime run [options] -m MODULE [ARGS ...]",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        allow_abbrev=False,  # what looks like one may be the script's
    )
    parser.set_defaults(run=run, parser=parser, extra="runtime")
    launching.add_program(parser)
    parser.add_argument(
        "--lint",
        action="store_true",
        help="lint the script and the project modules that it imports first, and end with a verdict on each finding:"
        " confirmed, refuted or unobserved",
    )
    steps = parser.add_argument_group("steps")
    steps.add_argument("--overhead", type=_share, metavar="SHARE",
                       help="audit the first steps in full, then as many as this share of the time allows (default: 3%%)")  # fmt: skip
    steps.add_argument("--every", type=launching.steps(0), metavar="N",
                       help="audit the first step and every N-th instead, whatever it costs; 0: none (default with --record: 100)")  # fmt: skip
    steps.add_argument("--gradients-every", type=launching.steps(0), metavar="N",
                       help="read gradients and loss in every N-th step; 0: never (default: as --overhead allows; with --every or"
                       " --record: 1)")  # fmt: skip
    steps.add_argument("--save-schedule", type=Path, metavar="FILE",
                       help="save which steps were looked at")  # fmt: skip
    steps.add_argument("--schedule", type=Path, metavar="FILE",
                       help="look at the steps saved by another run")  # fmt: skip
    steps.add_argument("--compiled", choices=("skip", "eager"), default="skip",
                       help="models under torch.compile: skip their layers, or run audited steps uncompiled (default: skip)")  # fmt: skip
    held = parser.add_argument_group("invariants", "What `ta-runtime infer` learned from healthy runs.")
    held.add_argument("--invariants", "-i", type=Path, action="append", metavar="FILE",
                      help="report violations of these as TA510; repeatable")  # fmt: skip
    held.add_argument("--invariants-every", type=launching.steps(1), default=10, metavar="N",
                      help="check modules, functions and tensors in the first ten steps and every N-th; calls of the loop are"
                      " checked in every step (default: 10)")  # fmt: skip
    record = parser.add_argument_group(
        "record",
        "For `ta-runtime report DIR` and `ta-runtime diff DIR OTHER`; needs pip install 'ta-lint[record]'.",
    )
    record.add_argument("--record", metavar="DIR",
                        help="write numbers and findings into a new folder, or to a URL that fsspec knows")  # fmt: skip
    record.add_argument("--snapshots", metavar="WHEN",
                        help='also record digests of all tensors and settings at these steps, such as "first 3, every 1000" (default: none)')  # fmt: skip
    parser.add_argument(
        "--send",
        action="store_true",
        help="send loss, gradient norm, learning rate, time and findings, as ta/..., to the W&B, MLflow and TensorBoard runs"
        " that the script has open",
    )
    auditing.add_options(parser, script=True)


def _share(text: str) -> float:
    try:
        share = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        share = -1.0
    if not 0 <= share < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a share of the time, such as 3% or 0.03")
    return share


def run(arguments: argparse.Namespace) -> int:
    """Run the program to its end; returns its exit status, or what became of the audit."""
    if not launching.words(arguments):
        raise UsageError("name a script or module: `ta-runtime run SCRIPT`, or `ta-runtime run -m MODULE`")
    if arguments.snapshots is not None and arguments.record is None:
        raise UsageError("--snapshots: needs --record DIR, the folder of the run")
    program = launching.program(arguments)
    if arguments.record is not None:
        extras.asked_for("record")
    auditing.need_torch()
    from ta_runtime import api, ranks  # and torch, for seconds: not before it is known what to run

    settings = auditing.settings(
        arguments,
        overhead=arguments.overhead,
        every_n_steps=arguments.every,
        gradients_every_n_steps=arguments.gradients_every,
        schedule=arguments.schedule,
        save_schedule=arguments.save_schedule,
        compiled=arguments.compiled,
        lint=arguments.lint,
        record=arguments.record,
        snapshots=arguments.snapshots,
        send=arguments.send,
        invariants=arguments.invariants,
        invariants_every_n_steps=arguments.invariants_every,
        live=not arguments.quiet and auditing.form(arguments) in ("text", *auditing.DOCUMENTS),
    )
    with auditing.own_stdout(arguments, standard_error()) as stream:
        audit = auditing.made(arguments, settings, program.path)
        audit.lint()
        api.begin(audit, command=True)
        status, error = finished(program)
        report = CLEAN
        with after_the_run(), Shield(failed=_unreported):  # the exit status is the script's
            api.end(error)
            if ranks.rank() == 0:  # which speaks for all
                report = auditing.report(arguments, audit, stream, told=auditing.form(arguments) == "text")
    if isinstance(error, KeyboardInterrupt):
        raise Interrupted
    if status != CLEAN or ranks.rank() != 0:
        return status
    if arguments.update_baseline:
        return report
    if arguments.fail_level is None:  # nothing was asked of the exit status: it is the script's
        return status
    return FINDINGS if auditing.failing(arguments, audit) else report


def _unreported(error: Exception) -> None:
    from ta_runtime.reports import error_line

    error_line(f"the run is not reported to its end: {type(error).__name__}: {oneline(error)}")
