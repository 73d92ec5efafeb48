"""Running a command to its end, and what that cost."""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from corpus import Missing

ROOT = Path(__file__).resolve().parents[2]

_MAXRSS_UNITS_PER_MB = 1e6 if sys.platform == "darwin" else 1e6 / 1024


@dataclass(frozen=True)
class Command:
    """A command to time, and the exit statuses that mean that it ran to its end."""

    name: str
    argv: tuple[str, ...]
    folder: Path
    statuses: tuple[int, ...] = (0,)
    prepare: Callable[[], None] | None = None  # runs before it, untimed


@dataclass(frozen=True)
class Run:
    """What one run of a command cost. CPU is user and system time of the whole process tree."""

    wall_s: float
    cpu_s: float
    user_s: float
    peak_mb: float  # of the largest single process


Runs = dict[str, list[Run]]


def timed(command: Command, scratch: Path) -> Run:
    """Run a command once, its output kept in files.

    Raises:
        Missing: it did not run to its end.
    """
    if command.prepare is not None:
        command.prepare()
    errors = scratch / "stderr"
    with (scratch / "stdout").open("wb") as stdout, errors.open("wb") as stderr:
        start = time.perf_counter()
        process = subprocess.Popen(
            command.argv, cwd=command.folder, env=environment(), stdout=stdout, stderr=stderr
        )
        _, wait_status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(wait_status)
    lines = errors.read_text(encoding="utf-8", errors="replace").splitlines()
    # A traceback has exit status 1 as well, like a linter that found something.
    if process.returncode not in command.statuses or any(line.startswith("Traceback ") for line in lines):
        said = lines[-1] if lines else "no message"
        raise Missing(f"{command.name}: exit status {process.returncode}: {said}")
    cpu = usage.ru_utime + usage.ru_stime
    return Run(wall, cpu, usage.ru_utime, usage.ru_maxrss / _MAXRSS_UNITS_PER_MB)


def environment() -> dict[str, str]:
    """That of this process, with this checkout's ta-lint and this interpreter's scripts, wherever a command runs."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return os.environ | {"PYTHONPATH": str(ROOT), "PATH": path}
