"""One file through the engine: what a crash, a gate and an unreadable file do to the rest."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn

import pytest

from ta_lint import checks, engine, fixing, scripts
from ta_lint.checks import Check
from ta_lint.checks.gate import Gate
from ta_lint.core.config import Configs, Options
from ta_lint.core.finding import Finding
from ta_lint.core.source import Source
from ta_lint.dryrun.machine.machine import Machine
from ta_lint.engine import lint_file
from ta_lint.facts import FileFacts, Suspicion
from ta_lint.file import File
from ta_lint.syntax import parse

BUGGY = "import torch\noptimizer = torch.optim.Adam(torch.nn.Linear(2, 2).parameters(), weight_decay=0.1)\n"


def lint(folder: Path, text: str, *select: str) -> list[Finding]:
    path = folder / "train.py"
    path.write_text(text)
    config = Configs(Options(select=list(select)), folder).root_config
    return lint_file(File(path, "train.py", config))


def crash(_: FileFacts) -> Iterator[Suspicion]:
    raise ZeroDivisionError("division by zero")
    yield  # type: ignore[unreachable]


@pytest.fixture
def crashing_check(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """TA600 raises whatever it is given."""
    load = checks.load
    broken = Check("TA600", Gate(()), crash, None)
    monkeypatch.setattr(checks, "load", lambda rule: broken if rule == "TA600" else load(rule))
    checks.enabled.cache_clear()
    yield
    checks.enabled.cache_clear()


@pytest.mark.usefixtures("crashing_check")
def test_a_check_that_raises_is_one_finding_and_the_others_go_on(tmp_path: Path) -> None:
    findings = {finding.rule: finding for finding in lint(tmp_path, BUGGY, "TA600", "TA401")}
    assert findings.keys() == {"TA000", "TA401"}
    said = "the check of TA600 raised ZeroDivisionError: division by zero (ta_lint/engine.py:"
    assert findings["TA000"].message.startswith(said)
    assert findings["TA000"].site.line == 1


def test_a_dry_run_that_raises_is_one_finding_and_is_not_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = []

    def dry_run_of(*_: object) -> Machine:
        tried.append(1)
        raise ZeroDivisionError

    monkeypatch.setattr(scripts, "dry_run_of", dry_run_of)
    findings = lint(
        tmp_path, BUGGY + "model = torch.nn.Linear(2, 2)\nmodel.eval\n", "TA600", "TA401", "TA603"
    )
    assert [finding.rule for finding in findings] == ["TA000", "TA603"]
    assert findings[0].message.startswith("the dry run raised ZeroDivisionError")
    assert len(tried) == 1


@pytest.mark.usefixtures("crashing_check")
def test_a_crash_stays_silent_only_when_ignored_by_name(tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text(BUGGY)
    config = Configs(Options(ignore=["TA000", "TA401"]), tmp_path).root_config
    assert lint_file(File(path, "train.py", config)) == []


class Panic(BaseException):
    """What pyo3 raises for a panic in Rust."""


DEFECTS = (RecursionError("too deep"), MemoryError(), ValueError("a page\n" * 9_999), Panic("at line 1"))
STAGES = ("source_of", "_looking", "_check", "_happened", "named", "suppressed", "located")


@pytest.fixture
def broken_stage(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, BaseException], None]:
    """Makes a stage of the engine raise for whatever holds a text."""

    def put(stage: str, error: BaseException) -> None:
        healthy = getattr(engine, stage)

        def broken(*arguments: object) -> object:
            if any(isinstance(given, Source) and not given.text for given in arguments):
                return healthy(*arguments)
            raise error

        monkeypatch.setattr(engine, stage, broken)

    return put


@pytest.mark.parametrize("defect", DEFECTS, ids=lambda defect: type(defect).__name__)
@pytest.mark.parametrize("stage", STAGES)
def test_whatever_goes_wrong_with_a_file_is_one_short_finding_of_it(
    tmp_path: Path, broken_stage: Callable[[str, BaseException], None], stage: str, defect: BaseException
) -> None:
    """A6: in each stage, not in the checks alone."""
    broken_stage(stage, defect)
    (finding,) = lint(tmp_path, BUGGY, "TA401")
    assert finding.rule == "TA000"
    of_check = stage == "_happened" and isinstance(defect, Exception)
    doing = "the check of TA401" if of_check else "linting it"
    assert finding.message.startswith(f"{doing} raised {type(defect).__name__}: ")
    assert finding.message.endswith(")")
    assert "(ta_lint/engine.py:" in finding.message
    assert len(finding.message) < 300


@pytest.mark.parametrize("stage", ["_compatible", "_edited", "_is_broken", "bytes_of", "_comes_back"])
def test_whatever_goes_wrong_in_fixing_a_file_leaves_it_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stage: str
) -> None:
    """A1: for what nobody thought of, too."""

    def broken(*arguments: object) -> NoReturn:
        raise RecursionError("too deep")

    monkeypatch.setattr(fixing, stage, broken)
    path = tmp_path / "train.py"
    path.write_text("import torch\ntorch.qr(x)\n")
    config = Configs(Options(select=["TA901"], unsafe_fixes=True), tmp_path).root_config
    fixed = fixing.fix_file(File(path, "train.py", config))
    assert not fixed.changes
    assert [finding.rule for finding in fixed.findings] == ["TA901", "TA000"]
    assert fixed.findings[1].message.startswith(
        "fixing it raised RecursionError: too deep (ta_lint/fixing.py:"
    )


@pytest.mark.parametrize("passing", [KeyboardInterrupt, SystemExit])
def test_what_ends_the_process_is_no_finding(
    tmp_path: Path,
    broken_stage: Callable[[str, BaseException], None],
    monkeypatch: pytest.MonkeyPatch,
    passing: type[BaseException],
) -> None:
    broken_stage("source_of", passing())
    monkeypatch.setattr(fixing, "source_of", engine.source_of)  # type: ignore[attr-defined]
    path = tmp_path / "train.py"
    path.write_text(BUGGY)
    file = File(path, "train.py", Configs(Options(select=["TA401"]), tmp_path).root_config)
    for work in (lint_file, fixing.fix_file):
        with pytest.raises(passing):
            work(file)


def test_a_file_that_no_check_wants_is_not_parsed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parse, "parse", lambda source: pytest.fail("parsed"))
    assert lint(tmp_path, "import torch\nprint(torch.zeros(1))\n", "TA401") == []


def test_a_form_feed_ends_no_line_of_what_a_dry_run_finds(tmp_path: Path) -> None:
    text = "import torch\n\x0c\nfor x in data:\n    é = model(x)\n    é.backward(); optimizer.step()\n"
    (finding,) = lint(tmp_path, text, "TA600")
    assert (finding.site.line, finding.site.column, finding.site.end_column) == (5, 19, 35)


def test_related_places_travel_with_the_finding(tmp_path: Path) -> None:
    text = "import torch\nfor x in data:\n    loss = model(x)\n    loss.backward()\n    optimizer.step()\n"
    (finding,) = lint(tmp_path, text, "TA600")
    assert finding.site.line == 5
    assert [(related.site.line, related.message) for related in finding.related] == [(2, "the loop")]
