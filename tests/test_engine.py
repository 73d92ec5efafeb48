"""One file through the engine: what a crash, a gate and an unreadable file do to the rest."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from ta_lint import checks, engine
from ta_lint.checks import Check
from ta_lint.core.config import Configs, Options
from ta_lint.core.finding import Finding
from ta_lint.engine import File, lint_file
from ta_lint.facts import Module, Suspicion

BUGGY = "import torch\noptimizer = torch.optim.Adam(torch.nn.Linear(2, 2).parameters(), weight_decay=0.1)\n"


def lint(folder: Path, text: str, *select: str) -> list[Finding]:
    path = folder / "train.py"
    path.write_text(text)
    config = Configs(Options(select=list(select)), folder).root_config
    return lint_file(File(path, "train.py", config))


def crash(_: Module) -> Iterator[Suspicion]:
    raise ZeroDivisionError("division by zero")
    yield


@pytest.fixture
def crashing_check(monkeypatch: pytest.MonkeyPatch) -> None:
    """TA600 raises whatever it is given."""
    load = checks.load
    broken = Check("TA600", (), crash, None)
    monkeypatch.setattr(checks, "load", lambda rule: broken if rule == "TA600" else load(rule))
    checks.enabled.cache_clear()
    yield
    checks.enabled.cache_clear()


@pytest.mark.usefixtures("crashing_check")
def test_a_check_that_raises_is_one_finding_and_the_others_go_on(tmp_path: Path) -> None:
    findings = {finding.rule: finding for finding in lint(tmp_path, BUGGY, "TA600", "TA401")}
    assert findings.keys() == {"TA000", "TA401"}
    assert findings["TA000"].message == "the check of TA600 raised ZeroDivisionError: division by zero"
    assert findings["TA000"].site.line == 1


@pytest.mark.usefixtures("crashing_check")
def test_a_crash_stays_silent_only_when_ignored_by_name(tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text(BUGGY)
    config = Configs(Options(ignore=["TA000", "TA401"]), tmp_path).root_config
    assert lint_file(File(path, "train.py", config)) == []


def test_a_file_that_no_check_wants_is_not_parsed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "parse", lambda source: pytest.fail("parsed"))
    assert lint(tmp_path, "import torch\nprint(torch.zeros(1))\n", "TA401") == []


def test_related_places_travel_with_the_finding(tmp_path: Path) -> None:
    text = "import torch\nfor x in data:\n    loss = model(x)\n    loss.backward()\n    optimizer.step()\n"
    (finding,) = lint(tmp_path, text, "TA600")
    assert finding.site.line == 5
    assert [(related.site.line, related.message) for related in finding.related] == [(2, "the loop")]
