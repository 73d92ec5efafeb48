"""Programs that nobody wrote, run for real and dry: `tests/generating` makes them, and `tests/oracle.py` compares."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from generating.programs import programs
from generating.runs import Runner, runner
from hypothesis import HealthCheck, assume, given, settings

few = settings(
    derandomize=True, database=None, deadline=None, suppress_health_check=list(HealthCheck), print_blob=False
)


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runner]:
    with runner(tmp_path_factory.mktemp("generated")) as running:
        yield running


@settings(few, max_examples=60)
@given(text=programs())
def test_nothing_is_claimed_of_a_generated_program_that_is_not_so(both: Runner, text: str) -> None:
    compared = both.compared(text)
    assume(compared.status == "ended")
    assert compared.false == []


def test_a_program_that_fails_says_so(both: Runner, tmp_path: Path) -> None:
    assert both.compared("raise ValueError('no')\n").status == "ValueError: no"
    assert both.compared("import torch\n").status == "ended"
