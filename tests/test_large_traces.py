"""The traces of several runs are one table of Parquet, for engines that are not ours: `docs/large-traces.md` is executed."""

import re
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from ta_runtime.trace import collecting

PAGE = (Path(__file__).parents[1] / "docs" / "large-traces.md").read_text(encoding="utf-8")
DUCKDB, DASK = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


@pytest.fixture
def _traces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two traces, of which the second has a layer that returns float64 once."""
    monkeypatch.chdir(tmp_path)
    for name in ("1", "2"):
        model = nn.Sequential(nn.Linear(4, 4), nn.Tanh())
        optimizer = torch.optim.SGD(model.parameters())
        with collecting(f"traces/{name}"):
            for _ in range(3):
                model(torch.randn(2, 4)).sum().backward()
                optimizer.step()
                optimizer.zero_grad()
            if name == "2":
                model[1](torch.ones(2, dtype=torch.float64))


def run(block: str) -> dict[str, Any]:
    scope: dict[str, Any] = {}
    exec(compile(block, "large-traces.md", "exec"), scope)  # noqa: S102 - the code of a page is what is tested
    return scope


@pytest.mark.usefixtures("_traces")
def test_duckdb_reads_the_traces_of_several_runs_as_one(capsys: pytest.CaptureFixture[str]) -> None:
    run(DUCKDB)
    assert capsys.readouterr().out.splitlines() == [
        "torch.nn.Linear always returns float32 (train, 6 calls)",
        "torch.nn.Sequential always returns float32 (train, 6 calls)",
    ]


@pytest.mark.usefixtures("_traces")
def test_dask_counts_the_same_part_by_part() -> None:
    pytest.importorskip("dask.dataframe")
    found = run(DASK)["always"]
    assert found.to_dict() == {
        ("torch.nn.Linear", "train", "float32"): 6,
        ("torch.nn.Sequential", "train", "float32"): 6,
    }
