"""`docs/agents.md` tells an agent to lint, run, read the verdict and fix: every command of it runs here, in its order."""

import contextlib
import io
import re
from pathlib import Path

import pytest
from commands import warm

PAGE = (Path(__file__).parents[1] / "docs" / "agents.md").read_text(encoding="utf-8")


def test_an_agent_that_follows_the_page_sees_what_the_page_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)
    [script] = re.findall(r"^```python title=train.py\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    [reader] = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    [read] = re.findall(r"^```text\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    Path("train.py").write_text(script, encoding="utf-8")
    shown = re.findall(r"^```console\n\$ (.*?)\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    assert [command.split()[0] for command, _ in shown] == ["ta-lint", "ta-runtime", "ta-lint", "ta-lint"]
    for (command, printed), status in zip(shown, (1, 0, 0, 0), strict=True):
        program, *words = command.split()
        ran = warm(tmp_path, "-m", program.replace("-", "_"), *words)
        assert (ran.returncode, ran.stdout) == (status, printed), ran.stderr
        if program == "ta-runtime":
            with contextlib.redirect_stdout(io.StringIO()) as said:
                exec(compile(reader, "agents.md", "exec"), {})  # noqa: S102 - the code of a page is what is tested
            assert said.getvalue() == read


def test_the_page_explains_fields_that_a_finding_has() -> None:
    table = PAGE.partition("| field | use it for |\n")[2].partition("\n\n")[0]
    fields = {name for row in table.splitlines() for name in re.findall(r"`(\w+)`", row.split("|")[1])}
    assert {"rule", "harm", "fix", "confidence", "verdict"} <= fields
    assert [name for name in fields if f'"{name}": ' not in PAGE] == []
