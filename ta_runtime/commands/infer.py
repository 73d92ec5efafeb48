"""`ta-runtime infer`: what always holds of healthy runs, learned from their traces."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ta_lint.core.errors import UsageError
from ta_runtime.commands import CLEAN, Commands
from ta_runtime.commands.progress import progress

if TYPE_CHECKING:
    from ta_runtime.invariants.invariant import Invariant
    from ta_runtime.runs import Run

_DESCRIPTION = """\
Learns from traces of healthy runs what always holds: the order of calls, what a module
calls, what a step changes, the dtype of results. Each invariant is a sentence. If it
failed once in any trace, it is not learned, or only for conditions under which it
never failed. Two traces with different seeds and batch sizes teach more than one of
twice the length.
"""

_EPILOG = """\
examples:
  ta-runtime collect -o traces/1 train.py            a run that is known to be good
  ta-runtime infer traces/1                          print what always held in it
  ta-runtime infer traces/1 traces/2 -o invariants.json
  ta-runtime check traces/3 -i invariants.json       where another run first breaks it
  ta-runtime infer traces/4 --merge invariants.json -o invariants.json
                                                     learn more; your suppressions and notes
                                                     stay, contradicted invariants go
  ta-runtime infer --merge a.json --merge b.json -o both.json
  ta-runtime infer --merge invariants.json           read a file

A trace may be any URL that fsspec knows: s3://bucket/traces/1. You can edit the file:
set "suppressed" to true, delete an entry, or add one with "template" and "terms".

exit status: 0 learned, 2 wrong usage, a damaged file, or a file that could not be
written
"""


def add(commands: Commands) -> None:
    """Add its arguments to the command line."""
    parser = commands.add_parser(
        "infer",
        help="learn what always holds from traces of healthy runs",
        usage="ta-runtime infer [options] TRACE [TRACE ...]",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        allow_abbrev=False,
    )
    parser.set_defaults(run=run, parser=parser, extra="invariants")
    parser.add_argument(
        "traces", nargs="*", metavar="TRACE", help="the folder of a trace, or a URL that fsspec knows"
    )
    parser.add_argument("--output", "-o", type=Path, metavar="FILE",
                        help="write the invariants to a file, as JSON (default: print their sentences)")  # fmt: skip
    parser.add_argument("--merge", type=Path, action="append", default=[], metavar="FILE",
                        help="also keep the invariants of this file that the traces do not contradict; repeatable")  # fmt: skip
    learning = parser.add_argument_group("learning")
    learning.add_argument("--templates", type=_names, metavar="NAMES",
                          help="learn only these kinds, such as `contain,cover` (default: all)")  # fmt: skip
    learning.add_argument("--support", type=_share, default=0.8, metavar="X",
                          help="required share of cases that hold, as a lower bound at 95 %% confidence: 0.8 needs 16 cases without a"
                          " failure, 0.9 needs 35 (default: 0.8)")  # fmt: skip
    learning.add_argument("--memory", default="2GB", metavar="SIZE",
                          help="memory of the database before it uses the temporary folder (default: 2GB)")  # fmt: skip


def run(arguments: argparse.Namespace) -> int:
    """Learn, and write or print; returns the exit status."""
    if not arguments.traces and not arguments.merge:
        raise UsageError(
            "name a trace: `ta-runtime infer TRACE -o invariants.json`; `ta-runtime collect` writes one"
        )
    if arguments.output is not None and arguments.output.is_dir():
        raise UsageError(
            f"{arguments.output}: is a folder; name a file, such as {arguments.output / 'invariants.json'}"
        )
    from ta_runtime.runs import Run  # isort: skip - it says how to get pyarrow

    from ta_runtime.invariants import file

    traces = [Run(folder) for folder in arguments.traces]
    known = file.merged(arguments.merge)
    invariants, what = _learned(arguments, traces, known) if traces else (known, "")
    if arguments.output is None:
        _print(invariants)
    else:
        torch = sorted(
            {str(about["torch"]) for trace in traces for about in trace.about.values() if about.get("torch")}
        )
        file.save(arguments.output, invariants, traces=[str(each.folder) for each in traces], torch=torch)
    _tell(
        arguments,
        invariants,
        what,
        len(known) - len({each.id for each in known} & {each.id for each in invariants}),
    )
    return CLEAN


def _learned(
    arguments: argparse.Namespace, traces: "Sequence[Run]", known: "list[Invariant]"
) -> "tuple[list[Invariant], str]":
    """The invariants, and what they were learned from, in words."""
    from ta_runtime.invariants.events import Events
    from ta_runtime.invariants.inferring import inferred, named

    names = named(arguments.templates)
    try:
        with Events(traces, memory=arguments.memory) as events:
            what = f" of {events.count:,} events in {_counted(len(traces), 'trace')}"
            invariants = inferred(
                events,
                support=arguments.support,
                templates=names,
                known=known,
                progress=lambda name: progress(
                    f"learning {name} ({names.index(name) + 1} of {len(names)}){what} ..."
                ),
            )
    finally:
        progress("")
    return invariants, what


def _print(invariants: "Sequence[Invariant]") -> None:
    from ta_runtime.invariants.file import says

    width = max((len(each.id) for each in invariants), default=0)
    for each in invariants:
        suppressed = " (suppressed)" if each.suppressed else ""
        sys.stdout.write(f"{each.id:<{width}}  {says(each)}{suppressed}\n")
    sys.stdout.flush()


def _tell(arguments: argparse.Namespace, invariants: "Sequence[Invariant]", what: str, dropped: int) -> None:
    """What is there now, what to know of it, and what can be done with it."""
    if dropped:
        _say(
            f"{_counted(dropped, 'invariant')} of --merge did not hold in these traces, or now hold more widely"
        )
    if len(arguments.traces) == 1 and not arguments.merge:
        _say(
            "one trace: nothing was held out; a second one, with another seed or batch size, drops what is chance"
        )
    if not invariants:
        _say("nothing held often enough: trace more steps, at a closer --level, or lower --support")
    said = f"{_counted(len(invariants), 'invariant')}{what}"
    if arguments.output is None:
        _say(f"{said}; add `-o invariants.json` to keep them")
    else:
        _say(
            f"{said} in {arguments.output}; `ta-runtime check TRACE -i {arguments.output}` holds another run against them"
        )


def _say(text: str) -> None:
    print(f"ta-runtime: {text}", file=sys.stderr)  # not by `reports`, which loads torch


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _share(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a share, at least 0 and less than 1")
    return value
