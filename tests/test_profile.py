"""`--profile` says where the time of a run goes, and changes nothing else."""

import builtins
from collections.abc import Iterator
from functools import cached_property
from importlib import import_module
from itertools import count
from pathlib import Path

import pytest
from commands import Ran, python

from ta_lint import checks, profiling
from ta_lint.profiling import ProfiledPart, Stopwatch

SOURCE = """\
import torch

state = torch.load("model.pt", weights_only=False)
model = torch.nn.Linear(1, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for batch in torch.ones(3, 1):
    loss = model(batch).sum()
    loss.backward()
    optimizer.step()
"""


def check(folder: Path, *words: str) -> Ran:
    return python(folder, "-m", "ta_lint", "check", "--isolated", *words)


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "train.py"
    path.write_text(SOURCE, encoding="utf-8")
    (tmp_path / "plain.py").write_text("import json\n", encoding="utf-8")
    return path


def rows(profile: str, header: str) -> dict[str, list[str]]:
    """The table with this header, by its first column; what has no figure there is left out."""
    [table] = [part for part in profile.split("\n\n") if part.startswith(header)]
    return {line.split()[0]: line.split()[1:] for line in table.strip().splitlines()[1:]}


def test_the_report_and_the_exit_status_are_those_of_a_plain_run(script: Path) -> None:
    plain = check(script.parent, "--no-cache", "--format", "sarif")
    profiled = check(script.parent, "--no-cache", "--format", "sarif", "--profile")
    assert plain.returncode == 1
    assert (profiled.returncode, profiled.stdout) == (plain.returncode, plain.stdout)
    assert plain.stderr == ""


def test_stages_rules_and_facts_have_their_tables(script: Path) -> None:
    profile = check(script.parent, "--no-cache", "--profile").stderr
    stages = rows(profile, "stage")
    for stage in (
        "start-up",
        "imports",
        "discovery",
        "reading",
        "gates",
        "ast",
        "checks",
        "facts",
        "report",
    ):
        assert stage in stages, profile
    assert stages["gates"][-1] == "1"  # of two files one mentions torch
    _, wanted, _, findings = rows(profile, "rule")["TA600"]
    assert (wanted, findings) == ("1", "1")
    assert "names" in rows(profile, "fact")


def test_the_shares_add_up(script: Path) -> None:
    stages = check(script.parent, "--no-cache", "--profile").stderr.split("\n\n")[1].splitlines()[1:]
    assert sum(float(line.partition(" %")[0].split()[-1]) for line in stages) == pytest.approx(100, abs=2)


def test_a_warm_cache_shows_that_nothing_was_parsed(script: Path, tmp_path: Path) -> None:
    where = ("--cache-dir", str(tmp_path / ".cache"))  # no name of a module
    check(script.parent, *where)
    stages = rows(check(script.parent, *where, "--profile").stderr, "stage")
    assert "cache" in stages
    assert not {"gates", "ast", "skeleton", "libcst", "checks"} & stages.keys()


@pytest.mark.parametrize(
    ("words", "why"),
    [(("--jobs", "2"), "leave --jobs out"), (("--watch",), "not together with --watch")],
)
def test_what_cannot_be_profiled_is_refused(script: Path, words: tuple[str, ...], why: str) -> None:
    ran = check(script.parent, "--profile", *words)
    assert ran.returncode == 2
    assert ran.stderr.startswith("ta-lint: error: --profile: ")
    assert why in ran.stderr


def test_every_stopwatch_has_its_place() -> None:
    for name, places in profiling._STAGES.items():
        module = import_module(name)
        for path in places:
            *above, last = path.split(".")
            holder = getattr(module, above[0]) if above else module
            place = vars(holder)[last]
            assert callable(place) or isinstance(place, cached_property), f"{name}.{path}"


def test_afterwards_everything_is_as_it_was() -> None:
    engine = import_module("ta_lint.engine")
    before = (builtins.__import__, checks.load, checks.Check.wants, engine._looking, engine._finished)
    with profiling.profiling():
        assert engine._looking is not before[3]
    assert (builtins.__import__, checks.load, checks.Check.wants, engine._looking, engine._finished) == before


def ticking() -> Stopwatch:
    """A stopwatch whose clock ticks each time it is looked at."""
    ticks = count()
    return Stopwatch(lambda: float(next(ticks)))


def test_what_runs_inside_another_part_is_not_counted_twice() -> None:
    watch = ticking()
    with watch.timing(ProfiledPart("outer")), watch.timing(ProfiledPart("inner")):
        pass
    watch.stop()
    assert watch.seconds == {
        ProfiledPart("rest"): 2.0,
        ProfiledPart("outer"): 2.0,
        ProfiledPart("inner"): 1.0,
    }


def test_a_part_ends_where_an_exception_leaves_it() -> None:
    watch = ticking()
    with pytest.raises(KeyError), watch.timing(ProfiledPart("broken")):
        raise KeyError
    watch.stop()
    assert watch.seconds == {ProfiledPart("rest"): 2.0, ProfiledPart("broken"): 1.0}


def test_a_generator_is_timed_while_it_works_and_works_no_more_than_it_is_asked() -> None:
    made: list[int] = []

    def numbers() -> Iterator[int]:
        for number in range(10):
            made.append(number)
            yield number

    watch = ticking()
    assert next(iter(watch.around(ProfiledPart("numbers"), numbers)())) == 0
    watch.stop()
    assert made == [0]
    assert watch.entries == {ProfiledPart("numbers"): 1}
    assert watch.seconds[ProfiledPart("numbers")] == 2.0  # when it was made, and when it was asked
