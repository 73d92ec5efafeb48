"""Each tool on one script, as its users would run it, and what it says."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import forks
from pairs import Case, Kind

from ta_lint.core.catalogue import catalogue

HERE = Path(__file__).parent
SECONDS = 120

# The ids that torch-audit 0.3.0 has; ours of the same number mean the same.
TORCH_AUDIT_RULES = {
    *(f"TA{number}" for number in range(100, 106)),
    *(f"TA{number}" for number in range(200, 204)),
    *(f"TA{number}" for number in range(300, 306)),
    *(f"TA{number}" for number in range(400, 406)),
    "TA500",
    "TA501",
}


@dataclass(frozen=True)
class Found:
    """A finding: `severity` is error, warning or note; `line` is 0 where the tool names none."""

    rule: str
    line: int
    severity: str
    message: str
    verdict: str = ""
    """Of `ta-runtime run --lint`: confirmed, refuted or unobserved."""

    @property
    def is_alarm(self) -> bool:
        return self.severity != "note" and self.verdict != "refuted"


@dataclass(frozen=True)
class Outcome:
    """What a tool said of a script. `problem` says why it said nothing, if it could not."""

    found: tuple[Found, ...]
    problem: str = ""


Tool = Callable[[Case, Kind], Outcome]


def lint(case: Case, kind: Kind) -> Outcome:
    """`ta-lint check`, with the rule of the case where that is opt-in."""
    with _alone(case, kind) as folder:
        words = ["-m", "ta_lint", "check", "--isolated", "--format=json", "--output=found.json"]
        status, said = finished([*words, *_opted_in(case), "train.py"], folder)
        return _ours(folder, said) if status in (0, 1) else Outcome((), said)


def watch(case: Case, kind: Kind) -> Outcome:
    """`ta-runtime run` with its defaults."""
    return _watched(case, kind, [])


def watch_shortly(case: Case, kind: Kind) -> Outcome:
    """`ta-runtime run` with its defaults, of a run whose training ends after 40 steps."""
    return _watched(case, kind, [], [str(HERE / "cut.py")])


def watch_killed(case: Case, kind: Kind) -> Outcome:
    """`ta-runtime run` with its defaults, of a run that is killed in its 40th step."""
    return _watched(case, kind, [], [str(HERE / "cut.py"), "--kill"])


def watch_closely(case: Case, kind: Kind) -> Outcome:
    """`ta-runtime run` with every step audited."""
    return _watched(case, kind, ["--every=1"])


def judge(case: Case, kind: Kind) -> Outcome:
    """`ta-runtime run --lint` with every step audited: what the linter suspects, and what the run says of it."""
    return _watched(case, kind, ["--every=1", "--lint"])


def torch_audit(case: Case, kind: Kind) -> Outcome:
    """torch-audit's `autopatch`, every step audited, put around model and optimizer from outside of the script."""
    return _launched(case, kind, "launch_torch_audit.py")


def anomaly(case: Case, kind: Kind) -> Outcome:
    """`torch.autograd.set_detect_anomaly(True)` around the script; what it raises is the finding."""
    return _launched(case, kind, "launch_anomaly.py")


OF_PAGES = ("lint", "run", "run of 40 steps", "killed at step 40")
"""What is asked about the pairs that were written from the pages."""

TOOLS: dict[str, Tool] = {
    "lint": lint,
    "run": watch,
    "run of 40 steps": watch_shortly,
    "killed at step 40": watch_killed,
    "run --every 1": watch_closely,
    "run --lint": judge,
    "torch-audit": torch_audit,
    "detect_anomaly": anomaly,
}


def _watched(case: Case, kind: Kind, options: list[str], launched: Sequence[str] = ()) -> Outcome:
    with _alone(case, kind) as folder:
        options = ["--format=json", "--output=found.json", *options, *_opted_in(case)]
        status, said = finished(
            [*launcher(case), "-m", "ta_runtime", "run", *options, *launched, "train.py"], folder
        )
        outcome = _ours(folder, said)
        if status and not outcome.problem:
            return replace(outcome, problem=f"exit status {status}: {said}")
        return outcome


def _launched(case: Case, kind: Kind, name: str) -> Outcome:
    with _alone(case, kind) as folder:
        _, said = finished([*launcher(case), str(HERE / name), "train.py"], folder)
        reports = sorted(folder.glob("found.*.json"))
        if not reports:
            return Outcome((), said or "no report")
        items = [item for report in reports for item in json.loads(report.read_text(encoding="utf-8"))]
        return Outcome(tuple(dict.fromkeys(Found(**item) for item in items)))


@contextmanager
def _alone(case: Case, kind: Kind) -> Iterator[Path]:
    """A folder with the script alone, under a name that says nothing of what is wrong with it."""
    with tempfile.TemporaryDirectory(prefix="work") as made:
        folder = Path(made)
        shutil.copyfile(case.path(kind), folder / "train.py")
        yield folder


def launcher(case: Case) -> list[str]:
    """What starts the ranks of a case, if it has several."""
    if case.ranks == 1:
        return []
    return ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={case.ranks}"]


def _opted_in(case: Case) -> list[str]:
    rule = catalogue().get(case.rule)
    return [f"--extend-select={rule.id}"] if rule is not None and not rule.default else []


def finished(words: list[str], folder: Path) -> tuple[int, str]:
    """`python WORDS`: the exit status and the last line of standard error; all that it started ends with it."""
    if "torch.distributed.run" in words:
        status, said = _separate(words, folder)
    else:
        status, said = forks.python(words, folder, SECONDS)
    return status, said.rpartition("\n")[2]


def _separate(words: list[str], folder: Path) -> tuple[int, str]:
    """In a process of its own."""
    with subprocess.Popen(
        [sys.executable, *words],
        cwd=folder,
        env=os.environ | {"OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
    ) as process:
        try:
            said = process.communicate(timeout=SECONDS)[1].strip()
        except subprocess.TimeoutExpired:
            said = f"not done after {SECONDS} s"
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # ranks that outlived it
    return process.returncode, said


def _ours(folder: Path, said: str) -> Outcome:
    """What the report says; of ranks that were not gathered, as one has died, what their own do."""
    reports = sorted(folder.glob("found*.json"))
    if not reports:
        return Outcome((), said or "no report")
    items: list[dict[str, Any]] = [
        item for report in reports for item in json.loads(report.read_text(encoding="utf-8"))
    ]
    found = [
        Found(item["rule"], item["line"], item["severity"], item["message"], item.get("verdict") or "")
        for item in items
        if item["path"] == "train.py"
    ]
    elsewhere = [item for item in items if item["path"] != "train.py" and item["severity"] != "note"]
    problem = "; ".join(f"{i['path']}:{i['line']} {i['rule']}" for i in elsewhere)
    return Outcome(tuple(dict.fromkeys(found)), problem)
