"""The parts of `benchmarks/invariants.py` that measure nothing: the traces it makes, the peer's figures, its table."""

from pathlib import Path

import pyarrow.compute as pc
import pytest
import torch
from invariants import Figure, _part
from torch import nn
from tracing import repeated, traincheck
from tracing.traincheck import Loop, loop_of

from ta_runtime.invariants.inferring import infer
from ta_runtime.runs import Run
from ta_runtime.trace import collecting


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of 30 steps at the level of every function."""
    folder = tmp_path_factory.mktemp("traces") / "real"
    model = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1))
    optimizer = torch.optim.AdamW(model.parameters())
    with collecting(str(folder), level="ops"):
        for _ in range(30):
            optimizer.zero_grad()
            model(torch.randn(2, 4)).square().mean().backward()
            optimizer.step()
    return folder


@pytest.fixture(scope="module")
def longer(trace: Path) -> Path:
    folder = trace.with_name("longer")
    repeated.write(trace, 50_000, folder)
    return folder


def test_a_repeated_trace_is_numbered_and_nested_as_one_long_run_is(longer: Path) -> None:
    events = repeated.events_of(longer)
    assert events.num_rows == 50_000
    assert len(list((longer / "events").iterdir())) > 1
    rows = events.select(["step", "seq", "end", "parent"]).to_pylist()
    by_seq = {row["seq"]: row for row in rows}
    assert len(by_seq) == len(rows)
    steps = [row["step"] for row in rows]
    assert set(steps) == set(range(max(steps) + 1))
    nested = [(row, by_seq[row["parent"]]) for row in rows if row["parent"] in by_seq]
    assert len(nested) > len(rows) / 2
    assert all(around["seq"] < row["seq"] < row["end"] < around["end"] for row, around in nested)


def test_digests_of_a_repeated_trace_do_not_come_again(trace: Path, longer: Path) -> None:
    once, often = (pc.count_distinct(repeated.events_of(each)["digest"]).as_py() for each in (trace, longer))
    times = 50_000 // repeated.events_of(trace).num_rows
    assert often >= once * times


def test_a_repeated_trace_teaches_what_the_real_one_does(trace: Path, longer: Path) -> None:
    real, again = ({each.id for each in infer([Run(str(each))])} for each in (trace, longer))
    assert real == again


def test_the_epochs_of_the_training_are_read_from_what_it_prints_last() -> None:
    assert loop_of("epoch 0: loss 1\n[[1.0, 0.5], [2.0, 0.25]]\n\nProgram exited with code 0") == Loop(
        3.0, 0.75
    )
    with pytest.raises(traincheck.Missing, match="did not run to its end: Killed"):  # type: ignore[attr-defined]
        loop_of("Killed")


def test_the_figures_of_the_peer_are_kept() -> None:
    peer = traincheck.recorded()
    assert peer.version == traincheck.VERSION
    assert peer.invariants > peer.violated > 0


@pytest.mark.parametrize(
    ("value", "bar", "reached"), [(1.9, 2.0, "yes"), (2.1, 2.0, "missed"), (0, 0, "yes")]
)
def test_a_row_says_whether_its_bar_is_met(value: float, bar: float, reached: str) -> None:
    assert Figure("what", "ours", value=value, bar=bar).cells[-1] == reached


def test_small_ratios_are_shown_as_parts() -> None:
    assert [_part(value) for value in (None, 0, 0.02, 1.25)] == ["", "0", "1/50", "1.25"]
