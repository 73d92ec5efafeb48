"""Who comes from another linter finds its ids here, in the documents and on the command line."""

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from ta_lint.core.catalogue import catalogue

ROOT = Path(__file__).parents[1]
DATA = tomllib.loads((ROOT / "docs" / "rules.toml").read_text(encoding="utf-8"))
THEIRS = {theirs["id"]: theirs for linter in DATA["linter"] for theirs in linter["rule"]}
OURS = {name: [rule.id for rule in catalogue().values() if name in rule.also] for name in THEIRS}
KNOWN = sorted(name for name in OURS if OURS[name])
MIGRATION = (ROOT / "docs" / "from-torchfix.md").read_text(encoding="utf-8")


def ta_lint(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "ta_lint", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


def settings(folder: Path, *arguments: str) -> dict[str, object]:
    ran = ta_lint(folder, "check", "--show-settings", *arguments)
    assert ran.returncode == 0, ran.stderr
    return tomllib.loads(ran.stdout)["tool"]["ta"]  # type: ignore[no-any-return]


def test_the_documents_on_rules_are_what_the_command_makes() -> None:
    command = [sys.executable, "docs/make_rules.py", "--check"]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr


def test_every_id_of_another_linter_is_one_of_ours_or_says_why_not() -> None:
    unexplained = [name for name in THEIRS if not OURS[name]]
    assert [name for name in unexplained if not THEIRS[name].get("note", "").startswith("none: ")] == []


def test_every_alias_on_a_page_is_an_id_of_a_linter_that_the_documents_name() -> None:
    foreign = re.compile(r"F\d{3}")  # pyflakes, whose ids ruff and flake8 have
    aliases = {name for rule in catalogue().values() for name in rule.also}
    assert {name for name in aliases if not foreign.fullmatch(name)} <= THEIRS.keys()


def test_the_checklist_has_thirty_points_and_each_a_rule_or_the_reason_why_not() -> None:
    assert len(DATA["bullet"]) == 30
    for bullet in DATA["bullet"]:
        assert bullet["rules"] or bullet["note"].startswith("none: "), bullet
        assert {*bullet["rules"]} <= catalogue().keys(), bullet


@pytest.mark.parametrize("name", KNOWN)
def test_an_id_of_another_linter_is_explained_by_our_page(name: str) -> None:
    first, *_ = OURS[name]
    assert ta_lint(ROOT, "rule", name).stdout.startswith(f"# {first}: ")


def test_ids_of_other_linters_are_taken_wherever_a_rule_is_named(tmp_path: Path) -> None:
    ours = sorted({rule for name in KNOWN for rule in OURS[name]})
    every = ",".join(KNOWN)
    assert settings(tmp_path, "--select", every)["select"] == sorted({"TA000", "TA001", *ours})
    assert {*ours} <= {*settings(tmp_path, "--extend-select", every)["select"]}  # type: ignore[misc]
    assert not {*ours} & {*settings(tmp_path, "--select", "ALL", "--ignore", every)["select"]}  # type: ignore[misc]
    lines = [f"{key} = {json.dumps(KNOWN)}" for key in ("select", "unfixable", "extend-unsafe-fixes")]
    table = f'[tool.ta.per-file-ignores]\n"tests/*" = {json.dumps(KNOWN)}\n'
    (tmp_path / "pyproject.toml").write_text("[tool.ta]\n" + "\n".join(lines) + "\n" + table)
    of_file = settings(tmp_path)
    assert of_file["select"] == sorted({"TA000", "TA001", *ours})
    assert of_file["fixable"] == []
    assert of_file["extend-unsafe-fixes"] == ours


@pytest.mark.parametrize("prefix", ["TOR", "TOR1", "tor10", "TOR2"])
def test_the_beginning_of_ids_of_torchfix_names_them_all(tmp_path: Path, prefix: str) -> None:
    ours = sorted({rule for name in KNOWN if name.startswith(prefix.upper()) for rule in OURS[name]})
    assert len(ours) > 1
    assert settings(tmp_path, "--select", prefix)["select"] == sorted({"TA000", "TA001", *ours})
    assert not {*ours} & {*settings(tmp_path, "--select=TA", "--ignore", prefix)["select"]}  # type: ignore[misc]


def test_an_id_is_more_exact_than_its_beginning(tmp_path: Path) -> None:
    loads, deprecated = OURS["TOR102"] + OURS["TOR101"]
    selected = settings(tmp_path, "--select", "TOR1", "--ignore", "TOR102")["select"]
    assert loads not in selected  # type: ignore[operator]
    assert deprecated in selected  # type: ignore[operator]


@pytest.mark.parametrize("prefix", ["TOR5", "W5", "B6", "F", "numpy"])
def test_the_beginning_of_a_name_or_of_ids_that_other_tools_may_have_names_nothing(
    tmp_path: Path, prefix: str
) -> None:
    ran = ta_lint(tmp_path, "check", "--select", prefix)
    assert ran.returncode == 2
    assert f"no rule, prefix, tag or alias is called '{prefix}'" in ran.stderr


@pytest.mark.parametrize("name", ["TOR402", "tor402", "TOR4", "numpy-in-pytorch-modules"])
def test_a_comment_with_an_id_of_another_linter_silences_ours(tmp_path: Path, name: str) -> None:
    line = (
        "optimizer.zero_grad(set_to_none=False)"
        if name.upper().startswith("TOR")
        else "array = model(torch.ones(1)).numpy()"
    )
    code = (
        "import torch\nmodel = torch.nn.Linear(1, 1)\noptimizer = torch.optim.SGD(model.parameters(), lr=1)\n"
    )
    selected = ("check", "--isolated", "--select=TA210,TA506", "--format=json")
    for comment, suppressed in (("", False), (f"  # noqa: {name}", True)):
        (tmp_path / "train.py").write_text(f"{code}{line}{comment}\n")
        [finding] = json.loads(ta_lint(tmp_path, *selected).stdout)
        assert (finding["suppression"] is not None) is suppressed


def test_a_comment_of_another_linter_is_never_called_unused(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import torch  # noqa: TOR102, W5517\n")
    assert json.loads(ta_lint(tmp_path, "check", "--isolated", "--format=json").stdout) == []


def test_a_baseline_knows_a_finding_that_was_selected_by_another_id(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import torch\n\ntorch.optim.SGD([]).zero_grad(set_to_none=False)\n")
    selected = ("check", "--isolated", "--fail-level=note", "--baseline=known.json", "--select")
    assert ta_lint(tmp_path, *selected, "TOR402", "--update-baseline").returncode == 0
    assert ta_lint(tmp_path, *selected, "TA210").returncode == 0


@pytest.mark.parametrize(("command", "shown"), re.findall(r"```console\n\$ (.+)\n((?:.*\n)*?)```", MIGRATION))
def test_what_the_guide_for_users_of_torchfix_shows_is_what_its_commands_print(
    command: str, shown: str, tmp_path: Path
) -> None:
    [example] = re.findall(r"```python\n# train\.py\n((?:.*\n)*?)```", MIGRATION)
    (tmp_path / "train.py").write_text(example)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    ran = subprocess.run(
        command.split(), cwd=tmp_path, env={**os.environ, "PATH": path}, capture_output=True, text=True
    )
    assert ran.stdout == shown


def test_the_settings_in_the_guide_are_settings(tmp_path: Path) -> None:
    [table] = re.findall(r"```toml\n((?:.*\n)*?)```", MIGRATION)
    (tmp_path / "pyproject.toml").write_text(table)
    rules = {*settings(tmp_path)["select"]}  # type: ignore[misc]
    assert not {*OURS["TOR203"]} & rules
