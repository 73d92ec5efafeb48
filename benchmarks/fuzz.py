"""The linter against inputs that nobody would write: programs and notebooks, made by chance, must leave it standing.

`python benchmarks/fuzz.py [--programs 20000] [--notebooks 2000] [--dry-runs 20000] [--seed 0] [--jobs 2] [--seconds 600 | --forever]
[--keep FOLDER] [--replay FILE ...]`; see `benchmarks/README.md`.
"""

import argparse
import hashlib
import json
import multiprocessing
import resource
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import count
from multiprocessing.connection import Connection, wait
from pathlib import Path
from random import Random
from typing import Any

from fuzzing import dry_runs
from fuzzing.notebooks import mutated_notebook, notebook
from fuzzing.originals import grammatical, originals
from fuzzing.programs import dressed, mutated, torchlike
from fuzzing.properties import TARGETS, Input, Judgement, Problem, judged
from fuzzing.shrinking import shrunk
from tables import aligned

from ta_lint import checks
from ta_lint.core.catalogue import catalogue
from ta_lint.core.collector import resume
from ta_lint.runner import start_thread

BATCH = 50
_SILENCE = 900.0  # seconds on the clock until a worker that says nothing is taken for hung: it may wait for a busy machine
_SLOWEST = 5

_CONTEXT = multiprocessing.get_context("fork" if "fork" in multiprocessing.get_all_start_methods() else None)


@dataclass(frozen=True)
class Batch:
    """Inputs to make and judge together: `programs`, `notebooks` or `dry runs`, which ones, of which seed."""

    kind: str
    seed: int
    number: int
    size: int = BATCH


def main() -> int:
    """Fuzz, or judge files again, and say what there was; returns the exit status: 1 if a property does not hold."""
    parser = argparse.ArgumentParser(description="Lint and fix programs and notebooks made by chance.")
    parser.add_argument("--programs", type=int, default=2000, metavar="N")
    parser.add_argument("--notebooks", type=int, default=200, metavar="N")
    parser.add_argument(
        "--dry-runs", type=int, default=0, metavar="N", help="programs that are dry-run; default 0"
    )
    parser.add_argument("--seed", type=int, default=0, help="another seed makes other inputs; default 0")
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="processes; default 2")
    parser.add_argument("--seconds", type=float, metavar="S", help="stop after this long, in whatever state")
    parser.add_argument("--forever", action="store_true", help="go on with the next seeds until Ctrl-C")
    parser.add_argument("--keep", type=Path, default=Path("fuzz-failures"), metavar="FOLDER",
                        help="for the inputs that fail; default fuzz-failures")  # fmt: skip
    parser.add_argument("--replay", type=Path, nargs="+", metavar="FILE", help="judge these files again")
    arguments = parser.parse_args()
    if arguments.replay:
        return replay(arguments.replay)
    seeds = count(arguments.seed) if arguments.forever else [arguments.seed]
    asked = (
        batch
        for seed in seeds
        for batch in batches(arguments.programs, arguments.notebooks, seed, arguments.dry_runs)
    )
    outcome = Outcome(arguments.keep)
    began = time.monotonic()
    until = began + arguments.seconds if arguments.seconds is not None else None
    try:
        for event in fuzz(asked, arguments.jobs):
            outcome.take(event)
            if until is not None and time.monotonic() > until:
                break
    except KeyboardInterrupt:
        print("\nfuzz.py: interrupted", file=sys.stderr)
    print(f"\nSeed {arguments.seed}, {time.monotonic() - began:.0f} s, {arguments.jobs} processes.\n")
    print("\n".join(outcome.summary()))
    return 1 if outcome.problems else 0


def batches(programs: int, notebooks: int, seed: int, dry: int = 0) -> Iterator[Batch]:
    """This many programs, notebooks and programs to dry-run, all from the beginning."""
    asked: list[tuple[float, Batch]] = []
    for kind, total in (("programs", programs), ("notebooks", notebooks), ("dry runs", dry)):
        for number in range(-(-total // BATCH)):
            size = min(BATCH, total - number * BATCH)
            asked.append((number * BATCH / total, Batch(kind, seed, number, size)))
    return (batch for _, batch in sorted(asked, key=lambda item: item[0]))


def judge(given: Input) -> Judgement:
    """Every property of an input: of its dry run, or of linting and fixing it."""
    return dry_runs.judged(given) if given.dry else judged(given)


def inputs(batch: Batch) -> Iterator[Input]:
    """The inputs of a batch, always the same ones where the corpora are."""
    dry = batch.kind == "dry runs"
    return (replace(given, dry=dry) for given in _inputs(batch))


def _inputs(batch: Batch) -> Iterator[Input]:
    pool = originals()
    rng = Random(f"{batch.seed} {batch.kind} {batch.number}")
    if batch.kind == "notebooks":
        for _ in range(batch.size):
            yield _notebook(rng)
        return
    drawn = grammatical(rng.randrange(2**32), batch.size // 10) if batch.kind == "programs" else []
    for number in range(batch.size):
        target = rng.choice([None, *TARGETS])
        if number < len(drawn):
            yield Input("train.py", dressed(drawn[number], rng), target, "hypothesmith")
        elif number < 2 * len(drawn):
            text = mutated(torchlike(drawn[number - len(drawn)], rng, pool), rng, pool)
            yield Input("train.py", dressed(text, rng), target, "hypothesmith with torch")
        else:
            real = pool.program(rng) if rng.random() < 0.3 else None
            origin = "rule pages and cases" if real is None else "corpora"
            text = mutated(pool.block(rng) if real is None else real, rng, pool)
            yield Input("train.py", dressed(text, rng), target, origin)


def _notebook(rng: Random) -> Input:
    pool = originals()
    target = rng.choice([None, *TARGETS])
    if pool.notebooks and rng.random() < 0.12:
        data = rng.choice(pool.notebooks).read_bytes()
        return Input("train.ipynb", mutated_notebook(data, rng, pool), target, "notebooks of the corpora")
    programs = [mutated(pool.block(rng), rng, pool) for _ in range(rng.choice([1, 1, 2, 3]))]
    return Input("train.ipynb", notebook(programs, rng, pool), target, "notebooks of cases")


@dataclass(frozen=True)
class Event:
    """What became of an input; with the problems that nobody had met before comes the input made small."""

    given: Input
    judgement: Judgement
    small: dict[tuple[str, str], bytes] = field(default_factory=dict)


@dataclass
class _Running:
    """A process that judges the inputs of a batch, one after another."""

    process: Any
    batch: Batch
    done: int
    heard: float
    given: Input | None = None
    """What it judges now."""


def fuzz(asked: Iterable[Batch], jobs: int) -> Iterator[Event]:
    """What becomes of each input, as it is ready. A process that dies, or says nothing any more, is a problem of its input."""
    left = iter(asked)
    known: set[tuple[str, str]] = set()
    prepare()
    working: dict[Connection, _Running] = {}

    def start(batch: Batch, done: int = 0) -> None:
        end, theirs = _CONTEXT.Pipe(duplex=False)
        process = _CONTEXT.Process(target=_work, args=(batch, done, frozenset(known), theirs), daemon=True)
        process.start()
        theirs.close()
        working[end] = _Running(process, batch, done, time.monotonic())

    try:
        while True:
            while len(working) < jobs and (batch := next(left, None)) is not None:
                start(batch)
            if not working:
                return
            for end in wait(list(working), timeout=5):
                assert isinstance(end, Connection)
                running = working[end]
                running.heard = time.monotonic()
                try:
                    said = end.recv()
                except EOFError:
                    del working[end]
                    running.process.join()
                    if running.given is None:
                        assert running.process.exitcode == 0, f"no inputs of {running.batch}"
                        continue
                    yield _death(running.given, running.process.exitcode)
                    start(running.batch, running.done + 1)
                    continue
                if isinstance(said, Event):
                    running.given, running.done = None, running.done + 1
                    known.update(said.small)
                    yield said
                else:
                    running.given = said
            for running in working.values():
                if time.monotonic() - running.heard > _SILENCE:
                    running.process.kill()
    finally:
        for running in working.values():
            running.process.kill()


def prepare() -> None:
    """Load once what every process needs."""
    originals()
    for rule in catalogue():
        checks.load(rule)


def _work(batch: Batch, done: int, known: frozenset[tuple[str, str]], end: Connection) -> None:
    """Judge the inputs of a batch from this one on, in a process of its own. Problems that are known are not made small."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that waits
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    seen = set(known)

    def work_off() -> None:
        for number, given in enumerate(inputs(batch)):
            if number < done:
                continue
            end.send(given)
            judgement = judge(given)
            new = {problem.signature for problem in judgement.problems} - seen
            seen.update(new)
            end.send(
                Event(given, judgement, {signature: _small(given, signature) for signature in sorted(new)})
            )
        resume()
        end.close()

    start_thread(work_off).join()


def _small(given: Input, signature: tuple[str, str]) -> bytes:
    def fails(data: bytes) -> bool:
        judgement = judge(replace(given, data=data))
        return signature in {problem.signature for problem in judgement.problems}

    return shrunk(given.data, fails)


def _death(given: Input, status: int) -> Event:
    """The problem that an input is which ended its process, small if that is quick."""
    judgement = Judgement()
    if status == -signal.SIGXCPU:
        judgement.add("hang", "the process made no headway in two minutes of CPU time")
        return Event(given, judgement, {judgement.problems[0].signature: given.data})
    name = signal.Signals(-status).name if status < 0 else f"status {status}"
    judgement.add("crash", f"the process ended with {name}")

    def dies(data: bytes) -> bool:
        process = _CONTEXT.Process(target=_judge_alone, args=(replace(given, data=data),))
        process.start()
        process.join()
        return bool(process.exitcode == status)

    return Event(given, judgement, {judgement.problems[0].signature: shrunk(given.data, dies, 150)})


def _judge_alone(given: Input) -> None:
    def judge_it() -> None:
        judge(given)

    start_thread(judge_it).join()


@dataclass
class _Kind:
    """What became of the inputs of one generator."""

    inputs: int = 0
    bytes: int = 0
    compile: int = 0
    with_findings: int = 0
    with_fixes: int = 0
    seconds: float = 0.0


class Outcome:
    """All that was fuzzed, and the inputs that fail, one of each kind in a folder."""

    def __init__(self, folder: Path) -> None:
        self.problems: Counter[tuple[str, str]] = Counter()
        self._folder = folder
        self._saved: dict[tuple[str, str], Path] = {}
        self._kinds: dict[str, _Kind] = {}
        self._found: Counter[str] = Counter()
        self._fixed: Counter[str] = Counter()
        self._complaints: Counter[str] = Counter()
        self._slowest: list[tuple[float, int, str]] = []
        self._total = 0

    def take(self, event: Event) -> None:
        given, judgement = event.given, event.judgement
        kind = self._kinds.setdefault(given.origin, _Kind())
        kind.inputs += 1
        kind.bytes += len(given.data)
        kind.compile += judgement.compiles
        kind.with_findings += bool(judgement.found)
        kind.with_fixes += bool(judgement.fixed)
        kind.seconds += judgement.seconds
        self._found.update(judgement.found)
        self._fixed.update(judgement.fixed)
        self._complaints.update(judgement.complaints)
        self._total += 1
        slow = (judgement.seconds, len(given.data), given.origin)
        self._slowest = sorted([*self._slowest, slow], reverse=True)[:_SLOWEST]
        for problem in judgement.problems:
            self.problems[problem.signature] += 1
            if problem.signature in event.small and problem.signature not in self._saved:
                self._save(given, problem, event.small[problem.signature])
        self._tell()

    def _save(self, given: Input, problem: Problem, small: bytes) -> None:
        """The small input, the whole one, and beside them what is known."""
        self._folder.mkdir(parents=True, exist_ok=True)
        stem = f"{problem.kind.partition(':')[0].replace(' ', '-')}-{hashlib.sha256(repr(problem.signature).encode()).hexdigest()[:8]}"
        path = self._folder / f"{stem}{Path(given.name).suffix}"
        path.write_bytes(small)
        path.with_name(f"{stem}.whole").write_bytes(given.data)
        known = {"name": given.name, "target": given.target, "origin": given.origin, "dry": given.dry, "kind": problem.kind, "what": problem.what,
                 "detail": problem.detail}  # fmt: skip
        path.with_suffix(".json").write_text(json.dumps(known, indent=1) + "\n")
        self._saved[problem.signature] = path
        print(f"\n{problem.kind}: {problem.what}\n  {path}", flush=True)

    def _tell(self) -> None:
        if sys.stderr.isatty():
            print(
                f"\r{self._total} inputs, {len(self.problems)} problems ", end="", file=sys.stderr, flush=True
            )
        elif self._total % 500 == 0:
            print(f"{self._total} inputs, {len(self.problems)} problems", flush=True)

    def summary(self) -> Iterator[str]:
        """The lines that say what was judged and what became of it."""
        rows: list[tuple[str, ...]] = [
            ("inputs", "number", "mean bytes", "compile", "findings", "fixes", "ms each")
        ]
        for name, kind in sorted(self._kinds.items()):
            rows.append((name, str(kind.inputs), str(kind.bytes // kind.inputs), _share(kind.compile, kind), _share(kind.with_findings, kind),
                         _share(kind.with_fixes, kind), f"{1000 * kind.seconds / kind.inputs:.0f}"))  # fmt: skip
        yield from aligned(rows)
        yield f"\n{self._total} inputs; slowest: " + ", ".join(
            f"{seconds:.1f} s for {size:,} bytes ({origin})" for seconds, size, origin in self._slowest
        )
        static = [rule.id for rule in catalogue().values() if "static" in rule.observers]
        unseen = [rule for rule in static if not self._found[rule]]
        yield f"\nFindings of {len(static) - len(unseen)} of {len(static)} rules: {_counts(self._found)}"
        yield f"Without a finding: {', '.join(unseen) or 'none'}"
        yield f"\nFixes proposed: {_counts(self._fixed)}"
        yield f"Fixes that were not made, with a word to the user: {sum(self._complaints.values())}"
        yield from (f"  {number} x {complaint}" for complaint, number in self._complaints.most_common())
        yield f"\nProblems: {sum(self.problems.values())}, of {len(self.problems)} kinds"
        for (kind_of, what), number in self.problems.most_common():
            yield f"  {number} x {kind_of}: {what}\n    {self._saved.get((kind_of, what), 'not saved')}"


def _share(number: int, kind: _Kind) -> str:
    return f"{100 * number / kind.inputs:.0f} %"


def _counts(counter: Counter[str]) -> str:
    return ", ".join(f"{rule} {number}" for rule, number in sorted(counter.items())) or "none"


def replay(paths: list[Path]) -> int:
    """Judge files again, for the torch that they failed with, or all; returns the exit status."""
    status = 0
    for path in paths:
        beside = path.with_suffix(".json")
        known = json.loads(beside.read_text()) if beside.is_file() else {}
        targets = (known["target"],) if known else TARGETS
        problems: dict[tuple[str, str], Problem] = {}

        def again(path: Path = path, targets: Iterable[str | None] = targets, known: dict[str, Any] = known,
                  problems: dict[tuple[str, str], Problem] = problems) -> None:  # fmt: skip
            for target in targets:
                given = Input(
                    known.get("name", f"train{path.suffix}"),
                    path.read_bytes(),
                    target,
                    str(path),
                    known.get("dry", False),
                )
                problems.update({problem.signature: problem for problem in judge(given).problems})

        start_thread(again).join()
        print(f"{path}: {f'{len(problems)} problems' if problems else 'holds'}")
        for problem in problems.values():
            print(f"  {problem.kind}: {problem.what}\n{problem.detail}".rstrip())
        status = status or bool(problems)
    return int(status)


if __name__ == "__main__":
    sys.exit(main())
