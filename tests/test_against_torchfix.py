"""What TorchFix found when it was last run is found here too, or the difference is judged."""

import json
import os
from collections import Counter
from pathlib import Path

import pytest
import torchfix
from against_torchfix import (
    OURS,
    RECORDED,
    THEIRS,
    Difference,
    Found,
    Judgements,
    compared,
    documented,
    parsed,
    recorded,
    rendered,
    statements,
)
from corpus import FOLDER, VERSIONS

from ta_lint.core.catalogue import catalogue

SMALL = ("cebra", "lightweight-gan", "pytorchyolo")


def test_every_difference_on_small_corpora_is_judged() -> None:
    names = [f"{name}-{VERSIONS[name]}" for name in SMALL]
    if not all((FOLDER / corpus).is_dir() for corpus in names):
        if os.environ.get("CI") == "true":
            pytest.fail("python benchmarks/corpus.py has not been run")
        pytest.skip("python benchmarks/corpus.py brings the corpora")
    comparison = compared({corpus: recorded(corpus) for corpus in names}, every=True)
    verdicts = Judgements().verdicts(comparison.differences)
    assert comparison.both.total() > 5
    assert [difference for difference, verdict in verdicts if verdict is None] == []


def test_the_table_in_the_guide_counts_what_is_recorded() -> None:
    names = [f"{name}-{version}" for name, version in VERSIONS.items()]
    if not all((FOLDER / corpus).is_dir() for corpus in names):
        pytest.skip("python benchmarks/corpus.py brings the corpora")
    found = Counter(code for corpus in names for _, code in statements(corpus, recorded(corpus)))
    table = documented()
    assert {code: sum(row[:3]) for code, row in table.items()} == {code: found[code] for code in table}
    assert {code for code in found if not code.startswith(torchfix.OFF_BY_DEFAULT)} <= table.keys()


def test_what_is_recorded_is_of_the_version_and_the_corpora_that_are_compared() -> None:
    kept = json.loads(RECORDED.read_text(encoding="utf-8"))
    assert kept["version"] == torchfix.VERSION
    assert {*kept["found"]} == {f"{name}-{version}" for name, version in VERSIONS.items()}


def test_every_id_that_torchfix_found_is_one_of_ours() -> None:
    found = {
        code
        for of_corpus in json.loads(RECORDED.read_text(encoding="utf-8"))["found"].values()
        for code in of_corpus
    }
    assert found <= {code for rule in catalogue().values() for code in rule.also}


def test_only_its_findings_are_read_from_the_output_of_torchfix() -> None:
    output = """\
pkg/a b.py:3:12: TOR102 [*] `torch.load` without `weights_only` parameter is unsafe.
--- /x/pkg/train.py
+++ /x/pkg/train.py
+    see train.py:4:1: TOR102 in a comment
pkg/train.py:40:5: TOR401 DataLoader without workers
Finished checking 2 files.
"""
    assert parsed(output) == [Found("pkg/a b.py", 3, "TOR102"), Found("pkg/train.py", 40, "TOR401")]


@pytest.fixture
def corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A corpus of one file, in which ta-lint finds a load (line 4) and a cleared gradient (line 6)."""
    lines = """\
    import torch

    weights = torch.load(
        "model.pt", weights_only=False
    )
    torch.optim.SGD([]).zero_grad(set_to_none=False)
    loaded = torch.load("model.pt")
    """
    folder = tmp_path / "benchmarks" / "corpora" / "tiny-1.0"
    folder.mkdir(parents=True)
    (folder / "train.py").write_text("\n".join(line[4:] for line in lines.splitlines()))
    monkeypatch.setattr("against_torchfix.FOLDER", folder.parent)
    return folder


def test_findings_in_one_statement_are_the_same_wherever_in_it_they_point(corpus: Path) -> None:
    theirs = [Found("train.py", 4, "TOR102"), Found("train.py", 7, "TOR102"), Found("train.py", 1, "TOR401")]
    comparison = compared({corpus.name: theirs}, every=False)
    assert comparison.both == {"TOR102": 1}
    assert comparison.differences == [Difference(THEIRS, corpus.name, theirs[1])]
    whole = compared({corpus.name: theirs}, every=True)
    assert [(found.who, found.found.id) for found in whole.differences] == [
        (THEIRS, "TOR401"),
        (THEIRS, "TOR102"),
        (OURS, "TA210"),
    ]


def test_a_class_holds_what_is_found_with_its_arguments_and_nothing_else(corpus: Path) -> None:
    loads = [Difference(THEIRS, corpus.name, Found("train.py", line, "TOR102")) for line in (7, 1)]
    (_, by_version), (_, unknown) = Judgements().verdicts(loads)
    assert by_version is not None
    assert not by_version.true
    assert unknown is None


def test_the_table_counts_by_verdict(corpus: Path) -> None:
    theirs = [Found("train.py", 7, "TOR102"), Found("train.py", 1, "TOR102")]
    comparison = compared({corpus.name: theirs}, every=False)
    verdicts = Judgements().verdicts(comparison.differences)
    [row] = [line for line in rendered(comparison.both, verdicts, every=False) if "TOR102" in line]
    assert row.replace(" ", "") == "|TOR102|TA700|0|0|1|1|0|0|1|"
