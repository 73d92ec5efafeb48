"""What it costs to trace a training, to learn from it and to check it, beside TrainCheck over the same script.

`python benchmarks/invariants.py [--only ROW ...] [--rounds 7] [--without-peer] [--events N ...] [--json FILE] [--write]`;
see `benchmarks/README.md`. Every command runs as a user would run it, in a process of its own. Those of ours take turns
within a round, so that a machine that slows down slows all alike; a ratio is taken within a round. TrainCheck takes
minutes and runs once; `--without-peer` shows what it took when it was last run.
"""

import argparse
import datetime
import importlib.metadata
import json
import os
import platform
import statistics
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from corpus import Missing
from sections import write_section
from speed.growth import Growth, Sample, fitted
from speed.timing import Command, Run, timed
from tables import aligned, processor
from tracing import repeated, traincheck
from tracing.traincheck import Loop, Peer, loop_of

SCRIPT = Path(__file__).resolve().parent / "tracing" / "train.py"
DOCUMENT = Path(__file__).resolve().parents[1] / "docs" / "performance.md"
MAKER = "benchmarks/invariants.py"

LOOP, INFER, CHECK, GROWTH = "loop", "infer", "check", "growth"
NAMES = (LOOP, INFER, CHECK, GROWTH)
EVENTS = (10_000, 30_000, 100_000, 300_000, 1_000_000, 3_000_000, 10_000_000)

PLAIN, MODULES, DIGESTS, OPS = "plain", "--level modules", "--level digests", "--level ops"
AUDITED, CHECKED = "ta-runtime run", "ta-runtime run --select TA510 --invariants"
BOTH = "ta-runtime run --invariants"

COLLECT_BAR, CHECK_BAR, GROWTH_BAR = 2.0, 1.3, 1.1
TRACE_BAR, INFER_BAR = 1 / 30, 1 / 100
MEMORY_BAR = 2.0  # GB, whatever the number of events


@dataclass(frozen=True)
class Size:
    """What learning from a trace of so many events took."""

    events: int
    trace_bytes: int
    run: Run


@dataclass(frozen=True)
class Report:
    """All that was measured; `loops` and `commands` by name, one entry a round."""

    date: str
    machine: str
    load_before: float  # runnable processes, averaged over a minute
    versions: dict[str, str]
    loops: dict[str, list[Loop]]
    commands: dict[str, list[Run]]
    trace_bytes: dict[str, int]
    events: dict[str, int]
    invariants: int
    violated: int  # by the same program, with the same seed and with another one
    sizes: list[Size]
    growth: Growth | None
    peer: Peer | None
    peer_is_recorded: bool


@dataclass(frozen=True)
class Figure:
    """A row: ours and the peer's as text, and what is asked of a number."""

    what: str
    ours: str
    peer: str = ""
    ratio: str = ""
    value: float | None = None
    bar: float | None = None

    @property
    def is_missed(self) -> bool:
        return self.bar is not None and self.value is not None and self.value > self.bar

    @property
    def cells(self) -> tuple[str, ...]:
        reached = "" if self.bar is None else "missed" if self.is_missed else "yes"
        return (self.what, self.ours, self.peer, self.ratio, _part(self.bar), reached)


# -- measuring ------------------------------------------------------------------------------------------------


def measure(names: set[str], rounds: int, sizes: Iterable[int], peer: bool) -> Report:
    """Run what these rows need.

    Raises:
        Missing: a command did not run to its end.
    """
    load, *_ = os.getloadavg()
    date = datetime.datetime.now().astimezone().isoformat(timespec="minutes")
    machine = (
        f"{os.cpu_count()} cores of {processor()}, {platform.system()}, Python {platform.python_version()}"
    )
    with tempfile.TemporaryDirectory(prefix="ta-invariants-") as folder:
        work = Work(Path(folder))
        taken = None
        if peer:
            torch = importlib.metadata.version("torch").partition("+")[0]
            taken = traincheck.measured(
                SCRIPT, traincheck.environment(torch), work.folder, date, machine, progress
            )
        elif traincheck.RECORDED.is_file():
            taken = traincheck.recorded()
        work.learn()
        for number in range(rounds if names & {LOOP, INFER, CHECK} else 0):
            progress(f"round {number + 1} of {rounds}")
            work.round(number, names)
        grown = [work.grown(events) for events in sizes] if GROWTH in names else []
        return Report(
            date=date,
            machine=machine,
            load_before=load,
            versions={
                "torch": importlib.metadata.version("torch"),
                "ta-runtime": importlib.metadata.version("ta-lint"),
                "DuckDB": importlib.metadata.version("duckdb"),
                "pyarrow": importlib.metadata.version("pyarrow"),
            },
            loops=work.loops,
            commands=work.commands,
            trace_bytes=work.trace_bytes,
            events=work.events,
            invariants=work.invariants,
            violated=work.violated,
            sizes=grown,
            growth=_growth(grown),
            peer=taken,
            peer_is_recorded=not peer,
        )


class Work:
    """A folder with the traces and invariants of the training script, and what making them took."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.reference, self.learned = folder / "reference", folder / "invariants.json"
        self.loops: dict[str, list[Loop]] = {}
        self.commands: dict[str, list[Run]] = {}
        self.trace_bytes: dict[str, int] = {}
        self.events: dict[str, int] = {}
        self.invariants = self.violated = 0

    def learn(self) -> None:
        """The trace that all else is of, and its invariants; and what two more runs of the same program break of them."""
        progress("collecting and learning")
        self._run("collect", *_collect("ops", self.reference))
        self._run("infer", *_infer(self.reference, self.learned))
        self.invariants = len(json.loads(self.learned.read_text(encoding="utf-8"))["invariants"])
        for seed in ("1", "2"):
            again = self.folder / f"seed-{seed}"
            self._run("collect", *_collect("ops", again), "--seed", seed)
            self._run("check", *_check(again, self.learned), statuses=(0, 1))
            self.violated += len(json.loads(self._output()))

    def round(self, number: int, names: set[str]) -> None:
        """Every command once, the first of them another one each time."""
        loops: dict[str, tuple[str, ...]] = {PLAIN: (str(SCRIPT),)}
        traces: dict[str, Path] = {}
        if LOOP in names:
            for name in (MODULES, DIGESTS, OPS):
                level = name.removeprefix("--level ")
                traces[name] = self.folder / f"{level}-{number}"
                loops[name] = _collect(level, traces[name])
        if CHECK in names:
            loops[AUDITED] = _audited()
            loops[BOTH] = _audited("--invariants", str(self.learned))
            loops[CHECKED] = _audited("--invariants", str(self.learned), "--select", "TA510")
        order = list(loops) if len(loops) > 1 else []
        shift = number % max(len(order), 1)
        for name in order[shift:] + order[:shift]:
            self._run(name, *loops[name], statuses=(0, 1))
            self.loops.setdefault(name, []).append(loop_of(self._output()))
        for name, trace in traces.items():
            parts = list((trace / "events").iterdir())
            self.trace_bytes[name] = sum(path.stat().st_size for path in parts)
            self.events[name] = repeated.events_of(trace).num_rows
        if INFER in names:
            self._took("infer", *_infer(self.reference, self.learned))
        if CHECK in names:
            self._took("check", *_check(self.reference, self.learned), statuses=(0, 1))

    def grown(self, events: int) -> Size:
        """Learn from a trace of so many events, which is deleted afterwards."""
        trace = self.folder / f"of-{events}"
        size = repeated.write(self.reference, events, trace)
        progress(f"learning from {events:,} events, {size / 1e6:.1f} MB")
        run = self._run("infer", *_infer(trace, self.folder / "grown.json"))
        for path in (trace / "events").iterdir():
            path.unlink()
        return Size(events, size, run)

    def _took(self, name: str, *words: str, statuses: tuple[int, ...] = (0,)) -> None:
        self.commands.setdefault(name, []).append(self._run(name, *words, statuses=statuses))

    def _run(self, name: str, *words: str, statuses: tuple[int, ...] = (0,)) -> Run:
        return timed(Command(name, (sys.executable, *words), self.folder, statuses), self.folder)

    def _output(self) -> str:
        return (self.folder / "stdout").read_text(encoding="utf-8")


def _collect(level: str, trace: Path) -> tuple[str, ...]:
    return ("-m", "ta_runtime", "collect", "--level", level, "-o", str(trace), str(SCRIPT))


def _infer(trace: Path, invariants: Path) -> tuple[str, ...]:
    return ("-m", "ta_runtime", "infer", str(trace), "-o", str(invariants))


def _check(trace: Path, invariants: Path) -> tuple[str, ...]:
    return ("-m", "ta_runtime", "check", str(trace), "--invariants", str(invariants), "--format", "json")


def _audited(*words: str) -> tuple[str, ...]:
    return ("-m", "ta_runtime", "run", "--quiet", "--output", os.devnull, *words, str(SCRIPT))


def _growth(sizes: list[Size]) -> Growth | None:
    if len(sizes) < 4:  # start-up, slope and power are three unknowns
        return None
    return fitted([Sample(1, size.events, size.run.cpu_s) for size in sizes])


# -- the report -----------------------------------------------------------------------------------------------


def figures(report: Report) -> Iterator[Figure]:
    """The rows of the table for which there are measurements."""
    peer = report.peer
    if OPS in report.loops:
        theirs = f"{_over(peer.collect, peer.plain):.0f}" if peer else ""
        yield _loop(report, OPS, "collect, every op and all digests: the loop, to plain", theirs, COLLECT_BAR)
        yield _loop(report, DIGESTS, "the same with `--level digests`")
        yield _loop(report, MODULES, "the same with `--level modules`")
        yield _trace(report)
    if runs := report.commands.get("infer"):
        yield _command(runs, "infer, the command", peer.infer if peer else None, INFER_BAR)
        yield Figure("invariants", str(report.invariants), str(peer.invariants) if peer else "")
    if CHECKED in report.loops:
        theirs = f"{_over(peer.selective, peer.plain):.1f}" if peer else ""
        yield _loop(report, CHECKED, "check in the run: the loop, to plain", theirs, CHECK_BAR)
        yield _loop(report, BOTH, "the same with all rules of the audit")
        yield _loop(report, AUDITED, "the audit without invariants")
        yield _command(report.commands["check"], "check a trace, the command", peer.check if peer else None)
        yield Figure(
            "violated by the same program", str(report.violated), str(peer.violated) if peer else "",
            value=report.violated, bar=0,
        )  # fmt: skip
    if report.growth is not None:
        power = report.growth.exponent
        least, most = (f"{end(size.events for size in report.sizes):,}" for end in (min, max))
        yield Figure(
            f"infer, {least} to {most} events: power of the events",
            f"{power:.2f}",
            value=power,
            bar=GROWTH_BAR,
        )
        peak = max(size.run.peak_mb for size in report.sizes) / 1e3
        yield Figure("the same: peak memory in GB", f"{peak:.2f}", value=peak, bar=MEMORY_BAR)


def _loop(report: Report, name: str, what: str, peer: str = "", bar: float | None = None) -> Figure:
    pairs = zip(report.loops[name], report.loops[PLAIN], strict=True)
    ratios = sorted(_over(loop, plain) for loop, plain in pairs)
    low, high = ratios[len(ratios) // 4], ratios[3 * len(ratios) // 4]
    value = statistics.median(ratios)
    return Figure(what, f"{value:.2f} ({low:.2f}-{high:.2f})", peer, value=value, bar=bar)


def _over(loop: Loop, plain: Loop) -> float:
    return loop.cpu_s / plain.cpu_s


def _trace(report: Report) -> Figure:
    ours, peer = report.trace_bytes[OPS], report.peer
    what, shown = "the trace, MB", f"{ours / 1e6:.2f}"
    if peer is None:
        return Figure(what, shown)
    ratio = ours / peer.trace_bytes
    return Figure(what, shown, f"{peer.trace_bytes / 1e6:.1f}", _part(ratio), ratio, TRACE_BAR)


def _command(runs: list[Run], what: str, peer: Run | None, bar: float | None = None) -> Figure:
    ours = statistics.median(run.cpu_s for run in runs)
    if peer is None:
        return Figure(what, f"{ours:.2f} s")
    ratio = ours / peer.cpu_s
    return Figure(what, f"{ours:.2f} s", f"{peer.cpu_s:.0f} s", _part(ratio), ratio, bar)


def _part(value: float | None) -> str:
    """Of small ratios the reciprocal, which is easier to read: 1/50."""
    if value is None:
        return ""
    return f"{value:.3g}" if value >= 0.2 or not value else f"1/{1 / value:.0f}"


def rendered(report: Report) -> Iterator[str]:
    """The report as Markdown that reads as plain text, line by line."""
    versions = ", ".join(f"{name} {version}" for name, version in report.versions.items())
    yield f"Made by `python benchmarks/invariants.py` on {report.date[:10]}: {report.machine},"
    yield f"a load of {report.load_before:.1f} before; {versions}."
    if report.peer is not None:
        when = f", recorded on {report.peer.date[:10]}" if report.peer_is_recorded else ", in the same run"
        yield f"The peer is TrainCheck {report.peer.version} from PyPI on torch {report.peer.packages['torch']}{when}."
    yield ""
    yield from aligned(
        [("", "ta-runtime", "TrainCheck", "ratio", "bar", "reached"), *(row.cells for row in figures(report))]
    )
    yield ""
    yield "All times are CPU times: the median of the rounds (and their middle half). The loop is both epochs, timed by the script"
    yield "itself, over the plain loop in the same round."
    if OPS in report.events:
        counts = ", ".join(f"{report.events[name]:,} with `{name}`" for name in (OPS, DIGESTS, MODULES))
        yield f"A trace has {counts} events."
    if report.sizes:
        yield ""
        yield from aligned(
            [("events", "trace, MB", "CPU s", "clock s", "peak, MB"), *map(_row, report.sizes)]
        )


def _row(size: Size) -> tuple[str, ...]:
    run = size.run
    return (
        f"{size.events:,}",
        f"{size.trace_bytes / 1e6:.1f}",
        f"{run.cpu_s:.2f}",
        f"{run.wall_s:.2f}",
        f"{run.peak_mb:.0f}",
    )


def progress(text: str) -> None:
    """Say on standard error what is being done."""
    print(f"invariants.py: {text}", file=sys.stderr, flush=True)


def main() -> int:
    """Measure and print the table; returns the exit status: 1 if a bar is missed, 2 if something is missing."""
    arguments = _arguments()
    os.environ["OMP_NUM_THREADS"] = "1"
    names = set(arguments.only or NAMES)
    try:
        report = measure(names, arguments.rounds, arguments.events or EVENTS, not arguments.without_peer)
    except Missing as error:
        print(f"invariants.py: error: {error}", file=sys.stderr)
        return 2
    text = "\n".join(rendered(report))
    print(text)
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(asdict(report), indent=2) + "\n", encoding="utf-8")
    if arguments.write:
        if report.peer is not None and not report.peer_is_recorded:
            traincheck.record(report.peer)
        write_section(DOCUMENT, MAKER, f"\n{text}\n")
    return 1 if any(figure.is_missed for figure in figures(report)) else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Trace, learn and check a training, beside TrainCheck.")
    parser.add_argument("--only", choices=NAMES, nargs="+", metavar="ROW", help=f"any of {', '.join(NAMES)}")
    parser.add_argument("--rounds", type=int, default=7, metavar="N", help="(default: 7)")
    parser.add_argument(
        "--events", type=int, nargs="+", metavar="N", help="how many the traces of `growth` have"
    )
    parser.add_argument(
        "--without-peer",
        action="store_true",
        help="show what TrainCheck took when it was last run: it takes minutes",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every round to a file as well")
    parser.add_argument("--write", action="store_true", help="put the tables into docs/performance.md")
    arguments = parser.parse_args()
    if arguments.rounds < 1:
        parser.error("--rounds is at least 1")
    if arguments.write and (arguments.only or arguments.events):
        parser.error("--write is of all rows and sizes")
    return arguments


if __name__ == "__main__":
    raise SystemExit(main())
