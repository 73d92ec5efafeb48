"""The same as `test_against_runs`, for three hundred more programs of the repository: each runs for real once."""

import pytest
from oracle import Comparison, compared, shares
from runnable import programs, sample

FROM, TO = 60, 360
"""`benchmarks/dry_run.py` takes all."""
FLOORS = {
    "actions": 0.98, "losses": 0.93, "optimizers": 0.95, "calls": 0.96, "shapes": 0.67, "dtypes": 0.92,
}  # fmt: skip
"""The shares that are known today: no change may lower them."""


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> list[Comparison]:
    folder = tmp_path_factory.mktemp("runs")
    return compared(sample(list(programs(folder)), TO)[FROM:], folder)


def test_nothing_is_claimed_that_does_not_happen(results: list[Comparison]) -> None:
    assert len(results) >= 230
    assert {one.program: one.false for one in results if one.false} == {}


def test_no_less_of_what_happens_is_known(results: list[Comparison]) -> None:
    known = shares(results)
    assert {kind: known[kind] for kind in FLOORS if known[kind] < FLOORS[kind]} == {}
