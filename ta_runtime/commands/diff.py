"""`ta-runtime diff`: where two runs, or the ranks of one, first differ."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from ta_lint.core.errors import UsageError
from ta_lint.core.files import write_atomically
from ta_runtime.commands import CLEAN, FINDINGS, Commands, auditing

if TYPE_CHECKING:
    from ta_runtime.diff import Comparison

FORMATS = ("text", "json", "html")

_DESCRIPTION = """\
Finds the first difference between two recorded runs, step by step and with causes
before their effects: environment, packages, configuration, random generators, batch,
parameters, buffers, activations, loss, gradients, optimizer state. It says how much
differs, what was still equal, and what follows. With --ranks it compares the ranks
of one run.
"""

_EPILOG = """\
examples:
  ta-runtime diff runs/a runs/b                      the first difference, and its likely cause
  ta-runtime diff runs/a runs/b --output diff.html   a page with all steps
  ta-runtime diff --ranks runs/a                     whether all ranks have the same weights
  ta-runtime diff --ignore 'SLURM_*' runs/a runs/b   ignore settings that may differ
  ta-runtime diff --tolerance 1e-5 runs/cpu runs/gpu
                                                     ignore rounding

Runs are compared at the steps that both recorded. Variables that always differ, such
as PWD and RANK, are not counted; --strict counts them.

exit status: 0 equal, 1 different, 2 wrong usage, a damaged file, or a report
that could not be written
"""


def add(commands: Commands) -> None:
    """Add its arguments to the command line."""
    parser = commands.add_parser(
        "diff",
        help="find the first difference between two recorded runs, or between ranks",
        usage="ta-runtime diff [options] RUN_A RUN_B\n       ta-runtime diff [options] --ranks RUN",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        allow_abbrev=False,
    )
    parser.set_defaults(run=run, parser=parser, extra="record")
    parser.add_argument("runs", nargs="+", metavar="RUN", help="the folder of a run, or its URL")
    parser.add_argument("--ranks", action="store_true", help="compare the ranks of one run")
    counted = parser.add_argument_group("what counts")
    counted.add_argument("--ignore", action="append", default=[], metavar="PATTERN",
                         help="leave out names ('SLURM_*') or kinds and names ('optimizer/*'); repeatable")  # fmt: skip
    counted.add_argument(
        "--strict", action="store_true", help="also count variables that always differ, such as PWD"
    )
    counted.add_argument("--tolerance", type=_share, metavar="X",
                         help="relative difference up to which tensors count as equal (default: 0, bit for bit)")  # fmt: skip
    output = parser.add_argument_group("output")
    output.add_argument(
        "--format", "-f", choices=FORMATS, help="format of the report (default: text, or by the name of FILE)"
    )
    output.add_argument("--output", "-o", type=Path, metavar="FILE",
                        help="write the report to a file; .json and .html choose the format")  # fmt: skip


def run(arguments: argparse.Namespace) -> int:
    """Compare, and report; returns the exit status."""
    wanted = 1 if arguments.ranks else 2
    if len(arguments.runs) != wanted:
        example = "`ta-runtime diff --ranks RUN`" if arguments.ranks else "`ta-runtime diff RUN_A RUN_B`"
        other = (
            "" if arguments.ranks or len(arguments.runs) > 1 else ", or `--ranks RUN` for the ranks of one"
        )
        raise UsageError(f"{len(arguments.runs)} runs given; write {example}{other}")
    auditing.need_torch()
    from ta_runtime.runs import Run  # isort: skip - it says how to get pyarrow, which the others need

    from ta_runtime.diff import compare, compare_ranks

    runs = [Run(folder) for folder in arguments.runs]
    how = {"ignore": arguments.ignore, "strict": arguments.strict, "tolerance": arguments.tolerance}
    comparison = compare_ranks(*runs, **how) if arguments.ranks else compare(*runs, **how)
    if arguments.output is not None:
        write_atomically(
            arguments.output, _rendered(comparison, arguments.format or _format_of(arguments.output))
        )
    else:
        sys.stdout.write(_rendered(comparison, arguments.format or "text", color=_wants_color()))
        sys.stdout.flush()
    return CLEAN if comparison.equal else FINDINGS


def _rendered(comparison: "Comparison", form: str, *, color: bool = False) -> str:
    if form == "json":
        from ta_runtime.diff.document import as_json

        return as_json(comparison)
    if form == "html":
        from ta_runtime.diff.page import as_html

        return as_html(comparison)
    from ta_runtime.diff.text import as_text

    return as_text(comparison, color=color)


def _format_of(path: Path) -> str:
    return {".json": "json", ".html": "html", ".htm": "html"}.get(path.suffix.lower(), "text")


def _wants_color() -> bool:
    from ta_lint.core.terminal import wants_color

    return wants_color(sys.stdout)


def _share(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number, 0 or more")
    return value
