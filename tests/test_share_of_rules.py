"""D9: no rule takes much of the work of linting real code; one that does asks its cheapest question too late."""

import cProfile
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from pathlib import Path
from typing import TypeVar

import pytest
from counted_work import on_deep_stack

from ta_lint import engine, scripts
from ta_lint.checks import Check
from ta_lint.core.config import Configs, Options
from ta_lint.core.finding import Finding
from ta_lint.dryrun.collect.run import run_of
from ta_lint.events.event import Event
from ta_lint.events.run import Run
from ta_lint.file import File

T = TypeVar("T")
CORPORA = Path(__file__).parent.parent / "benchmarks" / "corpora"
SAMPLE = {"transformers-5.23.0": 300, "timm-1.0.31": 40, "x-transformers-2.31.10": 4}
"""The corpora, and which of their files are linted: one of so many."""
MOST = 0.09
"""What one rule may take of all calls; the first that asks for a fact pays for it."""
DRY_RUN = "the dry run"
"""What the rules that stand on it have in common,"""
MOST_OF_DRY_RUN = 0.87
"""and what it may take of all, with what these rules ask of it. Each file of the sample is linted without most others, so the scripts that
use it run for it alone.
"""


@pytest.mark.skipif(not CORPORA.exists(), reason="needs the corpora of the benchmarks")
def test_no_rule_takes_much_of_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: Counter[str] = Counter()
    found = engine._found
    runs: list[Run] = []
    """Of the file that is linted."""

    def kept(events: list[Event]) -> Run:
        runs.append(run_of(events))
        return runs[-1]

    def counted(check: Check, looks: engine._Looks) -> Iterator[Finding]:
        if check.over_runs:
            if "scripts" not in vars(looks):
                runs.clear()
            measured(DRY_RUN, lambda: [looks.scripts])
            for run, over_run in product(runs, check.over_runs):
                measured(check.rule, partial(list, over_run(run)))
        return iter(measured(check.rule, lambda: [*found(check, looks)]))

    def measured(by: str, does: Callable[[], list[T]]) -> list[T]:
        profile = cProfile.Profile()
        given = profile.runcall(does)
        calls[by] += sum(entry.callcount for entry in profile.getstats())
        return given

    monkeypatch.setattr(engine, "_found", counted)
    monkeypatch.setattr(scripts, "run_of", kept)
    for name, step in SAMPLE.items():
        files = sorted((CORPORA / name).resolve().rglob("*.py"))[::step]
        on_deep_stack(partial(_lint, files, (CORPORA / name).resolve()))
    shares = {by: count / calls.total() for by, count in calls.items()}
    print(sorted(shares.items(), key=lambda x: -x[1])[:9])
    assert shares.pop(DRY_RUN) <= MOST_OF_DRY_RUN
    assert {rule: share for rule, share in shares.items() if share > MOST} == {}


def _lint(files: list[Path], root: Path) -> None:
    config = Configs(Options(select=["ALL"], isolated=True), root).root_config
    for file in files:
        engine.lint_file(File(file, str(file.relative_to(root)), config))
