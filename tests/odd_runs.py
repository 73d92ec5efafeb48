"""Odd training scripts (`odd/`), each run plainly and watched: nobody may be able to tell the difference.

`python tests/odd_runs.py [SCRIPT ...]` runs them in all modes and prints the figures.

A script is a file of `odd/`; comments at its top say how it is run:

    # real                       in a process that starts from nothing, and not by a fork of one that has torch
    # words: -m package a b      by these words instead of its name
    # stdin: text                with this on standard input
    # differs: D16 in run, every the defect by which it differs when watched, in these modes or in all
    # sometimes: D3             the same of one that differs in some runs
"""

import argparse
import os
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import TypeVar

from commands import Ran, python, warm

FOLDER = Path(__file__).parent / "odd"
_REPORT = "ta-report.json"
_RUN = ("-m", "ta_runtime", "run", "--output", _REPORT)
_ENABLE = f"import ta_runtime; ta_runtime.enable(output={_REPORT!r})"
COMMANDS = {
    "run": _RUN,
    "every": (*_RUN, "--every", "1", "--quiet"),
    "record": (*_RUN, "--record", "ta-record", "--snapshots", "every 1", "--quiet"),
}
_LOADS = (
    "ta_runtime.commands.run",
    "ta_runtime.api",
    "ta_runtime.runs",
    "ta_runtime.snapshot",
    "ta_runtime.audit.session",
)
MODES = (*COMMANDS, "enable")
_TIMEOUT = 90.0
T = TypeVar("T")


@dataclass(frozen=True)
class Script:
    """A script, and how it is run."""

    name: str
    words: tuple[str, ...]
    stdin: str | None
    real: bool
    defect: str
    """By which it differs when watched; empty if it must not."""
    modes: tuple[str, ...]
    """In which it differs."""
    always: bool

    def defect_in(self, mode: str) -> str:
        return self.defect if mode in self.modes else ""


def scripts() -> list[Script]:
    """All of the folder, by name."""
    return [_read(path) for path in sorted(FOLDER.glob("*.py")) if path.stem != "told"]


def _read(path: Path) -> Script:
    head = dict(
        re.findall(r"^# (real|words|stdin|differs|sometimes)(?:: (.+))?$", path.read_text(), re.MULTILINE)
    )
    words = head["words"].split() if "words" in head else [path.name]
    defect, _, modes = (head.get("differs") or head.get("sometimes", "")).partition(" in ")
    return Script(
        path.stem,
        tuple(str(FOLDER / word) if word == path.name else word for word in words),
        head.get("stdin"),
        "real" in head or "stdin" in head,
        defect,
        tuple(modes.split(", ")) if modes else MODES if defect else (),
        "differs" in head,
    )


@dataclass(frozen=True)
class Told:
    """What a run tells to whoever looks: but for paths and addresses, which are others each time."""

    status: int
    stdout: str
    stderr: str
    complaints: tuple[str, ...] = ()
    """What the tool says of itself: that it failed, or did not watch."""
    seconds: float = 0.0


def ran(script: Script, mode: str | None, product: str = "") -> Told:
    """Run a script plainly, or watched in a mode; `product` is a folder with another version of the tool."""
    path = os.pathsep.join(filter(None, (product, str(FOLDER))))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        began = time.perf_counter()
        result = _started(script, mode, folder, path)
        seconds = time.perf_counter() - began
        reports = "".join(report.read_text() for report in folder.glob("ta-report*"))
        complaints = re.findall(r"TA000 .*|.*is not watched.*|.*Traceback.*ta_runtime.*", result.stderr)
        complaints += re.findall(r'"TA000"', reports)
        if mode is not None and not reports and script.name not in _NO_REPORT:
            complaints.append("no report")
        same = partial(
            re.sub, rf"0x[0-9a-f]{{6,}}|{re.escape(name)}|\d{{4}}-\d\d-\d\d \d\d:\d\d:\d\d \d+:\d+", "..."
        )
        return Told(
            result.returncode, same(result.stdout), same(_theirs(result.stderr)), tuple(complaints), seconds
        )


_NO_REPORT = (
    "exit_at_once",
    "signal_kills",
    "working_directory",
    "script_on_stdin_child",
    "closed_descriptors",
)
"""What is killed, or has no folder any more, writes none; and what does not train itself."""


def _started(script: Script, mode: str | None, folder: Path, path: str) -> Ran:
    words = (*COMMANDS.get(mode or "", ()), *script.words)
    if not script.real:
        first = _ENABLE if mode == "enable" else ""
        loads = () if mode is None else _LOADS  # which takes longer than most of what runs
        return warm(folder, *words, first=first, loads=loads, timeout=_TIMEOUT, PYTHONPATH=path)
    if mode != "enable":
        return python(folder, *words, stdin=script.stdin or "", timeout=_TIMEOUT, PYTHONPATH=path)
    with tempfile.TemporaryDirectory() as name:  # for the process alone, and not for those that it starts
        start = f"import sys\nif {name!r} in sys.path:\n sys.path.remove({name!r})\nimport os\nos.environ['PYTHONPATH'] = {path!r}\n"
        # where `PYTHONPATH` leads there is no script yet
        guarded = f"if not '-c' in sys.orig_argv:\n {_ENABLE}\n"
        Path(name, "sitecustomize.py").write_text(start + guarded)
        everywhere = os.pathsep.join((name, path))
        return python(folder, *words, stdin=script.stdin or "", timeout=_TIMEOUT, PYTHONPATH=everywhere)


def _theirs(text: str) -> str:
    """What a run prints to standard error without our report: lines that name us, and the table between two of them."""
    kept = []
    in_table = False
    for line in text.splitlines():
        if line.startswith("ta-runtime:"):
            in_table = False
        elif re.match(r"rule +line +step", line):
            in_table = True
        elif not in_table:
            kept.append(line)
    return "\n".join(kept)


def differences(plain: Told, watched: Told) -> list[str]:
    """By what one can tell a watched run from a plain one."""
    found = []
    if plain.status != watched.status:
        found.append(f"exit status {watched.status}, not {plain.status}")
    for name in ("stdout", "stderr"):
        one, other = getattr(plain, name), getattr(watched, name)
        if one != other:
            found.append(f"{name}: {_first(one, other)}")
    return found + [f"complaint: {each}" for each in watched.complaints[:1]]


def _first(one: str, other: str) -> str:
    """The first line that differs."""
    lines = (one.splitlines(), other.splitlines())
    for a, b in zip(*lines, strict=False):
        if a != b:
            same = next((n for n, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), 0)
            start = max(0, same - 30)
            return f"{b[start : start + 160]!r}, not {a[start : start + 160]!r}"
    shorter, longer = sorted(lines, key=len)
    return f"{len(lines[1])} lines, not {len(lines[0])}: {longer[len(shorter)][:200]!r}"


@cache
def plainly(script: Script) -> Told:
    """As `ran`, once."""
    return ran(script, None)


def cell(script: Script, mode: str | None, product: str = "") -> list[str]:
    """By what one can tell a run in this mode from a plain one."""
    try:
        return differences(plainly(script), ran(script, mode, product))
    except AssertionError as error:  # it is not over
        return [str(error)[:200]]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="SCRIPT", help="by name, as `fx_trace`; default: all")
    parser.add_argument("--modes", default=",".join(MODES), help="separated by commas")
    parser.add_argument("--product", default="", help="a folder with another version of the tool")
    parser.add_argument(
        "--twice", action="store_true", help="find scripts that differ from themselves, first"
    )
    given = parser.parse_args()
    chosen = [script for script in scripts() if not given.names or script.name in given.names]
    for result in _all([partial(_again, script) for script in chosen if given.twice]):
        if result:
            print(result, flush=True)
    differing = 0
    for mode in given.modes.split(","):
        counts = {"same": 0, "expected to differ": 0, "differ": 0}
        found = _all([partial(cell, script, mode, given.product) for script in chosen])
        for script, each in zip(chosen, found, strict=True):
            defect = script.defect_in(mode)
            counts["same" if not each else "expected to differ" if defect else "differ"] += 1
            if each or defect:
                print(f"{script.name} {mode}: {defect} {'; '.join(each) or 'IS THE SAME'}", flush=True)
        print(f"{mode}: {counts}", flush=True)
        differing += counts["differ"]
    return 1 if differing else 0


def _again(script: Script) -> str:
    """A script that differs from itself can show nothing."""
    found = cell(script, None)
    return f"{script.name} plain: {'; '.join(found)}" if found else ""


def _all(runs: "list[Callable[[], T]]") -> "Iterator[T]":
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        yield from pool.map(lambda run: run(), runs)


if __name__ == "__main__":
    sys.exit(main())
