"""The dry run held against the real run of every program that can run here: `python benchmarks/dry_run.py [--only TEXT]`.

Claims that differ are printed, and what the dry run does not know is counted, with its reasons. The real runs are kept in the folder
`--runs`: after a change of the dry run, only the dry runs are made again.
"""

import argparse
import sys
import tempfile
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from oracle import KINDS, Comparison, compare, left_out, real_runs, summary
from runnable import programs, sample


def main() -> int:
    """Compare and print; returns the exit status, 1 for a false claim."""
    parser = argparse.ArgumentParser(description="Hold dry runs against real runs.")
    parser.add_argument("--only", default="", metavar="TEXT", help="programs with this in their name")
    parser.add_argument("--sample", type=int, metavar="N", help="so many of them, drawn by their names")
    parser.add_argument("--runs", type=Path, metavar="FOLDER", help="where real runs are kept")
    parser.add_argument("-j", "--jobs", type=int, default=2, help="real runs at a time (default: 2)")
    parser.add_argument(
        "--missed", metavar="KIND", help=f"print what is missed, of one kind: {', '.join(KINDS)}"
    )
    parser.add_argument("--reasons", type=int, default=20, metavar="N", help="of misses (default: 20)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        runs = options.runs or Path(folder, "runs")
        every = [program for program in programs(Path(folder)) if options.only in program.name]
        chosen = sample(every, options.sample or len(every))
        results, out = list[Comparison](), Counter[str]()
        for program, real in real_runs(chosen, runs, options.jobs):
            why = left_out(program, real)
            if why:
                out[why] += 1
                continue
            compared = compare(program, real)
            results.append(compared)
            for claim in compared.false:
                print(f"{program.name}: false: {claim}")
            for name, where in compared.misfits.items():
                print(f"{program.name}: {name} does not find what it looks for: {where}")
            for what, reason in compared.missed:
                if options.missed and what.startswith(options.missed):
                    print(f"{program.name}: not known: {what} ({reason})")
    reasons = Counter(
        f"{what.partition(':')[0]}: {why}" for one in results for what, why in one.missed if why
    )
    for reason, count in reasons.most_common(options.reasons):
        print(f"{count:5} {reason}")
    print("\n".join(summary(results)))
    print(f"left out: {', '.join(f'{count} {why}' for why, count in out.most_common())}")
    return 1 if any(one.false for one in results) else 0


if __name__ == "__main__":
    raise SystemExit(main())
