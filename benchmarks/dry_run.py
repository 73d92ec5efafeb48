"""The dry run held against the real run of every program that can run here: `python benchmarks/dry_run.py [PROGRAM ...]`.

Claims that differ are printed, and what the dry run does not know is counted. Without programs, it takes those of `tests/runs`,
`tests/healthy` and `examples`; `benchmarks/silent_bugs/scripts/*/healthy.py` can be named as well.
"""

import argparse
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from oracle import compare, real_run, summary


def main() -> int:
    """Compare and print; returns the exit status, 1 for a false claim."""
    parser = argparse.ArgumentParser(description="Hold dry runs against real runs.")
    parser.add_argument("programs", nargs="*", type=Path, metavar="PROGRAM")
    parser.add_argument("-j", "--jobs", type=int, default=2, help="real runs at a time (default: 2)")
    parser.add_argument("--missed", action="store_true", help="print what the dry run does not know, too")
    options = parser.parse_args()
    programs = options.programs or [
        path
        for folder in ("tests/runs", "tests/healthy", "examples")
        for path in sorted((ROOT / folder).glob("*.py"))
    ]
    results = []
    with ThreadPoolExecutor(options.jobs) as pool:
        for program, real in zip(programs, pool.map(_real, programs), strict=True):
            if real is None or real["status"] not in ("ended", "cut") or not real["actions"]:
                print(f"{program}: it does not run here")
                continue
            compared = compare(program.resolve(), real)
            results.append(compared)
            for claim in compared.false:
                print(f"{program}: false: {claim}")
            for miss in compared.missed if options.missed else ():
                print(f"{program}: not known: {miss}")
    print("\n".join(summary(results)))
    return 1 if any(one.false for one in results) else 0


def _real(program: Path) -> dict[str, object] | None:
    try:
        return real_run(program.resolve())
    except subprocess.TimeoutExpired:
        return None


if __name__ == "__main__":
    raise SystemExit(main())
