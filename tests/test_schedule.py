"""The schedule of looks at the steps of a run, on plain numbers: no torch, no clock."""

import random
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest

from ta_lint.core.errors import UsageError
from ta_runtime.audit.schedule import EARLY, FIRST, YOUNG, Budget, Look, Looked, Period


def played(
    budget: Budget, steps: int, plain: float, gradients: float, full: float, *, naps: bool = True
) -> list[Look]:
    """The looks of a run whose steps take so long, and what is added to those that are looked at."""
    costs = {Look.COUNT: 0.0, Look.GRADIENTS: gradients, Look.FULL: full}
    looks: list[Look] = []
    while len(looks) < steps:
        index = len(looks)
        until = min(budget.following(index), steps)
        if naps and until > index + 2:  # as the session does: it wakes a step before
            count = int(until) - index - 1
            looks += [Look.COUNT] * count
            budget.counted(count, count * plain)
            continue
        look = budget.look(index)
        looks.append(look)
        budget.over(index, look, plain + costs[look], costs[look])
    return looks


def added(looks: list[Look], gradients: float, full: float) -> float:
    counts = Counter(looks)
    return counts[Look.GRADIENTS] * gradients + counts[Look.FULL] * full


def test_the_first_steps_are_looked_at_in_full_and_the_gradients_of_some_more_are_read() -> None:
    looks = played(Budget(0.03), 200, 1.0, 1.0, 9.0)
    assert looks[:FIRST] == [Look.FULL] * FIRST
    assert set(looks[FIRST:EARLY]) == {Look.GRADIENTS}


@pytest.mark.parametrize("naps", [True, False])
@pytest.mark.parametrize(("gradients", "full"), [(0.002, 0.02), (0.01, 0.2), (0.1, 0.6), (1.3, 10.0)])
def test_what_is_looked_at_later_stays_within_the_budget_of_the_time_so_far(
    gradients: float, full: float, naps: bool
) -> None:
    looks = played(Budget(0.03), 20_000, 1.0, gradients, full, naps=naps)
    first = added(looks[:YOUNG], gradients, full)
    for steps in (500, 2_000, 20_000):
        spent = added(looks[:steps], gradients, full)
        regardless = (1 + steps // 500) * 3 * full if full <= 8 else 0.0
        assert spent <= max(0.03 * (steps + spent) + full, first + regardless)
    assert Look.FULL in looks[EARLY:]


def test_a_short_run_is_looked_at_all_along_where_a_look_is_in_proportion_to_the_step() -> None:
    looks = played(Budget(0.03), YOUNG, 1.0, 0.3, 3.0)
    full = [index for index, look in enumerate(looks) if look is Look.FULL]
    assert max(later - step for step, later in pairwise(full)) < 48
    assert Counter(looks[EARLY:])[Look.GRADIENTS] > 0.5 * (YOUNG - EARLY)


def test_no_long_run_goes_without_a_look_for_long_where_it_is_in_proportion() -> None:
    looks = played(Budget(0.03), 3_000, 1.0, 0.3, 1.5)
    full = [index for index, look in enumerate(looks) if look is Look.FULL]
    assert max(later - step for step, later in pairwise(full)) < 1_000


def test_a_step_that_a_look_takes_many_times_as_long_as_is_left_alone_after_the_first_ones() -> None:
    looks = played(Budget(0.03), 2_000, 1.0, 2.5, 20.0)
    assert added(looks[EARLY:], 2.5, 20.0) == 0.0


def test_where_reading_gradients_is_cheap_they_are_read_in_nearly_each_step() -> None:
    looks = played(Budget(0.03), 5_000, 1.0, 0.002, 0.02)
    assert Counter(looks)[Look.COUNT] < 0.4 * len(looks)
    assert Counter(looks)[Look.FULL] > 100


def test_where_reading_gradients_is_dear_that_of_each_fiftieth_later_step_is_read() -> None:
    looks = played(Budget(0.03), 5_000, 1.0, 0.1, 0.6)
    read = [index for index, look in enumerate(looks) if look is Look.GRADIENTS and index >= YOUNG]
    assert all(index % 50 == 0 for index in read)
    assert len(read) > 60


def test_full_looks_come_in_bursts_at_offsets_that_differ() -> None:
    looks = played(Budget(0.03), 20_000, 1.0, 0.1, 0.6)
    begins = [
        index
        for index in range(EARLY, len(looks))
        if looks[index] is Look.FULL and looks[index - 1] is not Look.FULL
    ]
    assert all(looks[index : index + 3] == [Look.FULL] * 3 for index in begins[:-1])
    assert len({index % 100 for index in begins}) > 10


def test_after_an_incident_the_next_burst_comes_as_soon_as_the_budget_allows() -> None:
    def first_burst(suspects: bool) -> int:
        budget = Budget(0.03)
        if suspects:
            budget.suspect()
        return played(budget, 20_000, 1.0, 0.1, 0.6).index(Look.FULL, FIRST)

    assert first_burst(True) < first_burst(False)


def test_a_look_that_shows_only_in_the_time_of_the_step_is_paid_for_as_well() -> None:
    """As on an accelerator, where nobody waits for what was asked of it."""
    budget = Budget(0.03)
    for index in range(EARLY):
        budget.over(index, budget.look(index), 1.5, 0.0)
    budget.counted(100, 100.0)
    assert budget.cost(Look.FULL) == pytest.approx(0.5)


def test_no_budget_is_no_look_after_the_first_steps() -> None:
    assert set(played(Budget(0.0), 3_000, 1.0, 0.1, 0.6)[EARLY:]) == {Look.COUNT}


def test_the_same_times_give_the_same_schedule_and_no_random_number_of_the_run_is_drawn() -> None:
    random.seed(0)
    state = random.getstate()
    first, second = (played(Budget(0.03), 5_000, 1.0, 0.1, 0.6) for _ in range(2))
    assert first == second
    assert random.getstate() == state


def test_a_fixed_period_is_kept_whatever_it_costs() -> None:
    period = Period(full=100, gradients=0)
    assert [index for index in range(1_000) if period.look(index) is Look.FULL] == list(range(0, 1_000, 100))
    assert period.following(101) == 200
    assert Period(full=100, gradients=1).look(7) is Look.GRADIENTS
    assert Period(full=0, gradients=0).following(5) == float("inf")


def test_another_run_looks_at_the_same_steps(tmp_path: Path) -> None:
    looks = played(Budget(0.03), 5_000, 1.0, 0.002, 0.02)
    looked = Looked()
    for index, look in enumerate(looks):
        looked.add(index, look)
    looked.save(tmp_path / "steps.json")
    again = Looked.load(tmp_path / "steps.json")
    assert [again.look(index) for index in range(len(looks))] == looks
    assert again.look(len(looks)) is Look.COUNT
    seen = [index for index, look in enumerate(looks) if look is not Look.COUNT]
    for index in (0, 63, 64, 70, 2_000):
        assert again.following(index) == next(step for step in seen if step >= index)
    assert again.following(len(looks)) == float("inf")


@pytest.mark.parametrize(
    "text",
    ["", "[]", '{"steps": [[0, 3]]}', '{"steps": [[0, 3, "partly"]]}', '{"steps": [[5, 3, "full"]]}'],
)
def test_a_file_that_holds_no_schedule_is_refused_by_name(text: str, tmp_path: Path) -> None:
    (tmp_path / "steps.json").write_text(text)
    with pytest.raises(UsageError, match=r"schedule: .*steps\.json"):
        Looked.load(tmp_path / "steps.json")
