"""Invariants of one run of a healthy program hold in that run, with another seed and with another batch size.

The programs are those of `tests/programs/`. Another batch size means other steps in an epoch, and another short last batch.
"""

from dataclasses import dataclass
from pathlib import Path

import pytest
from traced import Job, done

from ta_runtime.invariants import file, replay, shipped
from ta_runtime.invariants.checking import Checker
from ta_runtime.invariants.inferring import infer
from ta_runtime.invariants.invariant import Invariant
from ta_runtime.runs import Run

PROGRAMS = Path(__file__).parent / "programs"
NAMES = sorted(path.stem for path in PROGRAMS.glob("*.py"))
RANKS = {"ddp": 2}

RUNS = {"itself": (0, 16), "another seed": (7, 16), "another batch size": (0, 12)}
"""Seed and batch size of each run; the first is the one that is learned from."""


@dataclass(frozen=True)
class Learned:
    """What was learned of a program: traces of all its runs, and the invariants of the first."""

    program: str
    folder: Path
    invariants: list[Invariant]

    @property
    def file(self) -> Path:
        return self.folder / "invariants.json"

    def trace(self, run: str) -> Run:
        return Run(str(self.folder / run))


def job(program: str, run: str, **purpose: str) -> Job:
    seed, batch_size = RUNS[run]
    return Job(str(PROGRAMS / f"{program}.py"), (str(seed), str(batch_size)), **purpose)


@pytest.fixture(scope="module", params=NAMES)
def learned(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Learned:
    """Each program, traced three times; invariants are learned from the first trace."""
    program = request.param
    folder = tmp_path_factory.mktemp(program)
    jobs = [job(program, run, folder=str(folder / run)) for run in RUNS]
    done(jobs, ranks=RANKS.get(program, 1), told=folder / "told")
    invariants = infer([Run(str(folder / next(iter(RUNS))))])
    file.save(folder / "invariants.json", invariants)
    return Learned(program, folder, invariants)


def broken(trace: Run, invariants: list[Invariant]) -> list[str]:
    """What a trace breaks, in words."""
    failures: list[str] = []
    checker = Checker(invariants, failures.append)
    found = [
        f"step {each.event.step}, rank {each.rank}: {each.message}, but {file.says(each.invariant)} {each.evidence}"
        for each in replay.violations(trace, checker)
    ]
    return failures + found


@pytest.mark.parametrize("run", RUNS)
def test_a_healthy_run_breaks_nothing_that_one_run_taught(learned: Learned, run: str) -> None:
    assert broken(learned.trace(run), learned.invariants) == []


@pytest.mark.parametrize("run", RUNS)
def test_a_healthy_run_breaks_nothing_that_holds_for_every_loop(learned: Learned, run: str) -> None:
    assert broken(learned.trace(run), shipped.shipped()) == []


def test_nothing_is_broken_while_it_trains(learned: Learned, tmp_path: Path) -> None:
    runs = ("another seed", "another batch size")
    jobs = [job(learned.program, run, invariants=str(learned.file)) for run in runs]
    assert done(jobs, ranks=RANKS.get(learned.program, 1), told=tmp_path / "told") == []


def test_what_a_loop_is_made_of_is_learned(learned: Learned) -> None:
    said = [file.says(each) for each in learned.invariants]
    assert any("zero_grad" in each for each in said), said
    assert any("always changes" in each and "parameter" in each for each in said), said
    assert len(said) < 60, "few and meaningful"


def test_what_is_learned_names_nothing_that_another_run_has_otherwise(learned: Learned) -> None:
    for each in learned.invariants:
        assert not {"step", "epoch", "seed", "learning_rate", "digest"} & each.terms.keys()
        assert set(each.where) <= {"phase", "rank", "class", "autocast", "requires_grad"}
