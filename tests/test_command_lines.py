"""The command lines of `ta-lint` and `ta-runtime`, each command in the same way: help, short options, errors of one line.

Frictions of the review before 0.3: "`ta-lint` without a command prints an error instead of help; a wrong option prints twelve
lines of usage first; `explain` gets no hint; `-o` and `-f` exist on two commands only; an error names a relative path instead
of the one given; `ta-lint rules` has no summaries and no filter; `--fix` has no `--show-fixes`".
"""

import argparse
import json
from pathlib import Path

import pytest

import ta_lint.cli
import ta_runtime.cli
from ta_lint.core.arguments import Parser
from ta_lint.core.catalogue import catalogue

TOOLS = {"ta-lint": ta_lint.cli, "ta-runtime": ta_runtime.cli}
PARSERS: dict[str, Parser] = {}
for _tool, _parsers in (
    ("ta-lint", ta_lint.cli._parser(list(ta_lint.cli._COMMANDS))),
    ("ta-runtime", ta_runtime.cli._parser()),
):
    PARSERS[_tool] = _parsers[0]
    PARSERS.update({f"{_tool} {name}": parser for name, parser in _parsers[1].items()})

SHORT = {
    "--config": None,
    "--format": "-f",
    "--help": "-h",
    "--invariants": "-i",
    "--jobs": "-j",
    "--output": "-o",
    "--quiet": "-q",
    "--watch": "-w",
}
"""The short option of a long one, wherever it is."""


class Said:
    """What a command line printed, and its exit status."""

    def __init__(self, line: str, capsys: pytest.CaptureFixture[str]) -> None:
        tool, *words = line.split()
        try:
            self.status = TOOLS[tool].main(words)
        except SystemExit as ended:
            self.status = int(ended.code or 0)
        self.out, self.err = capsys.readouterr()


@pytest.mark.parametrize("command", [name for name, parser in PARSERS.items() if not parser.works_alone])
def test_a_command_without_arguments_prints_help_that_teaches(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    said = Said(command, capsys)
    assert (said.status, said.out) == (2, "")
    assert said.err.startswith(f"usage: {command}")
    assert f"\n  {command} " in said.err.partition("examples:\n")[2]
    assert "error:" not in said.err


@pytest.mark.parametrize("command", PARSERS)
def test_each_command_has_help_that_says_what_it_does(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    long, short = Said(f"{command} --help", capsys), Said(f"{command} -h", capsys)
    assert (long.status, long.out) == (0, short.out)
    assert PARSERS[command].description
    tool, *words = command.split()
    assert Said(" ".join([tool, "help", *words]), capsys).out == long.out
    usage, _, _ = long.out.partition("\n\n")
    assert usage.count("\n") < 3


@pytest.mark.parametrize("command", PARSERS)
def test_a_short_option_is_the_same_everywhere(command: str) -> None:
    for action in PARSERS[command]._actions:
        for option in action.option_strings:
            if short := SHORT.get(option):
                assert short in action.option_strings, f"{command} {option}"
            if not option.startswith("--") and option != "-m":
                longs = [long for long, short in SHORT.items() if short == option]
                assert set(longs) & set(action.option_strings), f"{command} {option}"


@pytest.mark.parametrize("command", PARSERS)
def test_a_wrong_option_is_one_line_with_the_place_of_help(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    said = Said(f"{command} --nonsense", capsys)
    assert (said.status, said.out) == (2, "")
    assert said.err == f"{command}: error: unrecognized arguments: --nonsense (see `{command} --help`)\n"


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("ta-lint explain TA401", "write `ta-lint rule TA401`"),
        ("ta-lint lint train.py", "write `ta-lint check train.py`"),
        ("ta-lint run train.py", "write `ta-runtime run train.py`"),
        ("ta-runtime rule TA401", "write `ta-lint rule TA401`"),
        ("ta-lint --fix", "it is an option of `ta-lint check`"),
        ("ta-runtime run --page x.html train.py", "it is an option of `ta-runtime preflight`"),
        ("ta-runtime report --tolerance 1 runs/1", "it is an option of `ta-runtime diff`"),
        ("ta-runtime audit --phse init nets:Net", "did you mean --phase?"),
        ("ta-lint check --select TA6X", "--select: no rule, prefix, tag or alias is called 'TA6X'; did you mean TA6?"),
        ("ta-lint check --ignore TA4O1", "--ignore: no rule, prefix, tag or alias is called 'TA4O1'; did you mean TA401?"),
        ("ta-lint rules TA999", "did you mean TA9? `ta-lint rules TA9` lists its rules"),
    ],
)  # fmt: skip
def test_a_mistake_is_one_line_that_says_what_may_be_meant(
    line: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    said = Said(line, capsys)
    assert (said.status, said.out) == (2, "")
    [error] = said.err.splitlines()
    assert told in error


def test_each_tool_knows_the_commands_of_the_other() -> None:
    for own, other in (("ta-lint", ta_runtime.cli), ("ta-runtime", ta_lint.cli)):
        names = {name.split()[1] for name in PARSERS if name.startswith(f"{own} ")}
        theirs = {line for line in other._ELSEWHERE.values() if line.startswith(own)}
        both = {name.split()[1] for name in PARSERS if not name.startswith(own) and " " in name}
        assert {f"{own} {name}" for name in names - both} <= theirs


@pytest.mark.parametrize(
    "line",
    [
        "ta-lint check {}/none.py",
        "ta-lint check --baseline {}/none.json",
        "ta-lint check --config {}/none.toml",
        "ta-lint check --output {}/none/x.json",
        "ta-lint merge {}/none.sarif",
        "ta-lint clean {}/none",
        "ta-runtime diff {}/none {}/none",
        "ta-runtime report {}/none",
        "ta-runtime infer {}/none",
        "ta-runtime run {}/none.py",
    ],
)
def test_an_error_names_a_path_as_it_was_given(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    for folder in (str(tmp_path / "there"), "../there"):
        said = Said(line.replace("{}", folder), capsys)
        assert said.status == 2
        assert f"{folder}/none" in said.err.splitlines()[-1]
        if not folder.startswith("/"):
            assert str(tmp_path) not in said.err


def test_rules_are_listed_with_what_each_finds_and_can_be_filtered(
    capsys: pytest.CaptureFixture[str],
) -> None:
    lines = Said("ta-lint rules", capsys).out.splitlines()
    assert [line.split()[0] for line in lines] == list(catalogue())
    for line, rule in zip(lines, catalogue().values(), strict=True):
        assert line.split()[1] == rule.name
        assert line.endswith(rule.finds)
        assert rule.summary.startswith(rule.finds[:-1])
        assert rule.finds.endswith("."), rule.id  # a whole sentence
        assert rule.finds.count("`") % 2 == 0, rule.id
        assert 15 < len(rule.finds) < 320
    of_six = Said("ta-lint rules TA6", capsys).out.splitlines()
    assert of_six == [line for line in lines if line.startswith("TA6")]
    said = Said("ta-lint rules TOR102,missing-zero-grad security -f json", capsys)
    ids = [rule["id"] for rule in json.loads(said.out)]
    assert ids == [
        rule.id
        for rule in catalogue().values()
        if rule.name == "missing-zero-grad" or "TOR102" in rule.also or "security" in rule.tags
    ]


FIXABLE = """\
import torch


def train(loader, model, criterion, optimizer):
    total = 0
    for x, y in loader:
        loss = criterion(model(x), y)
        optimizer.zero_grad
        loss.backward()
        optimizer.step()
        total += loss
    return total
"""


def test_fixes_are_listed_by_file_and_rule_if_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    listed = "  train.py: 1 x TA206 (graph-kept-by-accumulation)\n  train.py: 1 x TA603 (uncalled-method)\n"
    for words, shown in (("", ""), (" --show-fixes", listed)):
        Path("train.py").write_text(FIXABLE)
        said = Said(f"ta-lint check --fix --unsafe-fixes train.py{words}", capsys)
        assert said.out == f"Fixed 2 findings in 1 file.\n{shown}All checks passed.\n"
    for words in ("--show-fixes", "--show-fixes --fix --diff"):
        said = Said(f"ta-lint check {words}", capsys)
        assert (said.status, said.err.count("\n")) == (2, 1)


def test_every_command_is_parsed_in_one_way() -> None:
    """So an error of one line, help and suggestions are those of `Parser` for each."""
    assert all(type(parser) is Parser for parser in PARSERS.values())
    assert all(parser.formatter_class is argparse.RawDescriptionHelpFormatter for parser in PARSERS.values())
