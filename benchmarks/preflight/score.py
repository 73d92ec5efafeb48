"""Has `ta-runtime preflight` look at each program of this folder, and says what it finds.

Each of `faults/` names in its first line the rules of which one is to be found; in `healthy/` nothing above a note is.
"""

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

FOLDER = Path(__file__).parent
OPTIONS = ["--isolated", "--extend-select", "TA312,TA314", "--format", "json"]
"""Two rules that are off by default, as what they tell of may be meant."""


def programs(kind: str) -> list[Path]:
    """Those of one of the two folders."""
    return sorted((FOLDER / kind).glob("*.py"))


def wanted(program: Path) -> set[str]:
    """The rules that a program with a fault names."""
    first = program.read_text(encoding="utf-8").partition("\n")[0]
    return set(re.findall(r"TA\d{3}", first.partition("Finds:")[2]))


def found(document: str) -> set[str]:
    """The rules of the findings in a report as JSON."""
    return {finding["rule"] for finding in json.loads(document)}


def alarms(document: str) -> set[str]:
    """Those of the findings at or above a warning."""
    return {finding["rule"] for finding in json.loads(document) if finding["severity"] != "note"}


def main() -> int:
    missed = 0
    for kind in ("faults", "healthy"):
        for program in programs(kind):
            command = [sys.executable, "-m", "ta_runtime", "preflight", *OPTIONS, str(program.absolute())]
            with tempfile.TemporaryDirectory() as folder:  # for what the program writes
                ran = subprocess.run(
                    command, cwd=folder, capture_output=True, text=True, timeout=120, check=False
                )
            rules = found(ran.stdout) if kind == "faults" else alarms(ran.stdout)
            right = bool(rules & wanted(program)) if kind == "faults" else not rules
            missed += not right
            print(f"{'ok' if right else 'WRONG':6}{kind}/{program.stem}: {', '.join(sorted(rules)) or '-'}")
    return int(missed > 0)


if __name__ == "__main__":
    raise SystemExit(main())
