"""`ta-runtime collect`: a script, traced."""

import argparse
from typing import TYPE_CHECKING

from ta_lint.core.errors import UsageError
from ta_runtime.commands import CLEAN, ERROR, Commands, auditing, launching
from ta_runtime.commands.program import finished
from ta_runtime.trace.event import LEVELS

if TYPE_CHECKING:
    from ta_runtime.trace.trace import TraceWriter

_DESCRIPTION = """\
Runs a script like Python does, and writes the events of its training into a folder.
`ta-runtime infer` learns from such traces, and `ta-runtime check` checks them. Source,
numbers and output of the script do not change. Put options of ta-runtime before the
name of the script; arguments after it belong to the script.
"""

_EPILOG = """\
examples:
  ta-runtime collect -o traces/1 train.py --lr 3e-4
  ta-runtime collect -o traces/1 --level ops --every 10 -m mypackage.train
  ta-runtime collect -o traces/1 --last 1000 train.py
                                           the last steps of a long run
  ta-runtime collect -o s3://bucket/traces/1 train.py
                                           any URL that fsspec knows
  torchrun --nproc-per-node 2 -m ta_runtime collect -o traces/1 train.py
                                           every rank writes its own files

A script that fails or is interrupted leaves everything that was traced. One that is
killed loses the last 30 seconds, or the last hundredth of its time if that is longer
and --last is not given.

exit status: that of the script; 2 wrong usage, or a trace that could not be
written; 130 interrupted
"""


def add(commands: Commands) -> None:
    """Add its arguments to the command line."""
    parser = commands.add_parser(
        "collect",
        help="run a script and trace its training",
        usage="ta-runtime collect -o TRACE [options] SCRIPT [ARGS ...]\n"
        "       ta-runtime collect -o TRACE [options] -m MODULE [ARGS ...]",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        allow_abbrev=False,  # what looks like one may be the script's
    )
    parser.set_defaults(run=run, parser=parser, extra="invariants")
    launching.add_program(parser)
    parser.add_argument("--output", "-o", metavar="TRACE",
                        help="a new folder, or a URL that fsspec knows; may also follow the script's name")  # fmt: skip
    closely = parser.add_argument_group("detail")
    closely.add_argument("--level", choices=LEVELS, default="digests",
                         help="modules: the loop and module calls; digests: also the content of parameters, gradients and outputs;"
                         " ops: also every call of a torch function (default: digests)")  # fmt: skip
    closely.add_argument("--every", type=launching.steps(1), default=1, metavar="N",
                         help="trace every N-th step at this level, and only the loop in the others (default: 1)")  # fmt: skip
    closely.add_argument("--warm-up", type=launching.steps(0), default=0, metavar="N",
                         help="number of steps before the first one at this level (default: 0)")  # fmt: skip
    closely.add_argument("--last", type=launching.steps(1), metavar="N",
                         help="keep the last N steps, or a few more (default: all)")  # fmt: skip


def run(arguments: argparse.Namespace) -> int:
    """Run the program to its end, traced; returns its exit status, or what became of the trace."""
    words = launching.words(arguments)
    folder = arguments.output or _output_after_name(words)
    if not words:
        raise UsageError("name a script or module: `ta-runtime collect -o TRACE SCRIPT`, or `... -m MODULE`")
    if not folder:
        raise UsageError(f"name a folder for the trace: `ta-runtime collect -o TRACE {words[0]}`")
    program = launching.program(arguments)
    auditing.need_torch()
    from ta_runtime.trace import collecting  # and torch, for seconds: not before it is known what to run

    with collecting(
        folder,
        level=arguments.level,
        every=arguments.every,
        warm_up=arguments.warm_up,
        last=arguments.last,
    ) as trace:
        status, _ = finished(program)
    _tell(trace, arguments.level)
    return status if status != CLEAN or trace.run.complaint is None else ERROR


def _output_after_name(words: list[str]) -> str | None:
    """The folder in `SCRIPT -o TRACE`, which is taken out; without one before the name it cannot be the script's."""
    if len(words) > 2 and words[1] in ("--output", "-o"):
        folder = words[2]
        del words[1:3]
        return folder
    return None


def _tell(trace: "TraceWriter", level: str) -> None:
    """What is there now, and what can be done with it; rank 0 speaks for all."""
    from ta_runtime import ranks
    from ta_runtime.reports import error_line
    from ta_runtime.storage import shown

    if ranks.rank() != 0 or not trace.run.open:
        return
    folder = shown(trace.run.folder)
    rank = f" by rank 0 of {size}" if (size := ranks.world_size()) > 1 else ""
    steps = "1 step" if trace.steps == 1 else f"{trace.steps:,} steps"
    what = f"{trace.count:,} events of {steps} at the level {level}{rank}, {_size(trace.size)}"
    if trace.steps == 0:
        error_line(f"no training step was seen: no optimizer stepped in this process; {folder} has {what}")
        return
    error_line(f"the trace is in {folder}: {what}; `ta-runtime infer {folder}` learns what always holds")


def _size(count: int) -> str:
    return f"{count / 1e6:.1f} MB" if count >= 1e6 else f"{count / 1e3:.0f} kB"
