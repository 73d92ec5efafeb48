"""The long versions of `test_generated`, `test_renaming` and `test_bounded`."""

from pathlib import Path

import pytest
from fuzzing import dry_runs
from generated import generate
from generating.runs import runner
from renaming import STYLES
from test_bounded import mutants
from test_renaming import ROOT, differences


def test_nothing_is_claimed_of_400_generated_programs_that_is_not_so(tmp_path: Path) -> None:
    false: list[tuple[str, list[str]]] = []
    ended = 0
    with runner(tmp_path) as both:

        def take(text: str) -> None:
            nonlocal ended
            compared = both.compared(text)
            ended += compared.status == "ended"
            if compared.false:
                false.append((text, compared.false))

        generate(400, 7, take)
    assert false == []
    assert ended > 320


def test_other_names_change_nothing_in_generated_programs(tmp_path: Path) -> None:
    texts: list[str] = []
    generate(100, 3, texts.append)
    changed = [
        (text, style)
        for number, text in enumerate(texts)
        for style in differences(text, tmp_path, [list(STYLES)[number % len(STYLES)]])
    ]
    assert changed == []


@pytest.mark.parametrize("which", ["buggy", "healthy"])
def test_other_names_change_nothing_in_silent_bugs(which: str, tmp_path: Path) -> None:
    scripts = sorted((ROOT / "benchmarks/silent_bugs/scripts").glob(f"*/{which}.py"))
    changed = [
        (path, style)
        for number, path in enumerate(scripts)
        for style in differences(
            path.read_text("utf-8"), tmp_path, ["neutral", list(STYLES)[number % len(STYLES)]]
        )
    ]
    assert changed == []


def test_many_mutants_end() -> None:
    problems = [(one.data, problem) for one in mutants(3_000) for problem in dry_runs.judged(one).problems]
    assert problems == []
