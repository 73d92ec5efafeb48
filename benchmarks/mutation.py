"""How much of what the loop rules are about they find: healthy training loops of the corpora, broken one at a time.

`python benchmarks/mutation.py [--rule TA600] [--corpus cleanrl] [--write]`; see `benchmarks/README.md`.
"""

import argparse
import json
import os
import sys
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import libcst as cst
from corpus import VERSIONS, Missing, corpora, sources
from mutations import MUTATIONS, Site, Text, mutants
from split import split
from tables import aligned

from ta_lint import checks
from ta_lint.checks import gate
from ta_lint.core.catalogue import catalogue
from ta_lint.core.config import Config, Configs, Options
from ta_lint.core.errors import Unreadable
from ta_lint.core.finding import Finding
from ta_lint.core.source import Source, decode
from ta_lint.engine import lint, lint_file
from ta_lint.facts import FileFacts, Kind, TrainingLoop
from ta_lint.file import File, is_test
from ta_lint.project.project import renew

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "mutation.json"
JUDGEMENTS = ROOT / "tests" / "ecosystem" / "findings.toml"
UNCLASSIFIED = "unclassified"

_RECURSION_LIMIT = 10_000
# A loop that clears no gradients is a finding of one of these, depending on what is left around it: where the mutant
# of one has become the bug of the other, a finding of the other counts.
_OVER_GRADIENTS = ("TA600", "TA602")
_OVER_SCHEDULERS = ("TA607", "TA608")
_OVER_MODELS = ("TA502", "TA505", "TA508", "TA611", "TA612", "TA613")


@dataclass
class Tally:
    """What became of a rule: the healthy loops that could be broken, the mutants, those found, the misses by cause.

    `alarms` are the rule's findings on loops as they are, by verdict.
    """

    originals: int = 0
    mutants: int = 0
    found: int = 0
    misses: dict[str, list[str]] = field(default_factory=dict)
    alarms: dict[str, list[str]] = field(default_factory=dict)
    several: "Several" = field(default_factory=lambda: Several())

    def add(self, other: "Tally") -> None:
        self.originals += other.originals
        self.mutants += other.mutants
        self.found += other.found
        self.several.add(other.several)
        for mine, others in ((self.misses, other.misses), (self.alarms, other.alarms)):
            for key, places in others.items():
                mine.setdefault(key, []).extend(places)


@dataclass
class Several:
    """The same for the programs that can be split into several files, as `split.py` does it.

    `misses` are the mutants that the rule finds in one file and not in several, `alarms` its findings on originals that it has
    in several files alone.
    """

    mutants: int = 0
    found: int = 0
    misses: list[str] = field(default_factory=list)
    alarms: list[str] = field(default_factory=list)

    def add(self, other: "Several") -> None:
        self.mutants += other.mutants
        self.found += other.found
        self.misses += other.misses
        self.alarms += other.alarms


@dataclass
class Outcome:
    """What a file or a corpus gave."""

    loops: int = 0
    healthy: int = 0
    tallies: dict[str, Tally] = field(default_factory=dict)

    def add(self, other: "Outcome") -> None:
        self.loops += other.loops
        self.healthy += other.healthy
        for rule, tally in other.tallies.items():
            self.tallies.setdefault(rule, Tally()).add(tally)


def main() -> int:
    """Break loops and print what is found; returns the exit status."""
    arguments = _arguments()
    rules = arguments.rule or rules_to_test()
    try:
        folders = corpora(arguments.corpus or VERSIONS)
    except Missing as error:
        print(f"mutation.py: error: {error}", file=sys.stderr)
        return 2
    outcomes = run(folders, rules, arguments.jobs)
    print("\n".join(rendered(outcomes)))
    text = json.dumps(as_table(outcomes), indent=1) + "\n"
    if arguments.write:
        RESULTS.write_text(text, encoding="utf-8")
    if arguments.check and text != RESULTS.read_text(encoding="utf-8"):
        print(f"mutation.py: {RESULTS.relative_to(ROOT)} is stale; run it with --write", file=sys.stderr)
        return 1
    return 0


def rules_to_test() -> list[str]:
    """The rules that have a mutation, a page and a check."""
    return [rule for rule in MUTATIONS if rule in catalogue() and rule in checks.stems()]


def run(folders: dict[str, Path], rules: list[str], jobs: int) -> dict[str, Outcome]:
    """What each corpus gave, by the name of its folder."""
    tasks = [
        (folder, path, tuple(rules))
        for folder in folders.values()
        for path in sources(folder)
        if _may_train(path) and not is_test(path.relative_to(folder).as_posix())
    ]
    outcomes = {folder.name: Outcome() for folder in folders.values()}
    with ProcessPoolExecutor(jobs) as executor:
        for number, (task, outcome) in enumerate(zip(tasks, executor.map(_outcome, tasks), strict=True), 1):
            outcomes[task[0].name].add(outcome)
            if sys.stderr.isatty():
                print(f"\r{number} of {len(tasks)} files", end="", file=sys.stderr, flush=True)
    if sys.stderr.isatty():
        print(file=sys.stderr)
    return outcomes


def total(outcomes: Iterable[Outcome]) -> Outcome:
    """Several outcomes as one."""
    everything = Outcome()
    for outcome in outcomes:
        everything.add(outcome)
    return everything


def as_table(outcomes: dict[str, Outcome]) -> dict[str, Any]:
    """The outcomes as plain values, in a certain order."""
    everything = total(outcomes.values())
    return {
        "corpora": {name: summary(outcome) for name, outcome in sorted(outcomes.items()) if outcome.loops},
        "rules": {
            rule: {
                "originals": tally.originals,
                "mutants": tally.mutants,
                "found": tally.found,
                "misses": {cause: sorted(places) for cause, places in sorted(tally.misses.items())},
                "alarms": {verdict: sorted(places) for verdict, places in sorted(tally.alarms.items())},
                "several": {
                    "mutants": tally.several.mutants,
                    "found": tally.several.found,
                    "misses": sorted(tally.several.misses),
                    "alarms": sorted(tally.several.alarms),
                },
            }
            for rule, tally in sorted(everything.tallies.items())
        },
    }


def summary(outcome: Outcome) -> dict[str, int]:
    """An outcome in four numbers."""
    tallies = outcome.tallies.values()
    return {
        "loops": outcome.loops,
        "healthy": outcome.healthy,
        "mutants": sum(tally.mutants for tally in tallies),
        "found": sum(tally.found for tally in tallies),
    }


def rendered(outcomes: dict[str, Outcome]) -> Iterator[str]:
    """The outcomes as text, line by line."""
    everything = total(outcomes.values())
    yield f"{everything.loops} training loops, {everything.healthy} of them without a finding of a loop rule"
    yield ""
    rows: list[tuple[str, ...]] = [
        ("rule", "loops", "mutants", "found", "recall", "alarms", "split", "found", "recall", "alarms")
    ]
    whole = Tally()
    for _, tally in sorted(everything.tallies.items()):
        whole.add(tally)
    for rule, tally in [*sorted(everything.tallies.items()), ("all", whole)]:
        alarms = sum(len(places) for verdict, places in tally.alarms.items() if verdict != "true")
        one = tally.originals, tally.mutants, tally.found, share(tally), alarms
        several = tally.several
        apart = several.mutants, several.found, share(several), len(several.alarms)
        rows.append((rule, *map(str, one), *map(str, apart)))
    yield from aligned(rows)
    yield ""
    for rule, tally in sorted(everything.tallies.items()):
        for cause, places in sorted(tally.misses.items()):
            yield f"{rule} missed, {cause}: {', '.join(sorted(places))}"
        for verdict, places in sorted(tally.alarms.items()):
            yield f"{rule} on a loop as it is, {verdict}: {', '.join(sorted(places))}"
        if tally.several.misses:
            yield f"{rule} missed in several files alone: {', '.join(sorted(tally.several.misses))}"
        if tally.several.alarms:
            yield f"{rule} on an original in several files alone: {', '.join(sorted(tally.several.alarms))}"


def share(tally: Tally | Several) -> str:
    """The recall, in percent."""
    return f"{100 * tally.found / tally.mutants:.0f} %" if tally.mutants else "-"


# -- one file -------------------------------------------------------------------------------------------------


def _outcome(task: tuple[Path, Path, tuple[str, ...]]) -> Outcome:
    folder, path, rules = task
    sys.setrecursionlimit(max(_RECURSION_LIMIT, sys.getrecursionlimit()))
    return outcome_of(path.read_bytes(), f"{folder.name}/{path.relative_to(folder).as_posix()}", rules)


def outcome_of(data: bytes, name: str, rules: Iterable[str]) -> Outcome:
    """Break each healthy loop of a file once for each way of each rule, and look what is found."""
    outcome = Outcome()
    try:
        source = Source(name, decode(data))
        module = FileFacts.of(source)
    except Unreadable:
        return outcome
    text = Text(module)
    before = findings(data, name, {*rules, *default_rules()})
    if not module.training_loops:
        return outcome
    with TemporaryDirectory() as folder:
        program = Program(Path(folder), source.text, {*rules})
        for rule, alarms_ in program.alarms(before).items():
            places = [f"{name}:{line}" for line in alarms_]
            outcome.tallies.setdefault(rule, Tally()).several.alarms += places
        _break(outcome, text, before, rules, program)
    return outcome


def _break(
    outcome: Outcome, text: Text, before: list[Finding], rules: Iterable[str], program: "Program"
) -> None:
    """Break each healthy loop of a file, and add what is found to an outcome."""
    module = text.module
    name = module.source.path
    for index, loop in enumerate(module.training_loops):
        site = Site(text, loop)
        outcome.loops += 1
        alarms = [finding for finding in before if _is_on(finding, site)]
        for finding in alarms:
            tally = outcome.tallies.setdefault(finding.rule, Tally())
            verdict = judgements().get((name, finding.site.line, finding.rule), "not judged")
            tally.alarms.setdefault(verdict, []).append(f"{name}:{finding.site.line}")
        if any(finding.rule in default_rules() for finding in alarms):
            continue
        outcome.healthy += 1
        broken = {finding.rule for finding in alarms}
        for rule in rules:
            if rule not in broken:
                known = Counter(finding.fingerprint for finding in before)
                outcome.tallies.setdefault(rule, Tally()).add(_tried(site, rule, index, known, program))


class Program:
    """A program that is split into files of a folder, if it can be, and what is found there in its original."""

    def __init__(self, folder: Path, text: str, rules: set[str]) -> None:
        self._folder = folder
        self._written: dict[str, str] = {}
        self._known: Counter[tuple[str, str]] = Counter()
        self._original: set[tuple[str, int]] = set()
        self.is_split = self._write(text)
        if self.is_split:
            found = self._findings(rules)
            self._known = Counter((finding.rule, finding.fingerprint) for finding in found)
            self._original = {(finding.rule, self._line(finding)) for finding in found}

    def alarms(self, before: list[Finding]) -> dict[str, list[int]]:
        """The lines of the original that a rule reports in several files alone, by rule."""
        alarms: dict[str, list[int]] = {}
        for rule, line in sorted(self._original - {(finding.rule, finding.site.line) for finding in before}):
            alarms.setdefault(rule, []).append(line)
        return alarms

    def finds(self, mutant: str, rules: tuple[str, ...]) -> bool | None:
        """Whether rules find more in a mutant, split, than in the original; None if it is not split."""
        if not (self.is_split and self._write(mutant)):
            return None
        found = Counter((finding.rule, finding.fingerprint) for finding in self._findings(rules))
        return bool(found - self._known)

    def _write(self, text: str) -> bool:
        try:
            self._parts = split(text)
        except SyntaxError:
            return False
        if len(self._parts) < 2:
            return False
        for path in self._written.keys() - self._parts.keys():
            (self._folder / path).unlink()
            del self._written[path]
        for path, part in self._parts.items():
            if self._written.get(path) != part.text:
                (self._folder / path).write_text(part.text, encoding="utf-8")
                self._written[path] = part.text
        renew()
        return True

    def _findings(self, rules: Iterable[str]) -> list[Finding]:
        config = _config()._replace(selected=frozenset(rules))
        files = [File(self._folder / path, path, config) for path in self._parts]
        return [finding for file in files for finding in lint_file(file)]

    def _line(self, finding: Finding) -> int:
        return self._parts[finding.site.path].lines[finding.site.line - 1]


def _tried(site: Site, rule: str, index: int, known: Counter[str], program: Program) -> Tally:
    """The mutants of one rule, and which of them it finds.

    A mutant of TA600 or TA602 is a loop without clearing, and what else clears in its file decides which of the two
    rules it is a bug of: either may find it.
    """
    tally = Tally()
    rules = _OVER_GRADIENTS if rule in _OVER_GRADIENTS else (rule,)
    for text in mutants(site, rule):
        tally.mutants += 1
        data = text.encode()
        name = site.module.source.path
        found = Counter(finding.fingerprint for finding in findings(data, name, rules))
        place = f"{name}:{site.text.line(site.region)}"
        apart = program.finds(text, rules)
        tally.several.mutants += apart is not None
        tally.several.found += apart is True
        if found - known:
            tally.found += 1
            tally.several.misses += [place] if apart is False else []
        else:
            tally.misses.setdefault(cause_of_miss(rule, data, name, index), []).append(place)
    tally.originals = min(tally.mutants, 1)
    return tally


def findings(data: bytes, name: str, rules: Iterable[str]) -> list[Finding]:
    """What some rules find in a file that holds these bytes."""
    return lint(File(ROOT / name, name, _config()._replace(selected=frozenset(rules))), data)


def cause_of_miss(rule: str, data: bytes, name: str, index: int) -> str:
    """Why a rule is silent about a mutant, as far as facts tell."""
    check = checks.load(rule)
    if check is not None and not check.wants(gate.Text(data)):
        return "its text does not hold what the rule needs"
    source = Source(name, decode(data))
    module = FileFacts.of(source)
    loops = module.training_loops
    if index >= len(loops):
        return "no longer a training loop"
    loop = loops[index]
    if module.loops.gated or module.loops.framework is not None:
        return "a framework may do it"
    if rule in _OVER_SCHEDULERS and Kind.SCHEDULER not in _kinds_of_receivers(module, "step"):
        return "the kind of the scheduler is unknown"
    if rule in _OVER_MODELS and not _knows_models(module, loop):
        return "the kind of the model is unknown"
    if not module.order.paths(loop.region):
        return "too many ways through the loop"
    if rule not in _OVER_GRADIENTS and any(module.kind(step.optimizer) is None for step in loop.steps):
        return "the kind of the optimizer is unknown"
    return UNCLASSIFIED


def _knows_models(module: FileFacts, loop: TrainingLoop) -> bool:
    """Whether facts know what is called in a loop, or what is set to a mode in its file, for a model."""
    called = {module.kind(call.func) for call in module.tree.own(loop.region, cst.Call)}
    return Kind.MODULE in called | _kinds_of_receivers(module, "eval", "train")


def _kinds_of_receivers(module: FileFacts, *methods: str) -> set[Kind | None]:
    return {
        module.kind(call.func.value)
        for call in module.tree.all(cst.Call)
        if isinstance(call.func, cst.Attribute) and call.func.attr.value in methods
    }


def _is_on(finding: Finding, site: Site) -> bool:
    """Whether a finding is on a training loop, or on the epochs around it."""
    places = {site.region, *site.loop.callers, *([site.outer] if site.outer is not None else [])}
    return any(site.text.line(place) <= finding.site.line <= site.text.last_line(place) for place in places)


def _may_train(path: Path) -> bool:
    data = path.read_bytes()
    return b"torch" in data and b".step(" in data and b"backward" in data


@cache
def default_rules() -> frozenset[str]:
    """The rules whose findings make a loop unfit to be broken."""
    return frozenset(rule for rule in rules_to_test() if catalogue()[rule].default)


@cache
def judgements() -> dict[tuple[str, int, str], str]:
    """The verdict on each judged finding, by file, line and rule."""
    table = tomllib.loads(JUDGEMENTS.read_text(encoding="utf-8"))
    return {
        (f"{item['corpus']}/{item['path']}", item["line"], item["rule"]): item["verdict"]
        for item in table["finding"]
    }


@cache
def _config() -> Config:
    return Configs(Options(isolated=True), ROOT).root_config


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Break healthy training loops and count what is found.")
    parser.add_argument("--rule", action="append", choices=rules_to_test(), help="this rule only; repeatable")
    parser.add_argument("--corpus", action="append", choices=sorted(VERSIONS), help="repeatable")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, metavar="N", help="processes")
    parser.add_argument("--write", action="store_true", help=f"write {RESULTS.relative_to(ROOT)}")
    parser.add_argument("--check", action="store_true", help="exit status 1 if that file says otherwise")
    arguments = parser.parse_args()
    if (arguments.write or arguments.check) and (arguments.rule or arguments.corpus):
        parser.error("--write and --check are for all rules and corpora")
    return arguments


if __name__ == "__main__":
    raise SystemExit(main())
