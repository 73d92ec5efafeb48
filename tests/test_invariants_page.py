"""The page about invariants: its commands do what it shows, and its table has what is shipped."""

import re
import shlex
from pathlib import Path

import pytest
from commands import ta_runtime

from ta_runtime.invariants import file, shipped, templates

PAGE = (Path(__file__).parents[1] / "docs" / "invariants.md").read_text(encoding="utf-8")
SHOWN = re.findall(r"^\$ ta-runtime (\w+) (.*)\n((?:(?!\$ |```).*\n)*)", PAGE, re.MULTILINE)


def test_the_commands_of_the_page_do_what_it_shows(tmp_path: Path) -> None:
    (script,) = re.findall(r"```python title=train.py\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "train.py").write_text(script, encoding="utf-8")
    assert [command for command, _, _ in SHOWN] == [
        "collect",
        "collect",
        "infer",
        "infer",
        "collect",
        "check",
        "run",
    ]
    for command, words, output in SHOWN:
        ran = ta_runtime(tmp_path, command, *shlex.split(words), timeout=120)
        assert ran.returncode == (1 if command == "check" else 0), ran.stderr
        printed = [line for line in ran.stdout.splitlines() if not line.startswith("Not seen")]
        assert printed == output.rstrip().splitlines()
    found = (tmp_path / "found.json").read_text(encoding="utf-8")
    assert "TA510" in found
    assert "before each `Tensor.backward` there is always a new `SGD.zero_grad`" in found


def test_the_entry_of_the_page_is_one_that_is_learned() -> None:
    [entry] = re.findall(r'"id": "(.*?)"', PAGE)
    [(_, _, learned)] = [each for each in SHOWN if each[:2] == ("infer", "--merge invariants.json")]
    assert re.search(
        rf"^{entry} +before each `Tensor.backward` there is always a new `SGD.zero_grad`$",
        learned,
        re.MULTILINE,
    )


@pytest.mark.parametrize("name", templates.NAMES)
def test_the_page_explains_each_template(name: str) -> None:
    rows = re.findall(r"^\| ([a-z_, ]+) \|", PAGE, re.MULTILINE)
    assert name in {each for row in rows for each in row.split(", ")}


def test_the_table_of_the_page_has_what_is_shipped() -> None:
    rows = [f"| {file.says(each)} | {each.covered_by or 'none'} |" for each in shipped.shipped()]
    table = re.search(r"^\| always \| rule of the run \|\n\|---\|---\|\n((?:\|.*\n)*)", PAGE, re.MULTILINE)
    assert table is not None
    assert table[1].splitlines() == rows
