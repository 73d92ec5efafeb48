"""The fixing benchmark: small corpora keep what fixes promise, and it notices where one does not."""

import json
import os
from pathlib import Path
from typing import Any

import fixing as benchmark
import pytest
from corpus import FOLDER as CORPORA
from corpus import VERSIONS

from ta_lint.core.catalogue import catalogue

ALL_FIXES = [f"--extend-select={rule.id}" for rule in catalogue().values() if rule.fix != "none"]
SMALL = ("ctgan", "lightweight-gan", "pytorchyolo")

CODE = """\
import torch

model = torch.nn.Linear(4, 1)
model.eval
total = model(torch.ones(1, 4)).detach().numpy()  # noqa: TA506
"""


def notebook(code: str, **fields: Any) -> bytes:
    """A notebook of one cell."""
    output = {"name": "stdout", "output_type": "stream", "text": "1"}
    cell = {"cell_type": "code", "execution_count": 1, "metadata": {}, "outputs": [output], "source": code}
    return json.dumps(
        {"cells": [cell | fields], "metadata": {}, "nbformat": 4, "nbformat_minor": 4}, indent=1
    ).encode()


@pytest.mark.parametrize("name", SMALL)
def test_fixes_keep_their_promises_in_a_corpus(name: str, tmp_path: Path) -> None:
    folder = CORPORA / f"{name}-{VERSIONS[name]}"
    if not folder.is_dir():
        if os.environ.get("CI") == "true":
            pytest.fail("python benchmarks/corpus.py has not been run")
        pytest.skip("python benchmarks/corpus.py brings the corpora")
    outcome = benchmark.fixed([folder], tmp_path, ALL_FIXES)
    assert outcome.violations == ()
    assert outcome.offered


def test_the_table_counts_fixes_and_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "code"
    folder.mkdir()
    (folder / "train.py").write_text(CODE)
    outcome = benchmark.fixed([folder], tmp_path / "copies")
    assert outcome.violations == ()
    assert outcome.changed == {"TA002": 1, "TA603": 1}
    assert list(benchmark.table(outcome))[2:] == [
        "| TA002 |          1 |            0 |             1 |",
        "| TA603 |          0 |            1 |             1 |",
    ]
    assert (folder / "train.py").read_text() == CODE
    assert "model.eval()" in (tmp_path / "copies" / "code" / "train.py").read_text()


def test_notebooks_are_fixed_and_held_to_the_same(tmp_path: Path) -> None:
    folder = tmp_path / "code"
    folder.mkdir()
    (folder / "train.ipynb").write_bytes(notebook(CODE))
    outcome = benchmark.fixed([folder], tmp_path / "copies")
    assert outcome.violations == ()
    assert outcome.changed["TA603"] == 1
    assert b"model.eval()" in (tmp_path / "copies" / "code" / "train.ipynb").read_bytes()


def test_a_broken_promise_is_said() -> None:
    before, after = {"a.py": b"x = 1\n", "b.py": b"x ="}, {"a.py": b"x = (\n", "b.py": b"y ="}
    assert list(benchmark._broken({"a.py", "b.py"}, before, after)) == ["a.py: cannot be read any more"]
    good = notebook("model.eval")
    for other, said in (
        (notebook("model.eval()"), []),
        (notebook("model.eval("), ["a.ipynb: less of it is Python"]),
        (notebook("model.eval()", outputs=None), ["a.ipynb: cannot be read any more"]),
        (notebook("model.eval()", outputs=[]), ["a.ipynb: changed beside its code"]),
    ):
        assert list(benchmark._broken({"a.ipynb"}, {"a.ipynb": good}, {"a.ipynb": other})) == said
    assert list(benchmark._untold({"a.py"}, [])) == ["a.py: changed without a finding"]
    finding = {"path": "a.py", "rule": "TA910"}
    assert list(benchmark._worse([], [finding])) == ["a.py: 1 more of TA910 after the fixes"]
    assert list(benchmark._worse([finding], [finding])) == []
