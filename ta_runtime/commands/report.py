"""`ta-runtime report`: recorded runs as a page to look at."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from ta_lint.core.errors import UsageError
from ta_runtime.commands import CLEAN, Commands
from ta_runtime.extras import need
from ta_runtime.storage import replace, shown

if TYPE_CHECKING:
    from ta_runtime.runs import Run

_DESCRIPTION = """\
Draws recorded runs as one page: loss, gradient norm and learning rate with the findings
at their steps; the values that the script logged; gradients, activations and updates
of each layer; the findings with source and evidence; time, memory and waiting for data;
the metrics of a monitor. Several runs share one chart, and the page says which settings
differ. It is one file that needs no network and no server. It contains the command and
the source lines of findings, so think before you pass it on.
"""

_EPILOG = """\
examples:
  ta-runtime run --record runs/1 train.py            record a run, then
  ta-runtime report runs/1                           write runs/1/report.html
  ta-runtime report runs/1 --output report.html      write it elsewhere
  ta-runtime report runs/1 runs/2                    compare the curves of runs: write report.html

A run that is not over, or was killed, is shown as far as it was written.

exit status: 0, or 2 for wrong usage, a damaged file, or a page that could not be
written
"""


def add(commands: Commands) -> None:
    """Add its arguments to the command line."""
    parser = commands.add_parser(
        "report",
        help="draw recorded runs as a page",
        usage="ta-runtime report [options] RUN [RUN ...]",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        allow_abbrev=False,
    )
    parser.set_defaults(run=run, parser=parser, extra="report")
    parser.add_argument("folders", metavar="RUN", nargs="+", help="the folder of a run, or its URL")
    parser.add_argument(
        "--output",
        "-o",
        type=Path,
        metavar="FILE",
        help="where to write the page (default: RUN/report.html; of several runs report.html)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Write the page; returns the exit status."""
    for library in ("plotly", "pyarrow"):
        need(library, "report")
    from ta_runtime.runs import Run

    runs = [Run(folder) for folder in dict.fromkeys(arguments.folders)]
    output = arguments.output or (runs[0].folder / "report.html" if len(runs) == 1 else Path("report.html"))
    if output.is_dir():
        raise UsageError(f"cannot write {shown(output)}: it is a folder")
    try:
        page = _drawn(runs)
    finally:
        _progress("")
    replace(output, page, private=arguments.output is None)
    print(f"ta-runtime: wrote {shown(output)}, {len(page.encode()) / 1e6:.1f} MB", file=sys.stderr)
    return CLEAN


def _drawn(runs: "list[Run]") -> str:
    """The page.

    Raises:
        UsageError: a folder says of a run that it began, and nothing else, or a file of it is damaged.
    """
    for run in runs:
        _progress(f"reading {shown(run.folder)} ...")
        if not run.metrics.num_rows and not run.records.num_rows and run.findings is None:
            raise UsageError(
                f"{shown(run.folder)}: nothing is recorded yet; numbers are written after the first step, "
                "and every half minute after it"
            )
    _progress(f"drawing {sum(run.metrics.num_rows for run in runs):,} numbers ...")
    from ta_runtime.report import html

    return html(*runs)


def _progress(text: str) -> None:
    """A line that the next one takes the place of, for those who wait at a terminal."""
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\033[K{text}")
        sys.stderr.flush()
