"""How long ta-lint takes on real code beside its peers: one table, measured in interleaved rounds of one run.

`python benchmarks/lint.py [--corpus timm] [--runs 3] [--json FILE] [--profile]`; see `benchmarks/README.md`.
"""

import argparse
import datetime
import importlib.metadata
import json
import os
import platform
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import rule_profile
import torchfix
from corpus import VERSIONS, Missing, corpora, sources
from tables import aligned, processor, spread

ROOT = Path(__file__).resolve().parent.parent
CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
LAZY = ("libcst", "rich")  # what `--help` must not pay for

ONE = "ta-lint, 1 process"
ALL = f"ta-lint, {CORES} processes"

_MAXRSS_UNITS_PER_MIB = 1024**2 if sys.platform == "darwin" else 1024

_PARSE = """
import pathlib, sys
import libcst
for path in sorted(pathlib.Path(sys.argv[1]).rglob("*.py")):
    data = path.read_bytes()
    if b"torch" in data:
        libcst.parse_module(data)
"""


@dataclass(frozen=True)
class Peer:
    """A command to time, and the exit statuses that mean that it ran to its end."""

    name: str
    command: tuple[str, ...]
    statuses: tuple[int, ...] = (0,)


@dataclass(frozen=True)
class Run:
    """What one run of a command cost. CPU is user and system time of the whole process tree."""

    wall_s: float
    cpu_s: float
    peak_mib: float  # of the largest single process


@dataclass(frozen=True)
class Report:
    """All that was measured. Runs stand by the name of the peer, in the order in which they were made."""

    date: str
    machine: str
    load_before: float  # runnable processes, averaged over a minute
    versions: dict[str, str]
    corpus: str
    sizes: dict[str, int]
    findings: int
    help_imports: list[str]  # those of LAZY that `--help` imported
    floor_mib: float  # no smaller peak of a child can be seen
    rounds: dict[str, list[Run]]
    torchfix: dict[str, list[Run]]  # made after the rounds


def main() -> int:
    """Measure and print the table; returns the exit status."""
    arguments = _arguments()
    try:
        if arguments.profile:
            print("\n".join(rule_profile.rendered(rule_profile.profile(_folder(arguments.corpus)))))
            return 0
        report = measure(arguments.corpus, arguments.runs, arguments.torchfix_runs)
    except Missing as error:
        print(f"lint.py: error: {error}", file=sys.stderr)
        return 2
    print("\n".join(rendered(report)))
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(asdict(report), indent=2) + "\n", encoding="utf-8")
    return 1 if report.help_imports else 0


def measure(corpus: str, rounds: int, torchfix_runs: int) -> Report:
    """Time every peer on one corpus; TorchFix last and fewer times, as one run takes minutes.

    Raises:
        Missing: a tool is not here, or did not run to its end.
    """
    load, *_ = os.getloadavg()
    folder = _folder(corpus)
    environment = torchfix.environment() if torchfix_runs else None
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        findings = scratch / "findings.json"
        _rehearse(environment, findings, scratch)
        sizes = _read_all(folder)
        peers = _peers(folder, findings)
        runs: dict[str, list[Run]] = {peer.name: [] for peer in peers}
        for number in range(rounds):
            for peer in peers:
                _progress(f"round {number + 1} of {rounds}: {peer.name}")
                runs[peer.name].append(_timed(peer, scratch))
        slow: dict[str, list[Run]] = {}
        if environment is not None:
            peer = _torchfix_peer(environment, folder)
            _progress(f"{peer.name}: minutes")
            slow[peer.name] = [_timed(peer, scratch) for _ in range(torchfix_runs)]
        return Report(
            date=datetime.datetime.now().astimezone().isoformat(timespec="minutes"),
            machine=f"{CORES} cores, {processor()}, {platform.system()}, Python {platform.python_version()}",
            load_before=load,
            versions=_versions(environment),
            corpus=folder.name,
            sizes=sizes,
            findings=len(json.loads(findings.read_text(encoding="utf-8"))),
            help_imports=_help_imports(),
            floor_mib=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / _MAXRSS_UNITS_PER_MIB,
            rounds=runs,
            torchfix=slow,
        )


def _folder(corpus: str) -> Path:
    return corpora([corpus])[corpus]


def rendered(report: Report) -> Iterator[str]:
    """The report as Markdown that reads as plain text, line by line."""
    sizes = report.sizes
    yield f"Date:     {report.date}"
    yield f"Machine:  {report.machine}; load before: {report.load_before:.1f}"
    yield f"Versions: {', '.join(f'{name} {version}' for name, version in report.versions.items())}"
    yield f"Corpus:   {report.corpus}, {sizes['files']} files, {sizes['lines']} lines; of these mention torch: " \
          f"{sizes['torch files']} files, {sizes['torch lines']} lines"  # fmt: skip
    yield f"Findings: {report.findings} of ta-lint"
    yield ""
    one = report.rounds[ONE]
    every = report.rounds[ALL]
    figures = ("wall s", "CPU s", "peak MiB")
    ratios = ("wall / 1 process", f"wall / {CORES} processes", "CPU / 1 process")
    rows: list[tuple[str, ...]] = [("", *figures, *ratios)]
    for name, runs in (report.rounds | report.torchfix).items():
        paired = name in report.rounds
        rows.append((
            name if paired else f"{name} *",
            spread([run.wall_s for run in runs]),
            spread([run.cpu_s for run in runs]),
            f"{max(run.peak_mib for run in runs):.0f}",
            spread(_ratios([run.wall_s for run in runs], [run.wall_s for run in one], paired)),
            spread(_ratios([run.wall_s for run in runs], [run.wall_s for run in every], paired)),
            spread(_ratios([run.cpu_s for run in runs], [run.cpu_s for run in one], paired)),
        ))  # fmt: skip
    yield from aligned(rows)
    yield ""
    yield f"--help imports libcst/rich: {', '.join(report.help_imports) or 'no'}"
    yield f"Median (least-most) of {len(one)} interleaved round(s); ratios are taken within a round: above 1, ta-lint is"
    yield "cheaper. The file cache is warm. CPU: user and system time of the process tree. Peak: the largest single"
    yield f"process of the tree, which cannot show below {report.floor_mib:.0f} MiB, the size of this script at the fork."
    for name, runs in report.torchfix.items():
        yield f"* {name}: {len(runs)} run(s) after the rounds, against the median of ta-lint."


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Time ta-lint beside its peers on real code.")
    parser.add_argument("--corpus", choices=sorted(VERSIONS), default="timm")
    parser.add_argument("--runs", type=int, default=3, metavar="N", help="rounds (default: 3)")
    parser.add_argument(
        "--torchfix-runs", type=int, default=1, metavar="N", help="0 leaves TorchFix out (default: 1)"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every single run to a file as well")
    parser.add_argument(
        "--profile",
        action="store_true",
        help="time no peers: show where ta-lint's own time goes, by stage and rule",
    )
    arguments = parser.parse_args()
    if arguments.runs < 1 or arguments.torchfix_runs < 0:
        parser.error("--runs is at least 1, --torchfix-runs at least 0")
    return arguments


# -- the commands ---------------------------------------------------------------------------------------------


def _peers(folder: Path, findings: Path) -> list[Peer]:
    """What one round runs, in this order. Exit status 1 of a linter means that it found something."""
    check = (
        sys.executable,
        "-m",
        "ta_lint",
        "check",
        "--isolated",
        "--format",
        "json",
        "--output",
        str(findings),
    )
    ruff = shutil.which("ruff", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
    if ruff is None:
        raise Missing("ruff is not installed: pip install -e .[dev]")
    return [
        Peer(ONE, (*check, "--jobs", "1", str(folder)), (0, 1)),
        Peer(ALL, (*check, "--jobs", str(CORES), str(folder)), (0, 1)),
        Peer("libcst.parse_module, torch files", (sys.executable, "-c", _PARSE, str(folder))),
        Peer("ruff, rules F", (ruff, "check", "--no-cache", "--isolated", "--select", "F", "--exit-zero", str(folder))),
        Peer("python -c pass", (sys.executable, "-c", "pass")),
    ]  # fmt: skip


def _torchfix_peer(environment: Path, folder: Path) -> Peer:
    """TorchFix with all its rules, on all cores as it does by default. Status 1: some files failed."""
    command = torchfix.command(environment, folder)
    return Peer(f"TorchFix, all rules, {CORES} processes", command, (0, 1))


def _versions(environment: Path | None) -> dict[str, str]:
    commit = _run("git", "describe", "--always", "--dirty").stdout.strip() if shutil.which("git") else ""
    versions = {"ta-lint": commit or "of no known commit"}
    versions |= {name: importlib.metadata.version(name) for name in ("libcst", "ruff")}
    if environment is not None:
        code = (
            "import importlib.metadata as m; print(m.version('TorchFix'), 'on libcst', m.version('libcst'))"
        )
        versions["TorchFix"] = _run(str(environment / "bin" / "python"), "-c", code).stdout.strip()
    return versions


def _help_imports() -> list[str]:
    done = _run(sys.executable, "-X", "importtime", "-m", "ta_lint", "--help")
    if done.returncode:
        raise Missing(f"ta-lint --help: exit status {done.returncode}")
    # Lines such as `import time:   120 |   340 |   libcst.parser`.
    imported = {line.rpartition("|")[2].strip().partition(".")[0] for line in done.stderr.splitlines()}
    return [name for name in LAZY if name in imported]


def _run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, check=False, cwd=ROOT, capture_output=True, text=True)


# -- measuring ------------------------------------------------------------------------------------------------


def _rehearse(environment: Path | None, findings: Path, scratch: Path) -> None:
    """Run everything once, untimed, on one small file: bytecode gets compiled, and what is missing shows at once."""
    _run(sys.executable, "-m", "compileall", "-q", "ta_lint")
    folder = scratch / "rehearsal"
    folder.mkdir()
    (folder / "small.py").write_text("import torch\n", encoding="utf-8")
    peers = _peers(folder, findings)
    if environment is not None:
        peers.append(_torchfix_peer(environment, folder))
    for peer in peers:
        _timed(peer, scratch)


def _read_all(folder: Path) -> dict[str, int]:
    """Count the corpus, which also brings it into the file cache for every peer alike."""
    sizes = dict.fromkeys(("files", "lines", "torch files", "torch lines"), 0)
    for path in sources(folder):
        data = path.read_bytes()
        for kind in ("", "torch ") if b"torch" in data else ("",):
            sizes[f"{kind}files"] += 1
            sizes[f"{kind}lines"] += data.count(b"\n")
    return sizes


def _timed(peer: Peer, scratch: Path) -> Run:
    """Run a command once, its output kept in files.

    Raises:
        Missing: it did not run to its end.
    """
    errors = scratch / "stderr"
    with (scratch / "stdout").open("wb") as stdout, errors.open("wb") as stderr:
        start = time.perf_counter()
        process = subprocess.Popen(peer.command, cwd=ROOT, stdout=stdout, stderr=stderr)
        _, wait_status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(wait_status)
    lines = errors.read_text(encoding="utf-8", errors="replace").splitlines()
    # A traceback has exit status 1 as well, like a linter that found something.
    if process.returncode not in peer.statuses or any(line.startswith("Traceback ") for line in lines):
        raise Missing(
            f"{peer.name}: exit status {process.returncode}: {lines[-1] if lines else 'no message'}"
        )
    return Run(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / _MAXRSS_UNITS_PER_MIB)


def _progress(text: str) -> None:
    print(f"lint.py: {text}", file=sys.stderr, flush=True)


# -- the table ------------------------------------------------------------------------------------------------


def _ratios(peer: list[float], ours: list[float], paired: bool) -> list[float]:
    """Peer against ours, round by round, or against our median where the peer had no part in the rounds."""
    against = ours if paired else [statistics.median(ours)] * len(peer)
    return [value / ours for value, ours in zip(peer, against, strict=True)]


if __name__ == "__main__":
    raise SystemExit(main())
