"""The benchmark of sets that others made: small repositories of our own in their shape, and what is counted of them."""

import json
import subprocess
from pathlib import Path
from typing import Any

import independent as benchmark
import pytest
from corpus import Missing

SOFTMAX = """\
import torch
from torch import nn

scores = torch.randn(4, 3)
print(nn.functional.cross_entropy(nn.functional.softmax(scores, dim=1), torch.tensor([0, 1, 2, 0])))
"""
HEALTHY = SOFTMAX.replace("nn.functional.softmax(scores, dim=1)", "scores")
BIASED = "from torch import nn\n\nnet = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))\n"


def repository(folder: Path, name: str, files: dict[str, str]) -> Path:
    """A repository in the folder of all, with these files in its last commit; that folder."""
    place = folder / name.replace("/", "+")
    for path, text in files.items():
        (place / path).parent.mkdir(parents=True, exist_ok=True)
        (place / path).write_text(text)
    git = [
        "git",
        "-C",
        str(place),
        "-c",
        "user.name=A",
        "-c",
        "user.email=a@b.c",
        "-c",
        "commit.gpgsign=false",
    ]
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "a state"]):
        subprocess.run([*git, *words], check=True)
    return folder


def ran(
    folder: Path, judged: str, monkeypatch: pytest.MonkeyPatch, *words: str
) -> tuple[int, dict[str, dict[str, Any]]]:
    """The exit status with these judgements, and what is written down."""
    judgements, results = folder / "judged.toml", folder / "results.json"
    judgements.write_text(judged)
    monkeypatch.setattr(benchmark, "JUDGEMENTS", judgements)
    monkeypatch.setattr(benchmark, "RESULTS", results)
    monkeypatch.setattr("sys.argv", ["independent.py", str(folder), "--write", *words])
    return benchmark.main(), json.loads(results.read_text())


PATTERNS = """\
[patterns]
repository = "somebody/patterns"
folder = "all"
rules = {pt-1-softmax = ["TA406"], pt-2-workers = ["TA204"]}
none = {np-3-copies = "no rule is about copies"}
"""
PATTERN_FILES = {
    "all/ai/pt-1-softmax/test_positive/twice.py": SOFTMAX,
    "all/ai/pt-1-softmax/test_positive/unknown.py": "from nets import loss\n",
    "all/ai/pt-1-softmax/test_negative/once.py": HEALTHY,
    "all/ai/pt-2-workers/test_negative/biased.py": BIASED,
    "all/ai/np-3-copies/test_context_dependent/maybe.py": "print()\n",
    "all/ai/np-3-copies/pattern.toml": "",
}


def test_what_rules_name_of_patterns_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    repository(tmp_path, "somebody/patterns", PATTERN_FILES)
    judged = PATTERNS + (
        'judged = {"pt-2-workers/negative/biased.py:3 TA400" = true}\n'
        'missed = {"pt-1-softmax/positive/unknown.py" = "the loss is elsewhere"}\n'
    )
    status, results = ran(tmp_path, judged, monkeypatch, "--set", "patterns")
    assert status == 0
    assert capsys.readouterr().out.splitlines() == [
        "| pattern          |                  rules | positives | named |",
        "|------------------|-----------------------:|----------:|------:|",
        "| pt-1-softmax     |                  TA406 |         2 |     1 |",
        "| pt-2-workers     | TA204 (not by default) |         0 |     0 |",
        "| of default rules |                        |         2 |     1 |",
        "",
    ]
    assert (results["patterns"]["negatives"], results["patterns"]["other"]) == (2, 1)
    assert len(results["patterns"]["commit"]) == 40


def test_what_nobody_has_judged_is_said_and_ends_with_a_status(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    files = {**PATTERN_FILES, "all/ai/pt-4-new/test_negative/a.py": "print()\n"}
    repository(tmp_path, "somebody/patterns", files)
    judged = PATTERNS + 'judged = {}\nmissed = {"pt-1-softmax/positive/twice.py" = "it was"}\n'
    status, _ = ran(tmp_path, judged, monkeypatch, "--set", "patterns")
    assert status == 1
    said = capsys.readouterr().err.splitlines()
    assert [line.rpartition(": ")[2] for line in said] == [
        "pt-1-softmax/positive/twice.py",
        "pt-1-softmax/positive/unknown.py",
        "pt-2-workers/negative/biased.py:3 TA400",
        "pt-4-new",
    ]


def test_the_bugs_of_whole_scripts_are_counted_by_the_list_that_comes_with_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = (
        "metadata:\n  seed: 1\nscenarios:\n"
        "  one:\n    file: scripts/one.py\n    bugs:\n    - pattern_id: pt-1\n      line: 5\n    - pattern_id: pt-9\n"
        "  two:\n    file: scripts/two.py\n    bugs:\n    - pattern_id: pt-1\n"
    )
    files = {"all/list.yaml": listed, "all/scripts/one.py": SOFTMAX, "all/scripts/two.py": HEALTHY}
    repository(tmp_path, "somebody/scripts", files)
    judged = """\
[scenarios]
repository = "somebody/scripts"
folder = "all"
list = "list.yaml"
rules = {pt-1 = ["TA406"]}
missed = {"two pt-1" = "there is none"}
"""
    status, results = ran(tmp_path, judged, monkeypatch, "--set", "scenarios")
    assert status == 0
    assert results["scenarios"]["patterns"] == {"pt-1": {"rules": ["TA406"], "bugs": 2, "named": 1}}


def test_a_script_is_linted_as_it_is_and_as_the_answer_mends_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {"Bugs/001/main.py": SOFTMAX, "Bugs/002/main.py": HEALTHY, "Bugs/003/main.py": "print()\n"}
    repository(tmp_path, "somebody/scripts", files)
    judged = """\
[scripts]
repository = "somebody/scripts"
folder = "Bugs"
[scripts.bugs]
001 = {cause = "softmax twice", rules = ["TA406"], mended = [5, "nn.functional.softmax", ""]}
002 = {cause = "none", rules = []}
"""
    status, results = ran(tmp_path, judged, monkeypatch, "--set", "scripts")
    assert status == 0
    assert results["scripts"]["bugs"] == [{"bug": "001", "rules": ["TA406"], "named": True, "gone": True}]
    assert results["scripts"]["others"] == 1


def test_a_line_that_does_not_call_what_is_mended_is_an_error() -> None:
    with pytest.raises(Missing, match="line 1 does not call softmax"):
        benchmark._mended(b"print()\n", 1, "softmax", "")


def test_a_line_that_a_peer_expects_is_reported_or_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {
        "t/api/checker/qr.py": "from torch import qr\n\nqr()\n",
        "t/api/checker/qr.txt": "1:1 TOR103 Import\n3:1 TOR101 Use\n",
        "t/api/checker/gone.py": "print()\n",
        "t/api/checker/gone.txt": "1:1 TOR001 Use\n1:7 TOR001 Use",
        "t/api/codemod/qr.in.py": "import torch\n",
    }
    repository(tmp_path, "somebody/peer", files)
    judged = """\
[torchfix]
repository = "somebody/peer"
folder = "t"
missed = {"api/checker/gone.py:1 TOR001" = "nothing is gone"}
"""
    status, results = ran(tmp_path, judged, monkeypatch, "--set", "torchfix")
    assert status == 0
    assert results["torchfix"]["ids"] == {
        "TOR001": {"lines": 2, "found": 0},
        "TOR101": {"lines": 1, "found": 1},
        "TOR103": {"lines": 1, "found": 1},
    }


def test_a_set_that_is_not_there_is_skipped_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    judged = '[scripts]\nrepository = "somebody/scripts"\nfolder = "Bugs"\n'
    (tmp_path / "results.json").write_text('{"patterns": {"unexplained": []}}')
    status, results = ran(tmp_path, judged, monkeypatch, "--set", "scripts")
    assert (status, results) == (0, {"patterns": {"unexplained": []}})  # what was known stays
    assert capsys.readouterr().err == "scripts: skipped: no somebody/scripts\n"
