"""A dry run claims nothing that the real run of the same program does not do; `tests/oracle.py` says how they are compared."""

from pathlib import Path

import pytest
from oracle import compare, real_run, summary

RUNS = Path(__file__).parents[1] / "runs"
PROGRAMS = ("averages", "byol", "cnn", "gan", "gpt", "kfold", "lstm", "mlp", "ppo", "swa")


@pytest.fixture(scope="module", params=PROGRAMS)
def program(request: pytest.FixtureRequest) -> Path:
    return RUNS / f"{request.param}.py"


def test_nothing_is_claimed_that_does_not_happen(program: Path) -> None:
    compared = compare(program, real_run(program))
    assert compared.status in ("ended", "cut")
    assert compared.false == []
    assert compared.missed == []
    assert compared.known["actions"] == compared.happened["actions"] > 0


def test_the_summary_counts_over_all_programs(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(
        "import torch\n"
        "layers = [torch.nn.Linear(2, 2) for _ in range(2)]\n"
        "optimizer = torch.optim.SGD(layers[0].parameters(), lr=0.1)\n"
        "loss = layers[1](layers[0](torch.ones(1, 2))).sum()\n"
        "loss.backward()\n"
        "optimizer.step()\n"
    )
    compared = compare(script, real_run(script))
    assert list(summary([compared, compared])) == [
        "actions: 6 of 6 (100.0%)",
        "losses, exactly: 2 of 2 (100.0%)",
        "losses: 2 of 2 (100.0%)",
        "optimizers, exactly: 2 of 2 (100.0%)",
        "optimizers: 2 of 2 (100.0%)",
        "calls: 2 of 2 (100.0%)",
        "false claims: 0 in 2 programs",
    ]
