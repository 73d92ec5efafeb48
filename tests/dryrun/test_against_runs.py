"""A dry run claims nothing that the real run of the same program does not do; `tests/oracle.py` says how they are compared.

Sixty programs of the repository, drawn by their names; `test_against_all_runs` takes six hundred more.
"""

from pathlib import Path

import pytest
from oracle import Comparison, Real, compare, compared, real_runs, shares, summary
from runnable import Program, programs, sample

COUNT = 60
FLOORS = {
    "actions": 0.99, "losses": 0.95, "optimizers": 0.99, "calls": 0.98, "shapes": 0.63, "dtypes": 0.87,
}  # fmt: skip
"""The shares that are known today: no change may lower them."""


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> list[Comparison]:
    folder = tmp_path_factory.mktemp("runs")
    return compared(sample(list(programs(folder)), COUNT), folder)


def test_nothing_is_claimed_that_does_not_happen(results: list[Comparison]) -> None:
    assert len(results) > COUNT / 2
    assert {one.program: one.false for one in results if one.false} == {}


def test_no_less_of_what_happens_is_known(results: list[Comparison]) -> None:
    known = shares(results)
    assert {kind: known[kind] for kind in FLOORS if known[kind] < FLOORS[kind]} == {}


def held(code: str, folder: Path) -> Comparison:
    """The comparison for a program that is written here."""
    script = folder / "train.py"
    script.write_text(code, "utf-8")
    ((program, real),) = real_runs([Program("here: train", script, code)], folder)
    assert real["status"] == "ended"
    return compare(program, real)


LAYERS = (
    "import torch\n"
    "layers = [torch.nn.Linear(2, 2) for _ in range(2)]\n"
    "optimizer = torch.optim.SGD(layers[0].parameters(), lr=0.1)\n"
    "loss = layers[1](layers[0](torch.ones(1, 2))).sum()\n"
    "loss.backward()\n"
    "optimizer.step()\n"
)


def test_the_summary_counts_over_all_programs(tmp_path: Path) -> None:
    one = held(LAYERS, tmp_path)
    assert list(summary([one, one])) == [
        "actions: 6 of 6 (100.0%)",
        "losses: 2 of 2 (100.0%)",
        "optimizers: 2 of 2 (100.0%)",
        "calls: 2 of 2 (100.0%)",
        "shapes: 2 of 2 (100.0%)",
        "dtypes: 2 of 2 (100.0%)",
        "false claims: 0 in 2 programs",
    ]


def broken(real: Real, action: str, **changed: object) -> Real:
    """The run, as it would be if one of its actions were another."""
    actions = [
        [what, line, {**known, **changed} if what == action else known]
        for what, line, known in real["actions"]
    ]
    return {**real, "actions": actions}


def test_a_claim_that_is_not_so_is_false(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(LAYERS, "utf-8")
    program = Program("here: train", script, LAYERS)
    ((_, real),) = real_runs([program], tmp_path)
    for other in (
        broken(real, "backward", reaches=[[2, "weight"]]),
        broken(real, "step", holds=[[2, "weight"]]),
        broken(real, "forward", training=False),
        {**real, "actions": [one for one in real["actions"] if one[0] != "step"]},
        {**real, "follows": [[["step", 6], ["backward", 5]]]},
        {**real, "outputs": [[4, "Linear", [1, 3], "torch.float32"]]},
    ):
        assert compare(program, other).false != []
