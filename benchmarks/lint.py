"""How fast ta-lint is on real code beside its peers: one table of ratios, measured in interleaved rounds of one run.

`python benchmarks/lint.py [--only ROW ...] [--runs 3] [--torchfix-runs 1] [--json FILE] [--write]`; see
`benchmarks/README.md`.
"""

import argparse
import datetime
import importlib.metadata
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path

import torchfix
from corpus import Missing
from sections import write_section
from speed import commands, growth, rows, sameness
from speed.timing import ROOT, Command, Runs, timed
from speed.trees import TIMM, TRANSFORMERS, Edits, Size, copied, size
from tables import processor

DOCUMENT = ROOT / "docs" / "performance.md"
MAKER = "benchmarks/lint.py"
CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
SHORT_RUNS = 10  # of what ends within a second or two, for each run of the others


@dataclass
class Report:
    """All that was measured. Runs stand by the name of the command, in the order in which they were made."""

    date: str
    machine: str
    versions: dict[str, str]
    load_before: float  # runnable processes, averaged over a minute
    load_after: float = 0.0
    sizes: dict[str, Size] = field(default_factory=dict)
    figures: list[rows.Figure] = field(default_factory=list)
    same: list[sameness.Comparison] = field(default_factory=list)
    imports: dict[str, list[str]] = field(default_factory=dict)  # those of `commands.LAZY`, by command
    runs: Runs = field(default_factory=dict)
    cost_by_lines: growth.Growth | None = None

    @property
    def is_missed(self) -> bool:
        """Whether anything is not as it must be."""
        differs = any(comparison.difference is not None for comparison in self.same)
        return differs or any(self.imports.values()) or any(figure.is_missed for figure in self.figures)


def main() -> int:
    """Measure and print the table; returns the exit status."""
    arguments = _arguments()
    names = set(arguments.only or rows.NAMES)
    try:
        report = measure(names, arguments.runs, arguments.torchfix_runs)
    except Missing as error:
        print(f"lint.py: error: {error}", file=sys.stderr)
        return 2
    text = "\n".join(rendered(report))
    print(text)
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(asdict(report), indent=2) + "\n", encoding="utf-8")
    if arguments.write:
        write_section(DOCUMENT, MAKER, f"\n{text}\n")
    return 1 if report.is_missed else 0


def measure(names: set[str], runs: int, torchfix_runs: int) -> Report:
    """Make the rows of these names.

    Raises:
        Missing: a tool or a corpus is not here, or a command did not run to its end.
    """
    report = Report(
        date=datetime.datetime.now().astimezone().isoformat(timespec="minutes"),
        machine=f"{CORES} cores, {processor()}, {platform.system()}, Python {platform.python_version()}",
        versions=_versions(),
        load_before=os.getloadavg()[0],
    )
    wanted = rows.needed(names)
    if not torchfix_runs:
        wanted -= commands.SLOW
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        trees = {name: copied(name, scratch) for name in (TIMM, TRANSFORMERS)}
        report.sizes = {name: size(tree) for name, tree in trees.items()}
        edits = Edits(trees[TRANSFORMERS])
        chosen = commands.commands(scratch, edits, wanted)
        short = [command for command in chosen if command.name in commands.SHORT]
        long = [command for command in chosen if command.name not in commands.SHORT]
        subprocess.run([sys.executable, "-m", "compileall", "-q", str(ROOT / "ta_lint")], check=False)
        _rounds(short, 1, scratch, {})  # fills the cache
        _rounds(short, SHORT_RUNS * runs, scratch, report.runs)
        edits.undo()
        for number in range(runs):
            slow = commands.SLOW if number >= torchfix_runs else set()
            _rounds([command for command in long if command.name not in slow], 1, scratch, report.runs)
        if rows.IMPORTS in names:
            light = commands.commands(scratch, edits, {commands.HELP, commands.TORCH_FREE})
            report.imports = {command.name: commands.heavy_imports(command) for command in light}
        if rows.GROWTH in names:
            lint = partial(commands.uncached, scratch=scratch)
            report.cost_by_lines = growth.measured(trees[TRANSFORMERS], scratch, lint, runs, _progress)
        if rows.SAME in names:
            for name, tree in trees.items():
                used = scratch / "cache" if name == TRANSFORMERS and commands.CHANGED in wanted else None
                for comparison in sameness.comparisons(tree, scratch, used):
                    said = "the same" if comparison.difference is None else "differs"
                    _progress(f"SARIF of {comparison.tree}: {comparison.way}: {said}")
                    report.same.append(comparison)
        report.load_after = os.getloadavg()[0]
    report.figures = list(rows.figures(names, report.runs, report.cost_by_lines))
    return report


def rendered(report: Report) -> Iterator[str]:
    """The report as Markdown that reads as plain text, line by line."""
    yield f"Date: {report.date}. Machine: {report.machine}; load {report.load_before:.1f} before, {report.load_after:.1f} after."
    yield f"Versions: {', '.join(f'{name} {version}' for name, version in report.versions.items())}."
    for name, found in report.sizes.items():
        yield f"{name}: {found.files:,} files, {found.lines:,} lines; of these mention torch: " \
              f"{found.torch_files:,} files, {found.torch_lines:,} lines."  # fmt: skip
    yield ""
    yield from rows.table(report.figures)
    yield ""
    yield "Seconds are medians. A ratio is our time over the peer's, taken in each round: the median, the least and the most. One"
    yield "process against one is judged by CPU time, which other programs disturb least, and everything else by the clock; `by the"
    yield "other` is the ratio by the other of the two."
    if report.cost_by_lines is not None:
        yield ""
        yield from growth.rendered(report.cost_by_lines)
    if report.same:
        yield ""
        yield from sameness.rendered(report.same)
    for name, imported in report.imports.items():
        yield f"{name} imports {' and '.join(imported) or 'neither libcst nor rich'}."


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Time ta-lint beside its peers on real code.")
    parser.add_argument(
        "--only", nargs="+", choices=rows.NAMES, metavar="ROW", help=f"these: {', '.join(rows.NAMES)}"
    )
    parser.add_argument(
        "--runs",
        type=int,
        default=3,
        metavar="N",
        help=f"rounds (default: 3), and {SHORT_RUNS} times as many of short ones",
    )
    parser.add_argument(
        "--torchfix-runs", type=int, default=1, metavar="N", help="0 leaves TorchFix out (default: 1)"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every single run to a file as well")
    parser.add_argument("--write", action="store_true", help="put the table into docs/performance.md")
    arguments = parser.parse_args()
    if arguments.runs < 1 or arguments.torchfix_runs < 0:
        parser.error("--runs is at least 1, --torchfix-runs at least 0")
    if arguments.write and arguments.only:
        parser.error("--write is of all rows")
    return arguments


def _rounds(chosen: list[Command], count: int, scratch: Path, runs: Runs) -> None:
    """Run every command once, then every command again, and so on."""
    for number in range(count):
        for command in chosen:
            _progress(f"round {number + 1} of {count}: {command.name}")
            runs.setdefault(command.name, []).append(timed(command, scratch))


def _versions() -> dict[str, str]:
    git = ("git", "-C", str(ROOT), "describe", "--always", "--dirty")
    commit = (
        subprocess.run(git, check=False, capture_output=True, text=True).stdout.strip()
        if shutil.which("git")
        else ""
    )
    versions = {"ta-lint": commit or "of no known commit"}
    versions |= {name: importlib.metadata.version(name) for name in ("libcst", "ruff")}
    return versions | {"TorchFix": torchfix.VERSION}


def _progress(text: str) -> None:
    print(f"lint.py: {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
