"""Silent bugs beside their healthy twins: what ta-lint, ta-runtime, torch-audit and detect_anomaly say of each.

`python benchmarks/silent_bugs/run.py [--only 'TA6*'] [--tool run] [--write]`; see `benchmarks/silent_bugs/README.md`.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict
from functools import partial
from pathlib import Path

import forks
from document import OURS, made, write
from pairs import KINDS, Case, Kind, cases
from scores import Results, false_alarms, problems
from tools import OF_PAGES, TOOLS, Found, Outcome

_KEPT = 20
"""Answers after which those so far are written down."""
_OF_PAGES_ALONE = {"run of 40 steps", "killed at step 40"}
RECORDED = Path(__file__).parent / "results.json"


def main() -> int:
    """Run the tools and print the table; returns the exit status, 1 for a false alarm of ours."""
    arguments = _arguments()
    chosen = cases(arguments.only)
    results = recorded()
    if not arguments.no_run:
        try:
            _run(chosen, arguments.tool or list(TOOLS), arguments.jobs, results)
        finally:
            _record(results)
    print("\n".join(made(chosen, results)))
    for problem in problems(chosen, results):
        print(problem, file=sys.stderr)
    if arguments.write:
        write(chosen, results)
    return 1 if any(_alarms(chosen, results)) else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Score tools on pairs of training scripts.")
    parser.add_argument(
        "--only", default="*", metavar="GLOB", help="these cases, by the name of their folder"
    )
    parser.add_argument("--tool", choices=TOOLS, action="append", help="only this; may be repeated")
    parser.add_argument("--jobs", type=int, default=2, help="processes at a time (default: 2)")
    parser.add_argument("--no-run", action="store_true", help="score what results.json has")
    parser.add_argument("--write", action="store_true", help="put the table into docs/silent-bugs.md")
    arguments = parser.parse_args()
    if arguments.write and arguments.only != "*":
        parser.error("--write is of all cases")
    return arguments


def recorded() -> Results:
    """What `results.json` has; nothing if there is none."""
    if not RECORDED.is_file():
        return Results()
    kept: dict[str, dict[Kind, dict[str, dict[str, object]]]] = json.loads(RECORDED.read_text("utf-8"))
    return Results(
        {
            (name, kind, tool): _outcome(said)
            for name, kinds in kept.items()
            for kind, tools in kinds.items()
            for tool, said in tools.items()
        }
    )


def _outcome(said: dict[str, object]) -> Outcome:
    found = said["found"]
    assert isinstance(found, list)
    return Outcome(tuple(Found(**item) for item in found), str(said["problem"]))


def _record(results: Results) -> None:
    kept: dict[str, dict[str, dict[str, object]]] = {}
    for (name, kind, tool), outcome in sorted(results.outcomes.items()):
        kept.setdefault(name, {}).setdefault(kind, {})[tool] = asdict(outcome)
    RECORDED.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")


def _run(chosen: list[Case], tools: list[str], jobs: int, results: Results) -> None:
    asked = [
        (case, kind, tool)
        for case in chosen
        for kind in KINDS
        for tool in tools
        if (tool in OF_PAGES if case.hand else tool not in _OF_PAGES_ALONE)
    ]
    with tempfile.TemporaryDirectory() as folder:
        tasks = [(job, partial(_ask, job)) for job in asked]
        for number, (job, path) in enumerate(forks.each(tasks, Path(folder), jobs), 1):
            case, kind, tool = job
            said = (
                json.loads(path.read_text("utf-8"))
                if path.is_file()
                else {"found": [], "problem": "no answer"}
            )
            results.outcomes[case.name, kind, tool] = _outcome(said)
            print(f"{number}/{len(asked)} {case.name}/{kind}.py {tool}", file=sys.stderr, flush=True)
            if number % _KEPT == 0:
                _record(results)


def _ask(job: tuple[Case, Kind, str], path: Path) -> None:
    case, kind, tool = job
    path.write_text(json.dumps(asdict(TOOLS[tool](case, kind))), "utf-8")


def _alarms(chosen: list[Case], results: Results) -> Iterator[Found]:
    for case in chosen:
        for tool in OURS:
            yield from false_alarms(case, results, tool)


if __name__ == "__main__":
    sys.exit(main())
