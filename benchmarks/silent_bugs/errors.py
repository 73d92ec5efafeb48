"""The errors of the TrainCheck paper: by which means each is detected, and how many steps after it first did harm.

`python benchmarks/silent_bugs/errors.py [--only 'TA8*'] [--write]`. Invariants are learned from two runs of the healthy script
with other seeds, and held against the buggy script and against the healthy one with its own seed.
"""

import argparse
import json
import re
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))  # `sections` and `tables` lie there

import forks
from pairs import Case, Kind, cases
from sections import write_section
from tables import aligned
from tools import finished, launcher, lint

from ta_lint.core.catalogue import catalogue
from ta_lint.core.errors import UsageError
from ta_runtime.invariants import file, replay, shipped
from ta_runtime.invariants.checking import Checker
from ta_runtime.invariants.inferring import infer
from ta_runtime.invariants.invariant import Invariant
from ta_runtime.runs import Run

HERE = Path(__file__).parent
RECORDED = HERE / "errors.json"
DOCUMENT = HERE.parents[1] / "docs" / "silent-errors.md"

MEANS = ("static rule", "rule of the run", "shipped invariant", "learned invariant", "learned, in the run")
IN_TIME = 1
"""Steps after the trigger within which an error must be detected."""


@dataclass(frozen=True)
class Seen:
    """What a means says first of a script: a rule, or the sentence of an invariant; at how many steps after the trigger."""

    what: str
    delay: int


@dataclass
class Answer:
    """Of each means what it says of the buggy script, and all that it says of the healthy one."""

    buggy: dict[str, Seen] = field(default_factory=dict)
    healthy: dict[str, list[str]] = field(default_factory=dict)
    learned: int = 0
    """How many invariants were learned."""

    @property
    def in_time(self) -> list[str]:
        """The means that detect it within a step."""
        return [means for means in MEANS if means in self.buggy and self.buggy[means].delay <= IN_TIME]


def main() -> int:
    """Ask, record and print; returns the exit status: 1 if an error is not detected in time, or a healthy script alarms."""
    parser = argparse.ArgumentParser(
        description="By which means the errors of the TrainCheck paper are detected."
    )
    parser.add_argument(
        "--only", default="*", metavar="GLOB", help="these cases, by the name of their folder"
    )
    parser.add_argument("--jobs", type=int, default=2, help="processes at a time (default: 2)")
    parser.add_argument("--no-run", action="store_true", help="print what errors.json has")
    parser.add_argument("--write", action="store_true", help="put the table into docs/silent-errors.md")
    arguments = parser.parse_args()
    answers = recorded()
    if not arguments.no_run:
        answers |= _asked([case for case in cases(arguments.only) if case.source], arguments.jobs)
        RECORDED.write_text(
            json.dumps({name: asdict(answer) for name, answer in sorted(answers.items())}, indent=1) + "\n",
            "utf-8",
        )
    known = {case.name: case for case in cases() if case.source}
    chosen = [case for name, case in known.items() if name in answers]
    table = list(rendered(chosen, answers))
    print("\n".join(table))
    if arguments.write:
        write_section(DOCUMENT, "benchmarks/silent_bugs/errors.py", "\n".join(["", *table, "", ""]))
    bad = [
        case.name
        for case in chosen
        if not answers[case.name].in_time or any(answers[case.name].healthy.values())
    ]
    for name in bad:
        print(f"{name}: {answers[name]}", file=sys.stderr)
    return 1 if bad else 0


def recorded() -> dict[str, Answer]:
    """What `errors.json` has, by case; nothing if there is none."""
    if not RECORDED.is_file():
        return {}
    kept = json.loads(RECORDED.read_text("utf-8"))
    return {
        name: Answer(
            {means: Seen(**seen) for means, seen in said["buggy"].items()}, said["healthy"], said["learned"]
        )
        for name, said in kept.items()
    }


def reseeded(code: str, number: int) -> str:
    """A script with other seeds."""
    return code.replace("torch.manual_seed(", f"torch.manual_seed({1000 * number} + ")


def breaches(trace: Path, invariants: Iterable[Invariant]) -> Iterator[tuple[int, str]]:
    """Step and sentence of what a trace breaks, in order; nothing of one that a dying process did not write."""
    try:
        for violation in replay.violations(Run(str(trace)), Checker(invariants)):
            yield violation.event.step, file.says(violation.invariant)
    except UsageError:
        return


def rendered(chosen: list[Case], answers: dict[str, Answer]) -> Iterator[str]:
    """A row for each error: of each means what it says, with the number of steps after the trigger."""
    rows: list[tuple[str, ...]] = [("error", "script", *MEANS, "on the healthy script")]
    for case in sorted(chosen, key=lambda case: case.source.lower()):
        answer = answers[case.name]
        cells = [_cell(answer.buggy.get(means)) for means in MEANS]
        alarms = sorted({what for said in answer.healthy.values() for what in said})
        rows.append((case.source, case.name, *cells, "; ".join(alarms)))
    yield from aligned(rows)
    count = len(chosen)
    yield ""
    yield f"Of {count} errors, {sum(bool(answers[case.name].in_time) for case in chosen)} are detected within a step of the trigger."
    for means in MEANS:
        named = [answers[case.name].buggy[means] for case in chosen if means in answers[case.name].buggy]
        soon = sum(seen.delay <= IN_TIME for seen in named)
        yield f"- {means}: {len(named)}, {soon} of them within a step"
    yield ""
    yield "What the first learned invariant says that is broken:"
    yield ""
    for case in sorted(chosen, key=lambda case: case.source.lower()):
        seen = answers[case.name].buggy.get("learned invariant") or answers[case.name].buggy.get(
            "learned, in the run"
        )
        yield f"- {case.source}, of {answers[case.name].learned}: {seen.what if seen is not None else 'none'}"


def _cell(seen: Seen | None) -> str:
    if seen is None:
        return ""
    return f"{seen.what} +{seen.delay}" if re.fullmatch(r"TA\d{3}", seen.what) else f"+{seen.delay}"


def _asked(chosen: list[Case], jobs: int) -> dict[str, Answer]:
    answers = {}
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        tasks = [(case.name, partial(_ask, case, folder / "work" / case.name)) for case in chosen]
        for number, (name, path) in enumerate(forks.each(tasks, folder, jobs), 1):
            said = json.loads(path.read_text("utf-8"))
            seen = {means: Seen(**each) for means, each in said["buggy"].items()}
            answers[name] = Answer(seen, said["healthy"], said["learned"])
            print(f"{number}/{len(chosen)} {name}", file=sys.stderr, flush=True)
    return answers


def _ask(case: Case, folder: Path, path: Path) -> None:
    path.write_text(json.dumps(asdict(_answer(case, folder))), "utf-8")


def _answer(case: Case, folder: Path) -> Answer:
    texts = {name: case.text("healthy") for name in ("healthy", "first", "second")} | {
        "buggy": case.text("buggy")
    }
    for number, (name, text) in enumerate(texts.items()):
        (folder / name).mkdir(parents=True)
        own = name in ("healthy", "buggy")
        (folder / name / "train.py").write_text(text if own else reseeded(text, number), "utf-8")
        finished(
            [*launcher(case), "-m", "ta_runtime", "collect", "--level=ops", "-o", "trace", "train.py"],
            folder / name,
        )
    learned = infer([Run(str(folder / name / "trace")) for name in ("first", "second")])
    file.save(folder / "learned.json", learned)
    answer = Answer(learned=len(learned))
    _spotted(case, answer)
    _watched(case, folder, answer, "rule of the run")
    for means, invariants in (("shipped invariant", shipped.shipped()), ("learned invariant", learned)):
        found = list(breaches(folder / "buggy" / "trace", invariants))
        _first(answer, means, [(what, _delay(case, step)) for step, what in found])
        answer.healthy[means] = [what for _, what in breaches(folder / "healthy" / "trace", invariants)]
    _watched(case, folder, answer, "learned, in the run", str(folder / "learned.json"))
    return answer


def _spotted(case: Case, answer: Answer) -> None:
    rules = {rule for mark in case.bugs() for rule in mark.rules if "static" in mark.observers}
    named = [found.rule for found in lint(case, "buggy").found if found.rule in rules]
    _first(answer, "static rule", [(rule, 0) for rule in named])
    answer.healthy["static rule"] = [found.rule for found in lint(case, "healthy").found if found.is_alarm]


def _watched(case: Case, folder: Path, answer: Answer, means: str, *invariants: str) -> None:
    """What a run tells of itself: by rules, or by invariants."""
    defaults = [rule.id for rule in catalogue().values() if rule.default or rule.id == case.rule]
    rules = "TA510" if invariants else ",".join(defaults)
    kinds: tuple[Kind, ...] = ("buggy", "healthy")
    for kind in kinds:
        for old in (folder / kind).glob("told.*.json"):
            old.unlink()
        words = [*launcher(case), str(HERE / "launch_ta_runtime.py"), rules, "train.py", *invariants]
        finished(words, folder / kind)
        told = [
            each
            for path in sorted((folder / kind).glob("told.*.json"))
            for each in json.loads(path.read_text("utf-8"))
        ]
        told.sort(key=lambda each: each["step"])
        if kind == "healthy":
            answer.healthy[means] = [each["message"] for each in told if each["severity"] != "note"]
            continue
        marked = {rule for mark in case.bugs() for rule in mark.rules if "runtime" in mark.observers}
        own = [each for each in told if invariants or each["rule"] in marked]
        _first(
            answer,
            means,
            [(each["message"] if invariants else each["rule"], _delay(case, each["step"])) for each in own],
        )


def _first(answer: Answer, means: str, found: list[tuple[str, int]]) -> None:
    if found:
        answer.buggy[means] = Seen(*found[0])


def _delay(case: Case, step: int) -> int:
    """Steps after the one in which it first did harm."""
    return max(0, step - case.trigger)


if __name__ == "__main__":
    sys.exit(main())
