"""The peer: TrainCheck, in a virtual environment of its own, over the same script.

It takes minutes, so that what it last took is kept in `benchmarks/traincheck.json`, with the date and the machine.
"""

import json
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import msgspec
from corpus import FOLDER, Missing, run_pip
from speed.timing import Command, Run, timed

VERSION = "0.2.0"
RECORDED = Path(__file__).resolve().parents[1] / "traincheck.json"


@dataclass(frozen=True)
class Loop:
    """The epochs of the training script, in seconds by the clock and of the CPU."""

    clock_s: float
    cpu_s: float


@dataclass(frozen=True)
class Peer:
    """What TrainCheck took, and what the script took in its environment without it."""

    version: str
    date: str
    machine: str
    packages: dict[str, str]
    plain: Loop
    collect: Loop
    collect_command: Run
    trace_bytes: int
    records: int
    infer: Run
    invariants: int
    selective: Loop  # collected with `--invariants`, as its own checkers need it: one step in ten
    check: Run
    violated: int  # by the same program with the same seed


def recorded() -> Peer:
    """What it took when it was last run.

    Raises:
        Missing: it was never recorded.
    """
    try:
        return msgspec.json.decode(RECORDED.read_bytes(), type=Peer)
    except FileNotFoundError as error:
        raise Missing(f"{RECORDED.name} is not here: run it without --without-peer") from error


def record(peer: Peer) -> None:
    """Keep it for runs without the peer."""
    RECORDED.write_bytes(msgspec.json.format(msgspec.json.encode(peer), indent=1) + b"\n")


def environment(torch: str) -> Path:
    """A virtual environment of its own, as it takes pandas, Polars and numba along.

    Raises:
        Missing: it cannot be made.
    """
    folder = FOLDER / ".traincheck-venv"
    mark = folder / "complete"
    requirements = (f"torch=={torch}", f"traincheck=={VERSION}")
    wanted = f"{', '.join(requirements)}, Python {platform.python_version()}"
    if not mark.is_file() or mark.read_text(encoding="utf-8") != wanted:
        print(f"installing {requirements[-1]}", file=sys.stderr, flush=True)
        made = subprocess.run(
            [sys.executable, "-m", "venv", "--clear", str(folder)], check=False, capture_output=True
        )
        if made.returncode:
            raise Missing("python -m venv does not work here, and TrainCheck needs it")
        run_pip("install", *requirements, python=folder / "bin" / "python")
        mark.write_text(wanted, encoding="utf-8")
    return folder


def measured(
    script: Path, environment: Path, scratch: Path, date: str, machine: str, progress: Callable[[str], None]
) -> Peer:
    """Collect, infer, collect again for the check, and check, once each, as its README has it.

    Raises:
        Missing: one of its commands did not run to its end.
    """
    own = scratch / "peer"
    own.mkdir()
    script = Path(shutil.copy(script, own))

    def run(name: str, *words: str) -> Run:
        progress(f"TrainCheck: {name}")
        program, *rest = words
        path = os.pathsep.join([str(environment / "bin"), os.environ["PATH"]])
        clean = ("env", "-u", "PYTHONPATH", f"PATH={path}")
        argv = (*clean, str(environment / "bin" / program), *rest)
        return timed(Command(f"TrainCheck, {name}", argv, own, statuses=(0, 1)), scratch)

    run("the script alone", "python", script.name)
    plain = loop_of((scratch / "stdout").read_text(encoding="utf-8"))
    tracked = ("--pyscript", script.name, "--models-to-track", "model")
    collect_command = run("collect", "traincheck-collect", *tracked, "--output-dir", "reference")
    infer = run("infer", "traincheck-infer", "-f", "reference", "-o", "invariants.json")
    run(
        "collect by invariants",
        "traincheck-collect", *tracked, "--invariants", "invariants.json", "--output-dir", "target",
    )  # fmt: skip
    check = run("check", "traincheck-check", "-f", "target", "-i", "invariants.json", "-o", "checked")
    traces = [*(own / "reference").glob("trace_*"), own / "reference" / "proxy_log.json"]
    return Peer(
        version=VERSION,
        date=date,
        machine=machine,
        packages=_versions(environment),
        plain=plain,
        collect=loop_of((own / "reference" / "program_output.txt").read_text(encoding="utf-8")),
        collect_command=collect_command,
        trace_bytes=sum(path.stat().st_size for path in traces),
        records=sum(_lines(path) for path in traces),
        infer=infer,
        invariants=_lines(own / "invariants.json"),
        selective=loop_of((own / "target" / "program_output.txt").read_text(encoding="utf-8")),
        check=check,
        violated=_violated(own / "checked"),
    )


def loop_of(output: str) -> Loop:
    """What the script printed last of its epochs.

    Raises:
        Missing: it printed nothing of the kind.
    """
    for line in reversed(output.splitlines()):
        if line.startswith("[["):
            clock, cpu = zip(*json.loads(line), strict=True)
            return Loop(sum(clock), sum(cpu))
    raise Missing(f"the training did not run to its end: {output.strip()[-200:]}")


def _versions(environment: Path) -> dict[str, str]:
    asked = "import importlib.metadata as m, json; print(json.dumps({n: m.version(n) for n in ('torch', 'pandas')}))"
    done = subprocess.run(
        [str(environment / "bin" / "python"), "-c", asked], check=True, capture_output=True, text=True
    )
    found: dict[str, str] = json.loads(done.stdout)
    return found


def _violated(results: Path) -> int:
    [summary] = results.rglob("violations_summary.json")
    return int(json.loads(summary.read_text(encoding="utf-8"))["distinct_invariants_violated"])


def _lines(path: Path) -> int:
    with path.open("rb") as file:
        return sum(1 for _ in file)
