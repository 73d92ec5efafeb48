"""Settings stand in `ta-lint.toml` as well as in `pyproject.toml`: which of them counts, and what the schema says of both."""

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from test_cli import BUGGY, Command, project, settings, ta_lint

from ta_lint.core.settings import RawConfig

__all__ = ["project", "ta_lint"]  # fixtures

ROOT = Path(__file__).parents[1]
SCHEMA = ROOT / "ta-lint.schema.json"


def own_settings(folder: Path, text: str, name: str = "ta-lint.toml") -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)


@pytest.fixture(autouse=True)
def _buggy(project: Path) -> None:
    (project / "src").mkdir()
    (project / "src" / "train.py").write_text(BUGGY)


@pytest.mark.parametrize("name", ["ta-lint.toml", ".ta-lint.toml"])
def test_a_file_of_its_own_holds_the_keys_at_its_top(project: Path, ta_lint: Command, name: str) -> None:
    own_settings(project, "select = ['TA700']\n[per-file-ignores]\n'src/*' = ['TA4']\n", name)
    assert ta_lint.check() == []
    assert ta_lint("check", "--show-settings") == 0
    assert ta_lint.out.startswith(f"# {project / name}\n")
    own_settings(project, "select = ['TA401']\n", name)
    assert ta_lint.check() == ["src/train.py:2 TA401"]
    assert ta_lint.err == ""


def test_in_one_folder_the_hidden_file_goes_first_and_pyproject_last(project: Path, ta_lint: Command) -> None:
    settings(project, "ignore = ['TA401']")
    own_settings(project, "select = ['TA401']\n")
    assert ta_lint.check() == ["src/train.py:2 TA401"]
    assert ta_lint.err == (
        f"ta-lint: warning: {project / 'pyproject.toml'}: [tool.ta] is not read, because this folder "
        f"takes its settings from {project / 'ta-lint.toml'}\n"
    )
    own_settings(project, "ignore = ['TA401']\n", ".ta-lint.toml")
    assert ta_lint.check() == []
    assert f"{project / 'ta-lint.toml'} is not read" in ta_lint.err


def test_the_nearest_file_wins_whatever_its_name(project: Path, ta_lint: Command) -> None:
    own_settings(project, "ignore = ['TA401']\n")
    assert ta_lint.check() == []
    settings(project / "src", "")
    assert ta_lint.check() == ["src/train.py:2 TA401"]
    own_settings(project / "src" / "old", "ignore = ['TA401']\n", ".ta-lint.toml")
    (project / "src" / "old" / "train.py").write_text(BUGGY)
    assert ta_lint.check() == ["src/train.py:2 TA401"]
    assert ta_lint.err == ""


def test_the_dependencies_beside_it_still_set_the_target(project: Path, ta_lint: Command) -> None:
    own_settings(project, "select = ['TA401']\n")
    (project / "pyproject.toml").write_text("[project]\ndependencies = ['torch>=2.4']\n")
    ta_lint("check", "--show-settings")
    assert 'target-torch = "2.4"' in ta_lint.out


def test_a_table_as_in_pyproject_is_understood_where_nothing_else_stands(
    project: Path, ta_lint: Command
) -> None:
    own_settings(project, "[tool.ta]\nignore = ['TA401']\n")
    assert ta_lint.check() == []
    own_settings(project, "select = ['ALL']\n[tool.ta]\nignore = ['TA401']\n")
    assert ta_lint("check") == 2
    assert ta_lint.err == (
        f"ta-lint: error: {project / 'ta-lint.toml'} has no key 'tool'; its keys stand at the top, in no table\n"
    )


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("selct = []", " has no key 'selct'; did you mean select?"),
        ("[ta]\nselect = []", " has no key 'ta'; its keys stand at the top, in no table"),
        ("select = 3", ": select: expected `array`, got `int`"),
        ("fail-level = 'err'", ": fail-level: invalid enum value 'err'; did you mean error?"),
        ("ignore = ['TA999']", ": no rule, prefix, tag or alias is called 'TA999'"),
        ("baseline = '../x/known.json'", ": baseline: '../x/known.json' is outside the project"),
        ("target-torch = 'new'", ": target-torch: 'new' is not a version such as 2.6"),
    ],
)
def test_a_mistake_is_told_with_its_file_and_key(
    project: Path, ta_lint: Command, text: str, told: str
) -> None:
    own_settings(project, text)
    assert ta_lint("check") == 2
    assert ta_lint.err.startswith(f"ta-lint: error: {project / 'ta-lint.toml'}{told}")


def test_a_project_without_git_begins_where_its_settings_stand(
    project: Path, ta_lint: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / ".git").rmdir()
    own_settings(project, "select = ['TA401']\n")
    monkeypatch.chdir(project / "src")
    ta_lint("check", "--format=json")
    assert [item["path"] for item in json.loads(ta_lint.out)] == ["src/train.py"]


# -- the schema ---------------------------------------------------------------------------------------------------


def accepted(path: Path) -> bool:
    command = [sys.executable, "-m", "check_jsonschema", "--schemafile", str(SCHEMA), str(path)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60).returncode == 0


def test_the_schema_is_made_of_the_settings_as_they_are() -> None:
    command = [sys.executable, "docs/make_schema.py", "--check"]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0, ran.stderr


def test_the_schema_describes_every_key() -> None:
    keys = json.loads(SCHEMA.read_text())["properties"]
    assert list(keys) == [name.replace("_", "-") for name in RawConfig._fields]
    assert all(key["description"].endswith(".") for key in keys.values())
    assert keys["fail-level"]["enum"] == ["note", "warning", "error"]


def test_the_schema_accepts_our_own_settings_and_those_that_are_printed(
    project: Path, ta_lint: Command
) -> None:
    ta_lint("check", "--show-settings")
    for text in ((ROOT / "pyproject.toml").read_text(), ta_lint.out):
        path = project / "settings.json"
        path.write_text(json.dumps(tomllib.loads(text)["tool"]["ta"]))
        assert accepted(path)


@pytest.mark.parametrize("wrong", ["selct = []", "select = 3", "fail-level = 'err'", "show-notes = 'yes'"])
def test_the_schema_refuses_what_the_linter_refuses(project: Path, ta_lint: Command, wrong: str) -> None:
    own_settings(project, wrong)
    assert ta_lint("check") == 2
    assert not accepted(project / "ta-lint.toml")
