"""Programs of frameworks, each held against its real run: the order of each step, what losses reach, what optimizers hold, how modules run."""

import importlib.util
from pathlib import Path

import pytest
from framework_steps import Held, hold, real_run, real_steps

LOADS = {"lightning": ("lightning",), "transformers": ("transformers.trainer",)}
"""What takes seconds to load, so that the programs of a library share it."""
PROGRAMS = sorted((Path(__file__).parent / "frameworks").glob("*.py"))


@pytest.fixture(scope="module", params=PROGRAMS, ids=lambda path: path.stem)
def held(request: pytest.FixtureRequest) -> Held:
    library = request.param.stem.partition("_")[0]
    if importlib.util.find_spec(library) is None:
        pytest.skip(f"{library} is not installed")
    real = real_run(request.param, *LOADS.get(library, ()))
    assert real["status"] == "ended"
    assert real_steps(real)
    return hold(request.param, real)


def test_nothing_is_claimed_that_does_not_happen(held: Held) -> None:
    assert held.false == []


def test_each_step_of_the_real_run_has_an_order_that_is_said(held: Held) -> None:
    assert held.known["steps"] == held.happened["steps"]
