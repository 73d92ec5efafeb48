"""What `docs/from-transformers.md`, `docs/from-trl.md` and `docs/from-lightning.md` say: their programs run, and tell what the page shows."""

import re
from functools import partial
from pathlib import Path

import pytest
from commands import Ran, at_once, warm

DOCS = Path(__file__).parents[1] / "docs"
NAMES = ("lightning", "transformers", "trl")
_SHARE = re.compile(r"Looked at \d+ of")
"""How many steps were looked at depends on how long they took."""


def block(page: str, title: str) -> str:
    text = (DOCS / f"from-{page}.md").read_text(encoding="utf-8")
    found = re.search(rf"^```\w+ title={re.escape(title)}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    return found[1] if found is not None else ""


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Ran, Ran]]:
    """The run of each program, and what the linter says of it."""
    for name in NAMES:
        pytest.importorskip(name)
    runs = []
    for name in NAMES:
        folder = tmp_path_factory.mktemp(name)
        (folder / "train.py").write_text(block(name, "train.py"), encoding="utf-8")
        runs.append(partial(warm, folder, "train.py", timeout=300))
        check = ("-m", "ta_lint", "check", "--no-cache", "--isolated", "--format=concise", "train.py")
        runs.append(partial(warm, folder, *check))
    ended = at_once(runs)
    return dict(zip(NAMES, zip(ended[::2], ended[1::2], strict=True), strict=True))


@pytest.mark.parametrize("name", NAMES)
def test_the_run_of_the_page_tells_what_the_page_shows(name: str, ran: dict[str, tuple[Ran, Ran]]) -> None:
    run, _ = ran[name]
    assert run.returncode == 0, run.stderr
    told = _SHARE.sub("", run.stderr).splitlines()
    shown = _SHARE.sub("", block(name, "run")).splitlines()
    assert shown
    for line in shown:
        assert line in told, run.stderr
    assert "TA000" not in run.stderr


@pytest.mark.parametrize("name", NAMES)
def test_the_linter_tells_what_the_page_shows(name: str, ran: dict[str, tuple[Ran, Ran]]) -> None:
    _, lint = ran[name]
    found = {line for line in lint.stdout.splitlines() if line.startswith("train.py:")}
    assert found == set(block(name, "lint").splitlines()), lint.stdout + lint.stderr


@pytest.mark.parametrize("name", NAMES)
def test_the_line_to_add_is_in_the_program(name: str) -> None:
    assert "callbacks=[AuditCallback()]" in block(name, "train.py")
