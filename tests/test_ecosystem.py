"""The linter on real code: every default finding in the corpora is judged, and the judgements are held.

`tests/ecosystem/findings.toml` lists each finding with a verdict and its reason. After a change,
`python tests/test_ecosystem.py` prints what appeared and what went. The tests lint every fourth file of the large releases; that
command lints all.
"""

import json
import os
import re
import subprocess
import sys
import tomllib
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from corpus import FOLDER as CORPORA
from corpus import VERSIONS

from ta_lint.core.catalogue import catalogue

ROOT = Path(__file__).parents[1]
JUDGEMENTS = ROOT / "tests" / "ecosystem" / "findings.toml"
LIVE = ROOT / "tests" / "ecosystem" / "live.toml"
HELD_OUT = ROOT / "tests" / "ecosystem" / "held-out.toml"
NAMES = [f"{name}-{version}" for name, version in VERSIONS.items()]
LARGE = 100
"""Of a release with more files than these, the tests lint every `PART`-th."""
PART = 4


class Place(NamedTuple):
    """What is judged: all findings of a rule on a line have one verdict."""

    corpus: str
    path: str
    """In a notebook it ends in `:cell 3`."""
    line: int
    rule: str


@cache
def judged() -> dict[Place, dict[str, str]]:
    table = tomllib.loads(JUDGEMENTS.read_text(encoding="utf-8"))
    return {
        Place(item["corpus"], item["path"], item["line"], item["rule"]): item for item in table["finding"]
    }


@cache
def run(*, whole: bool = False) -> set[Place]:
    """What the default rules find in the corpora that are here."""
    folders = [folder for name in NAMES if (folder := CORPORA / name).is_dir()]
    looked_at = [path for folder in folders for path in ([folder] if whole else asked(folder))]
    command = [sys.executable, "-m", "ta_lint", "check", "--isolated", "--format=json", *map(str, looked_at)]
    ran = subprocess.run(command, capture_output=True, text=True)
    assert ran.returncode in (0, 1), ran.stderr
    assert ran.stderr == ""
    return {_place(item) for item in json.loads(ran.stdout) if item["suppression"] is None}


def _is_in(place: Place, files: set[str]) -> bool:
    return "." in files or place.path.partition(":cell ")[0] in files


def asked(corpus: Path) -> list[Path]:
    """The files of a release that the tests lint: the folder, or every so many of its files."""
    files = sorted(path for path in corpus.rglob("*") if path.suffix in (".py", ".ipynb"))
    return files[::PART] if len(files) > LARGE else [corpus]


def _place(item: dict[str, Any]) -> Place:
    corpus, _, path = item["path"].rpartition("benchmarks/corpora/")[2].partition("/")
    cell = "" if item["cell"] is None else f":cell {item['cell']}"
    return Place(corpus, path + cell, item["line"], item["rule"])


@pytest.mark.parametrize("corpus", NAMES)
def test_every_finding_in_a_corpus_is_judged_and_every_judged_one_is_found(corpus: str) -> None:
    if not (CORPORA / corpus).is_dir():
        if os.environ.get("CI") == "true":
            pytest.fail("python benchmarks/corpus.py has not been run")
        pytest.skip("python benchmarks/corpus.py brings the corpora")
    found = {place for place in run() if place.corpus == corpus}
    files = {str(path.relative_to(CORPORA / corpus)) for path in asked(CORPORA / corpus)}
    expected = {place for place in judged() if place.corpus == corpus and _is_in(place, files)}
    assert not [place for place in found if place.rule == "TA000"]
    assert sorted(found - expected) == []
    assert sorted(expected - found) == []


def test_every_judgement_has_a_verdict_and_a_reason() -> None:
    for place, item in judged().items():
        assert item["verdict"] in ("true", "false"), place
        assert len(item["reason"]) > 20, place


def test_at_most_one_finding_in_twenty_is_false_and_of_no_rule_more_than_one_in_ten() -> None:
    verdicts: dict[str, Counter[str]] = {}
    for place, item in judged().items():
        verdicts.setdefault(place.rule, Counter())[item["verdict"]] += 1
    every = sum(verdicts.values(), Counter[str]())
    assert every["false"] <= 0.05 * every.total(), dict(every)
    for rule, counts in verdicts.items():
        if counts.total() >= 3:  # fewer say little
            assert counts["false"] <= 0.1 * counts.total(), f"{rule}: {dict(counts)}"


def test_every_live_bug_is_above_note_under_a_default_rule_and_says_where_it_is_and_why() -> None:
    bugs = tomllib.loads(LIVE.read_text(encoding="utf-8"))["bug"]
    places = [(bug["repository"], bug["path"], bug["line"], bug["rule"]) for bug in bugs]
    assert len(set(places)) == len(places)
    for bug in bugs:
        assert catalogue()[bug["rule"]].default, bug
        assert catalogue()[bug["rule"]].severity in ("error", "warning"), bug
        assert re.fullmatch("[0-9a-f]{40}", bug["commit"]), bug
        assert len(bug["reason"]) > 20, bug


def test_no_repository_is_in_two_looks_at_code_that_no_rule_had_been_tried_on() -> None:
    looks = tomllib.loads(HELD_OUT.read_text(encoding="utf-8"))
    seen = [
        *looks["repositories"],
        *(name for look in ("second", "third", "fourth", "fifth") for name in looks[look]["repositories"]),
    ]
    assert [name for name, count in Counter(seen).items() if count > 1] == []


if __name__ == "__main__":
    known = judged() if JUDGEMENTS.exists() else {}
    present = run(whole=True)
    for place in sorted(present - known.keys()):
        print("new ", *place)
    for place in sorted(known.keys() - present):
        print("gone", *place)
