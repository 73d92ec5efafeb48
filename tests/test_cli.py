"""The command as a user meets it: settings, selection, suppression, baseline, output."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from sarif_validator import unexplained

from ta_lint.cli import main

ADAM = "torch.optim.Adam(torch.nn.Linear(2, 2).parameters(), weight_decay=0.1)"
BUGGY = f"import torch\noptimizer = {ADAM}\n"
LOAD = "state = torch.load('weights.pt', weights_only=False)\n"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty repository, and the working folder."""
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


class Command:
    """Runs `ta-lint` in this process and keeps what it printed."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *arguments: str) -> int:
        status = main(list(arguments))
        captured = self._capsys.readouterr()
        self.out, self.err = captured.out, captured.err
        return status

    def check(self, *arguments: str) -> list[str]:
        """`path:line rule` of each finding that counts."""
        self.status = self("check", "--format=concise", "--quiet", *arguments)
        lines = [line.split(" ") for line in self.out.splitlines()]
        return [f"{words[0].split(':')[0]}:{words[0].split(':')[1]} {words[1]}" for words in lines]


@pytest.fixture
def ta_lint(capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(capsys)


def settings(folder: Path, text: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "pyproject.toml").write_text(f"[tool.ta]\n{text}\n")


# -- which files ----------------------------------------------------------------------------------------------


def test_gitignore_and_default_excludes_are_respected(project: Path, ta_lint: Command) -> None:
    for name in (
        "train.py",
        "scratch/a.py",
        "kept/scratch.py",
        ".venv/lib/b.py",
        "pkg/out/c.py",
        "pkg/out/keep.py",
    ):
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(BUGGY)
    (project / ".gitignore").write_text("/scratch/\n")
    (project / "pkg" / ".gitignore").write_text("out/*\n!out/keep.py\n")
    assert ta_lint.check() == ["kept/scratch.py:2 TA401", "pkg/out/keep.py:2 TA401", "train.py:2 TA401"]
    settings(project, "respect-gitignore = false\nextend-exclude = ['pkg']")
    assert ta_lint.check() == ["kept/scratch.py:2 TA401", "scratch/a.py:2 TA401", "train.py:2 TA401"]


def test_what_is_named_is_linted_unless_forced(project: Path, ta_lint: Command) -> None:
    for name in ("old/train.py", "old/deep/model.py", ".venv/lib/torch_code.py"):
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(BUGGY)
    (project / ".gitignore").write_text("old/\n")
    settings(project, "extend-exclude = ['old']")
    assert ta_lint.check() == []
    assert ta_lint.check("old/train.py") == ["old/train.py:2 TA401"]
    assert ta_lint.check("old") == ["old/deep/model.py:2 TA401", "old/train.py:2 TA401"]
    assert ta_lint.check(".venv/lib") == [".venv/lib/torch_code.py:2 TA401"]
    assert ta_lint.check("--force-exclude", "old", "old/train.py", ".venv") == []


def test_a_file_named_twice_is_linted_once(project: Path, ta_lint: Command) -> None:
    (project / "train.py").write_text(BUGGY)
    assert ta_lint.check("train.py", ".", "./train.py") == ["train.py:2 TA401"]


def test_a_script_without_suffix_is_linted_when_named(project: Path, ta_lint: Command) -> None:
    (project / "train").write_text(BUGGY)
    assert ta_lint.check() == []
    assert ta_lint.check("train") == ["train:2 TA401"]


def test_findings_outside_the_project_have_absolute_paths_in_json(
    project: Path, ta_lint: Command, tmp_path_factory: pytest.TempPathFactory
) -> None:
    other = tmp_path_factory.mktemp("other") / "train.py"
    other.write_text(BUGGY)
    ta_lint("check", "--format=json", str(other))
    assert json.loads(ta_lint.out)[0]["path"] == other.as_posix()


# -- which rules ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "rules"),
    [
        ([], "TA401 TA700"),
        (["--select=TA401"], "TA401"),
        (["--select=TA4,TA7"], "TA401 TA700"),
        (["--select=adam-with-weight-decay"], "TA401"),
        (["--select=security"], "TA700"),
        (["--select=B614"], "TA700"),
        (["--select=ALL", "--ignore=TA4,TA8,TA9"], "TA700"),
        (["--select=TA4", "--ignore=TA401"], ""),
        (["--select=TA401", "--ignore=TA4"], "TA401"),
        (["--ignore=security"], "TA401"),
        (["--ignore=TA401,TA700"], ""),
        (["--ignore=TA401", "--ignore=TA700"], ""),
    ],
)
def test_the_more_exact_selector_wins(
    project: Path, ta_lint: Command, arguments: list[str], rules: str
) -> None:
    (project / "train.py").write_text(
        f"import torch\n\nmodel = torch.nn.Linear(2, 2)\noptimizer = {ADAM}\n{LOAD}"
    )
    assert [line.split()[1] for line in ta_lint.check(*arguments)] == rules.split()


def test_opt_in_rules_join_by_extend_select(project: Path, ta_lint: Command) -> None:
    loader = "import torch\nfrom data import dataset\n\nloader = torch.utils.data.DataLoader(dataset)\n"
    (project / "train.py").write_text(loader)
    assert ta_lint.check() == []
    assert ta_lint.check("--extend-select=TA204") == ["train.py:4 TA204"]
    assert ta_lint.check("--extend-select=TOR401") == ["train.py:4 TA204"]
    settings(project, "extend-select = ['TA204']")
    assert ta_lint.check() == ["train.py:4 TA204"]


def test_the_command_line_replaces_the_selection_of_the_settings(project: Path, ta_lint: Command) -> None:
    (project / "train.py").write_text(BUGGY)
    settings(project, "select = ['TA700']\nignore = ['TA401']")
    assert ta_lint.check() == []
    assert ta_lint.check("--select=TA401") == ["train.py:2 TA401"]
    assert ta_lint.check("--isolated", "--ignore=TA910") == ["train.py:2 TA401"]


def test_the_command_line_wins_over_the_settings(project: Path, ta_lint: Command) -> None:
    (project / "train.py").write_text(BUGGY)
    settings(project, "ignore = ['TA401']")
    assert ta_lint.check("--extend-select=TA4") == ["train.py:2 TA401"]
    settings(project, "select = ['TA401']")
    assert ta_lint.check("--ignore=TA4") == []


def test_patterns_of_a_named_configuration_are_relative_to_where_it_is_used(
    project: Path, ta_lint: Command
) -> None:
    (project / "legacy").mkdir()
    (project / "legacy" / "train.py").write_text(BUGGY)
    (project / "shared").mkdir()
    (project / "shared" / "ta.toml").write_text("[tool.ta.per-file-ignores]\n'legacy/**' = ['TA401']\n")
    assert ta_lint.check("--config=shared/ta.toml") == []


def test_each_folder_has_the_settings_nearest_to_it(project: Path, ta_lint: Command) -> None:
    for name in ("train.py", "sub/train.py", "sub/deep/train.py"):
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(BUGGY)
    settings(project, "ignore = ['TA910']")
    settings(project / "sub", "ignore = ['TA401', 'TA910']")
    assert ta_lint.check() == ["train.py:2 TA401"]
    (project / "one.toml").write_text("[tool.ta]\nselect = ['TA401']\n")
    assert len(ta_lint.check("--config=one.toml")) == 3


def test_the_nearest_project_sets_the_target_under_settings_from_above(
    project: Path, ta_lint: Command
) -> None:
    for name in ("old", "new"):
        (project / name).mkdir()
        (project / name / "train.py").write_text("import torch\n\nstate = torch.load('weights.pt')\n")
    (project / "old" / "pyproject.toml").write_text("[project]\nname = 'x'\ndependencies = ['torch>=2.3']\n")
    settings(project, "select = ['TA700']")
    assert ta_lint.check() == ["old/train.py:3 TA700"]
    settings(project, "select = ['TA700']\ntarget-torch = '2.7'")
    assert ta_lint.check() == []


@pytest.mark.parametrize(
    ("name", "text", "found"),
    [
        ("requirements.txt", "numpy\ntorch>=1.8,<2.1  # the oldest\n", True),
        ("requirements.txt", "torch==1.4.0\n", True),
        ("requirements.txt", "torch\ntorchvision==0.5\n# torch==1.4\n", False),
        ("requirements.txt", "torch>=2.6\n", False),
        ("setup.cfg", "[options]\ninstall_requires =\n    torch >= 1.10\n", True),
        ("setup.py", "setup(install_requires=['numpy', 'torch>=1.7'])\n", True),
        ("setup.py", "setup(install_requires=['numpy', 'torch'])\n", False),
    ],
)
def test_other_lists_of_dependencies_count_where_pyproject_has_none(
    project: Path, ta_lint: Command, name: str, text: str, found: bool
) -> None:
    (project / name).write_text(text)
    (project / "old.py").write_text("import torch\nweights = torch.load('a.pt')\n")
    assert ta_lint.check("--select=TA700", "old.py") == (["old.py:2 TA700"] if found else [])


def test_pyproject_goes_before_other_lists(project: Path, ta_lint: Command) -> None:
    (project / "pyproject.toml").write_text("[project]\nname = 'x'\ndependencies = ['torch>=2.6']\n")
    (project / "requirements.txt").write_text("torch==1.4\n")
    (project / "old.py").write_text("import torch\nweights = torch.load('a.pt')\n")
    assert ta_lint.check("--select=TA700", "old.py") == []


def test_poetry_dependencies_count_too(project: Path, ta_lint: Command) -> None:
    (project / "train.py").write_text("import torch\n\nstate = torch.load('weights.pt')\n")
    (project / "pyproject.toml").write_text("[tool.poetry.dependencies]\ntorch = '^2.1'\n")
    assert ta_lint.check("--select=TA700") == ["train.py:3 TA700"]


def test_per_file_ignores_suppress_and_are_told_in_sarif(project: Path, ta_lint: Command) -> None:
    (project / "legacy").mkdir()
    (project / "legacy" / "train.py").write_text(BUGGY)
    settings(project, "select = ['TA401']\n[tool.ta.per-file-ignores]\n'legacy/**' = ['TA4']")
    assert ta_lint.check() == []
    ta_lint("check", "--format=sarif")
    (result,) = json.loads(ta_lint.out)["runs"][0]["results"]
    assert result["suppressions"] == [{"kind": "external", "justification": "per-file-ignores: legacy/**"}]


@pytest.mark.parametrize(
    ("dependencies", "arguments", "found"),
    [
        (None, [], False),
        ('["torch>=2.6"]', [], False),
        ('["torch>=2.3,<3"]', [], True),
        ('["numpy", "torch~=2.4.1; python_version > \'3\'"]', [], True),
        ('["torch"]', [], False),
        ('["torch>=2.3"]', ["--target-torch=2.7"], False),
        (None, ["--target-torch=2.3"], True),
    ],
)
def test_the_target_is_the_oldest_torch_of_the_dependencies(
    project: Path, ta_lint: Command, dependencies: str | None, arguments: list[str], found: bool
) -> None:
    (project / "train.py").write_text("import torch\n\nstate = torch.load('weights.pt')\n")
    if dependencies is not None:
        (project / "pyproject.toml").write_text(f"[project]\nname = 'x'\ndependencies = {dependencies}\n")
    assert ta_lint.check("--select=TA700", *arguments) == (["train.py:3 TA700"] if found else [])


# -- suppression and baseline ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "comment",
    ["# noqa", "# noqa: TA401", "# noqa:TA401", "# NOQA: ta401", "# noqa: E501, TA401", "# noqa: TA4",
     "# noqa: adam-with-weight-decay", "# type: ignore # noqa: TA401 - the paper says L2"],
)  # fmt: skip
def test_a_comment_on_the_line_suppresses(project: Path, ta_lint: Command, comment: str) -> None:
    (project / "train.py").write_text(BUGGY.rstrip() + f"  {comment}\n")
    assert ta_lint.check("--select=TA401,TA002") == []


def test_a_comment_counts_on_the_first_and_last_line_of_a_statement(project: Path, ta_lint: Command) -> None:
    first = (
        "optimizer = torch.optim.Adam(  # noqa: TA401\n    model.parameters(),\n    weight_decay=0.1,\n)\n"
    )
    last = "optimizer = torch.optim.Adam(\n    model.parameters(),\n    weight_decay=0.1,\n)  # noqa: TA401\n"
    inside = (
        "optimizer = torch.optim.Adam(\n    model.parameters(),  # noqa: TA401\n    weight_decay=0.1,\n)\n"
    )
    (project / "train.py").write_text("import torch\n" + first + last + inside)
    assert ta_lint.check("--select=TA401") == ["train.py:10 TA401"]


def test_a_comment_for_another_rule_or_in_a_string_does_not_suppress(project: Path, ta_lint: Command) -> None:
    text = f"import torch\na = {ADAM}  # noqa: E501\nb = {ADAM}, '# noqa: TA401'\n"
    (project / "train.py").write_text(text)
    assert ta_lint.check("--select=TA401") == ["train.py:2 TA401", "train.py:3 TA401"]


@pytest.mark.parametrize(
    ("comment", "count"), [("# ta: noqa", 0), ("# ta: noqa: TA401", 0), ("# ta: noqa: TA700", 2)]
)
def test_a_file_is_suppressed_by_a_comment_alone_on_its_line(
    project: Path, ta_lint: Command, comment: str, count: int
) -> None:
    (project / "train.py").write_text(f"{comment}\nimport torch\na = {ADAM}\nb = {ADAM}\n")
    assert len(ta_lint.check("--select=TA401")) == count


def test_an_unused_suppression_is_a_note_that_fails_nothing_by_default(
    project: Path, ta_lint: Command
) -> None:
    (project / "train.py").write_text(
        "import torch  # noqa: TA401\nx = 1  # noqa: F401\ny = 2  # noqa: TA999\n"
    )
    assert ta_lint.check() == ["train.py:1 TA002", "train.py:3 TA002"]
    assert ta_lint.status == 0
    ta_lint.check("--fail-level=note")
    assert ta_lint.status == 1
    assert ta_lint.check("--ignore=TA401") == ["train.py:3 TA002"], "a rule that is off cannot be judged"


def test_suppressed_findings_stay_in_json_and_sarif(project: Path, ta_lint: Command) -> None:
    (project / "train.py").write_text(BUGGY.rstrip() + "  # noqa: TA401\n")
    assert ta_lint("check", "--format=json", "--select=TA401") == 0
    assert json.loads(ta_lint.out)[0]["suppression"] == {"in_source": True, "justification": "# noqa: TA401"}
    assert ta_lint("check", "--format=sarif", "--select=TA401") == 0
    (result,) = json.loads(ta_lint.out)["runs"][0]["results"]
    assert result["suppressions"] == [{"kind": "inSource", "justification": "# noqa: TA401"}]


def test_a_baseline_accepts_what_is_there_and_survives_edits(project: Path, ta_lint: Command) -> None:
    train = project / "train.py"
    train.write_text(f"import torch\n\n\ndef build(model):\n    return {ADAM}\n")
    options = ("--select=TA401", "--baseline=known.json")
    assert ta_lint("check", *options, "--update-baseline") == 0
    assert ta_lint.out == "Recorded 1 finding in known.json.\n"
    assert ta_lint.check(*options) == []
    moved = f"import torch\n\n# moved down, and formatted anew\n\n\ndef build(model):\n    return {ADAM}\n"
    train.write_text(moved.replace(".parameters(), ", ".parameters(),  # all\n        "))
    assert ta_lint.check(*options) == []
    train.write_text(train.read_text() + f"\n\ndef again(model):\n    return {ADAM}\n")
    assert ta_lint.check(*options) == ["train.py:12 TA401"]


def test_a_second_copy_of_an_accepted_statement_is_new(project: Path, ta_lint: Command) -> None:
    (project / "train.py").write_text(BUGGY)
    options = ("--select=TA401", "--baseline=known.json")
    ta_lint("check", *options, "--update-baseline")
    (project / "train.py").write_text(BUGGY + f"optimizer = {ADAM}\n")
    assert ta_lint.check(*options) == ["train.py:3 TA401"]


def test_stale_entries_are_told_and_dropped_by_an_update(project: Path, ta_lint: Command) -> None:
    for name in ("a.py", "b.py"):
        (project / name).write_text(BUGGY)
    settings(project, "select = ['TA401']\nbaseline = 'known.json'")
    ta_lint("check", "--update-baseline")
    (project / "a.py").write_text("import torch\n")
    assert ta_lint.check("b.py") == []
    assert ta_lint.err == "", "a run over b.py knows nothing of a.py"
    ta_lint("check")
    assert "1 entry of known.json matches nothing" in ta_lint.err
    ta_lint("check", "--update-baseline", "a.py")
    assert [entry["path"] for entry in json.loads((project / "known.json").read_text())["findings"]] == [
        "b.py"
    ]


def test_entries_of_a_deleted_file_are_stale_wherever_the_run_looks(project: Path, ta_lint: Command) -> None:
    for name in ("a.py", "b.py"):
        (project / name).write_text(BUGGY)
    settings(project, "select = ['TA401']\nbaseline = 'known.json'")
    ta_lint("check", "--update-baseline")
    (project / "a.py").unlink()
    ta_lint("check", "b.py")
    assert "1 entry of known.json matches nothing" in ta_lint.err


def test_the_settings_of_its_folder_say_whether_an_entry_is_stale(project: Path, ta_lint: Command) -> None:
    settings(project, "select = ['TA700']\nbaseline = 'known.json'")
    settings(project / "sub", "select = ['TA401']")
    (project / "sub" / "train.py").write_text(BUGGY)
    ta_lint("check", "--update-baseline")
    (project / "sub" / "train.py").write_text("import torch\n")
    ta_lint("check")
    assert "1 entry of known.json matches nothing" in ta_lint.err


def test_paths_and_fingerprints_do_not_depend_on_the_working_folder(
    project: Path, ta_lint: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "sub").mkdir()
    (project / "sub" / "train.py").write_text(BUGGY)
    ta_lint("check", "--format=json", "--select=TA401")
    from_root = ta_lint.out
    monkeypatch.chdir(project / "sub")
    ta_lint("check", "--format=json", "--select=TA401")
    assert ta_lint.out == from_root
    assert ta_lint.check("--select=TA401") == ["train.py:2 TA401"], (
        "text shows paths from where the user stands"
    )


# -- output ---------------------------------------------------------------------------------------------------


def test_exit_status_follows_the_fail_level(project: Path, ta_lint: Command) -> None:
    (project / "train.py").write_text(BUGGY)
    assert ta_lint("check", "--select=TA401") == 1
    assert ta_lint("check", "--select=TA401", "--exit-zero") == 0
    assert ta_lint("check", "--select=TA401", "--fail-level=error") == 0
    assert ta_lint("check", "--select=TA700") == 0
    settings(project, "select = ['TA401']\nfail-level = 'error'")
    assert ta_lint("check") == 0


UNUSED = "x = 1  # noqa: TA401\n"  # a note, TA002


def test_notes_are_counted_in_text_and_shown_when_asked_for(project: Path, ta_lint: Command) -> None:
    (project / "train.py").write_text(BUGGY + UNUSED)
    assert ta_lint("check", "--select=TA401,TA002") == 1
    assert "TA002" not in ta_lint.out
    assert ta_lint.out.splitlines()[-3:] == [
        "Found 1 warning and 1 note in 1 file.",
        "[*] 1 fixable with --fix (1 more with --unsafe-fixes)",
        "1 note hidden; --show-notes shows it",
    ]
    ta_lint("check", "--select=TA401,TA002", "--show-notes")
    assert ta_lint.out.index("TA401 warning") < ta_lint.out.index("TA002 [*] note")
    assert "hidden" not in ta_lint.out
    settings(project, "show-notes = true")
    ta_lint("check", "--select=TA401,TA002")
    assert "TA002" in ta_lint.out
    ta_lint("check", "--select=TA401,TA002", "--no-show-notes")
    assert "TA002" not in ta_lint.out


def test_notes_that_fail_a_run_are_shown(project: Path, ta_lint: Command) -> None:
    (project / "train.py").write_text(UNUSED)
    assert ta_lint("check", "--select=TA401,TA002") == 0
    assert ta_lint("check", "--select=TA401,TA002", "--fail-level=note") == 1
    assert "TA002" in ta_lint.out
    assert "hidden" not in ta_lint.out


@pytest.mark.parametrize("form", ["concise", "json", "sarif", "github"])
def test_other_formats_keep_every_finding(project: Path, ta_lint: Command, form: str) -> None:
    (project / "train.py").write_text("import torch\n" + f"optimizer = {ADAM}\n" * 3 + UNUSED)
    ta_lint("check", "--select=TA401,TA002")
    assert "= 3 x TA401 in train.py: 2, 3, 4\n" in ta_lint.out
    assert ta_lint.out.count("-->") == 1
    ta_lint("check", "--select=TA401,TA002", f"--format={form}", "--quiet")
    shown = ta_lint.out
    assert "TA002" in shown
    assert shown.count("scales the decay by") == 3
    assert "hidden" not in shown


def test_an_output_file_holds_the_report_and_standard_output_nothing(project: Path, ta_lint: Command) -> None:
    (project / "train.py").write_text(BUGGY)
    assert ta_lint("check", "--select=TA401", "--format=sarif", "--output=report.sarif") == 1
    assert ta_lint.out == ""
    assert json.loads((project / "report.sarif").read_text())["version"] == "2.1.0"


def test_the_same_tree_gives_the_same_bytes(project: Path, ta_lint: Command) -> None:
    for number in range(5):
        (project / f"train_{number}.py").write_text(BUGGY)
    ta_lint("check", "--format=sarif", "--select=TA401")
    first = ta_lint.out
    ta_lint("check", "--format=sarif", "--select=TA401")
    assert ta_lint.out == first


def test_the_sarif_of_a_run_is_valid(
    project: Path, ta_lint: Command, validate_sarif: Callable[[str], list[str]]
) -> None:
    (project / "a folder").mkdir()
    (project / "a folder" / "tränieren.py").write_text(BUGGY + LOAD)
    (project / "broken.py").write_text("import torch\nx = (\n")
    ta_lint("check", "--format=sarif", "--output=report.sarif", "--extend-select=ALL")
    assert unexplained(validate_sarif((project / "report.sarif").read_text())) == []


def test_statistics_count_each_rule(project: Path, ta_lint: Command) -> None:
    (project / "train.py").write_text(BUGGY + BUGGY + LOAD)
    assert ta_lint("check", "--statistics", "--select=TA401,TA700") == 1
    lines = [line.split() for line in ta_lint.out.splitlines()[:2]]
    assert [line[:2] for line in lines] == [["2", "TA401"], ["1", "TA700"]]
    assert ta_lint.out.splitlines()[2:] == [
        "Found 2 warnings and 1 note in 1 file.",
        "2 fixable with --fix --unsafe-fixes",
    ]


def test_statistics_for_machines(project: Path, ta_lint: Command) -> None:
    (project / "train.py").write_text(BUGGY + LOAD)
    assert ta_lint("check", "--statistics", "--select=TA401,TA700", "--unsafe-fixes", "--format=json") == 1
    counts = [(item["rule"], item["count"], item["fixable"]) for item in json.loads(ta_lint.out)]
    assert counts == [("TA401", 1, 1), ("TA700", 1, 0)]
    assert ta_lint("check", "--statistics", "--format=sarif") == 2
    assert "--statistics: not with --format sarif" in ta_lint.err


def test_show_settings_prints_what_holds_here(project: Path, ta_lint: Command) -> None:
    settings(project, "select = ['TA4']\ntarget-torch = '2.3'")
    assert ta_lint("check", "--show-settings") == 0
    assert str(project / "pyproject.toml") in ta_lint.out
    assert 'target-torch = "2.3"' in ta_lint.out
    assert '"TA401"' in ta_lint.out
    assert '"TA700"' not in ta_lint.out


def test_show_settings_prints_what_holds_for_a_path(project: Path, ta_lint: Command) -> None:
    """D27: it ignored the path, also one that does not exist."""
    (project / "sub").mkdir()
    (project / "sub" / "ta-lint.toml").write_text("select = ['TA7']\n")
    (project / "sub" / "a.py").touch()
    for path in ("sub", "sub/a.py"):
        assert ta_lint("check", "--show-settings", path) == 0
        assert str(project / "sub" / "ta-lint.toml") in ta_lint.out
        assert '"TA401"' not in ta_lint.out
    assert ta_lint("check", "--show-settings", "nowhere") == 2
    assert ta_lint.err == "ta-lint: error: nowhere: no such file or folder\n"
    assert ta_lint("check", "--show-settings", "sub", "train.py") == 2
    assert ta_lint.err.startswith("ta-lint: error: --show-settings: give one path")


def test_what_is_named_and_not_read_is_said(project: Path, ta_lint: Command) -> None:
    """D28: `All checks passed` for files that nobody looked at."""
    (project / "axolotl.yml").write_text("torch_dtype: bfloat16\n")
    (project / "ds.json").write_text('{"torch": 1}\n')
    assert ta_lint("check", "axolotl.yml", "ds.json") == 0
    assert ta_lint.err == (
        "ta-lint: warning: axolotl.yml: not read, as it is no Python file and no notebook\n"
        "ta-lint: warning: ds.json: not read, as it is no Python file and no notebook\n"
        "ta-lint: warning: no Python files to lint under the given paths\n"
    )
    assert ta_lint.out == "Nothing was checked.\n"
    (project / "script").write_text("x = 1\n")
    assert ta_lint("check", "script") == 0
    assert (ta_lint.err, ta_lint.out) == ("", "All checks passed.\n")


def test_a_pattern_that_matches_no_file_is_named(project: Path, ta_lint: Command) -> None:
    """It was ignored silently. A run over a part of the project cannot know."""
    settings(
        project,
        "select = ['TA401']\n[tool.ta.per-file-ignores]\n'trian.py' = ['TA401']\n'train.py' = ['TA700']",
    )
    (project / "train.py").write_text("x = 1\n")
    assert ta_lint("check") == 0
    assert ta_lint.err == (
        f"ta-lint: warning: {project / 'pyproject.toml'}: per-file-ignores: 'trian.py' matches no file\n"
    )
    assert ta_lint("check", "train.py") == 0
    assert ta_lint.err == ""


def test_an_error_names_a_path_as_it_was_given(project: Path, ta_lint: Command) -> None:
    for path in ("no/where.json", f"{project}/no/where.json"):
        assert ta_lint("check", f"--output={path}") == 2
        assert f"ta-lint: error: cannot write {path}: " in ta_lint.err


def test_settings_as_printed_can_be_copied(project: Path, ta_lint: Command) -> None:
    settings(
        project,
        "select = ['TA4']\ntarget-torch = '2.3'\nbaseline = 'known.json'\n"
        "[tool.ta.per-file-ignores]\n'tést/**' = ['TA401', 'loop']",
    )
    ta_lint("check", "--show-settings")
    first = ta_lint.out
    (project / "pyproject.toml").write_text(first)
    assert ta_lint("check", "--show-settings") == 0
    assert ta_lint.out == first
    ta_lint("check", "--show-settings", "--isolated")
    (project / "pyproject.toml").write_text(ta_lint.out)
    assert ta_lint("check", "--show-settings") == 0


def test_show_files_lists_what_would_be_linted(project: Path, ta_lint: Command) -> None:
    for name in ("src/a.py", "src/build.ipynb", "docs/conf.py", "readme.md"):
        (project / name).parent.mkdir(exist_ok=True)
        (project / name).write_text("x = (")
    settings(project, "exclude = ['docs']")
    assert ta_lint("check", "--show-files") == 0
    assert ta_lint.out.splitlines() == ["src/a.py", "src/build.ipynb"]
    assert ta_lint("check", "--show-files", "docs/conf.py", "src/a.py") == 0
    assert ta_lint.out.splitlines() == ["docs/conf.py", "src/a.py"]


def test_every_rule_is_explained_at_once(ta_lint: Command) -> None:
    assert ta_lint("rule", "--all") == 0
    titles = [line for line in ta_lint.out.splitlines() if line.startswith("# TA")]
    assert ta_lint("rule", "--all", "--output-format=json") == 0
    told = json.loads(ta_lint.out)
    assert [rule["explanation"].splitlines()[0] for rule in told] == titles
    ta_lint("rules", "--output-format=json")
    assert [{key: rule[key] for key in rule if key != "explanation"} for rule in told] == json.loads(
        ta_lint.out
    )
    ta_lint("rule", "B615", "--output-format=json")
    assert [rule["id"] for rule in json.loads(ta_lint.out)] == ["TA702", "TA711"]


@pytest.mark.parametrize("words", [("--format=json",), ("TA600", "--all")])
def test_one_rule_or_all_are_to_be_named(ta_lint: Command, words: tuple[str, ...]) -> None:
    assert ta_lint("rule", *words) == 2
    assert ta_lint.err == "ta-lint: error: rule: give the id or the name of one rule, or --all\n"


@pytest.mark.parametrize("name", ["TA600", "ta600", "missing-zero-grad"])
def test_a_rule_is_explained_by_its_page(ta_lint: Command, name: str) -> None:
    page = (Path(__file__).parents[1] / "rules" / "TA600-missing-zero-grad.md").read_text()
    assert ta_lint("rule", name) == 0
    assert ta_lint.out == page


def test_every_rule_that_another_tool_has_under_one_id_is_explained(ta_lint: Command) -> None:
    assert ta_lint("rule", "B615") == 0
    titles = [line for line in ta_lint.out.splitlines() if line.startswith("# TA")]
    assert titles == ["# TA702: unpinned-remote-code", "# TA711: unpinned-download"]


def test_an_unknown_rule_gets_a_suggestion(ta_lint: Command) -> None:
    assert ta_lint("rule", "missing-zerograd") == 2
    assert "did you mean missing-zero-grad" in ta_lint.err


def test_rules_are_listed_as_text_and_as_json(ta_lint: Command) -> None:
    ta_lint("rules", "--format=json")
    listed = json.loads(ta_lint.out)
    ta_lint("rules")
    assert [rule["id"] for rule in listed] == [line.split()[0] for line in ta_lint.out.splitlines()]
    assert {"TA000", "TA204", "TA600", "TA910"} <= {rule["id"] for rule in listed}


def test_colour_and_progress_only_on_a_terminal(project: Path) -> None:
    """A real pseudo-terminal, through util-linux's `script`."""
    slow = BUGGY + "x = [" + "(1, 2, 3), " * 2000 + "]\n"  # a bar is shown after a second
    for number in range(60):
        (project / f"train_{number}.py").write_text(slow)
    command = f"{sys.executable} -m ta_lint check --select=TA401 --no-cache --jobs=1"
    piped = subprocess.run(command.split(), capture_output=True, text=True)
    assert "\x1b" not in piped.stdout + piped.stderr
    assert piped.stderr == ""
    terminal = subprocess.run(["script", "-qec", command, "/dev/null"], capture_output=True, text=True)
    assert "\x1b[" in terminal.stdout
    assert "Linting" in terminal.stdout


@pytest.mark.parametrize(
    ("variables", "coloured"),
    [
        ("FORCE_COLOR=1", True),
        ("FORCE_COLOR=", False),
        ("FORCE_COLOR=1 TERM=dumb", True),
        ("FORCE_COLOR=1 NO_COLOR=1", False),
    ],
)
def test_colour_can_be_had_without_a_terminal(project: Path, variables: str, coloured: bool) -> None:
    """N7: the logs of most CI show it, and are none. What a program reads never has any."""
    (project / "train.py").write_text(BUGGY)
    command = f"{variables} {sys.executable} -m ta_lint check --select=TA401"
    said = lambda *words: (
        subprocess.run(" ".join([command, *words]), shell=True, capture_output=True, text=True).stdout
    )
    for words in ((), ("--format=concise",), ("--statistics",)):
        assert "TA401" in said(*words)
        assert ("\x1b[" in said(*words)) == coloured
    for words in (
        ("--format=json",),
        ("--format=sarif",),
        ("--format=github",),
        ("--diff", "--unsafe-fixes"),
    ):
        assert "\x1b" not in said(*words)
    said("--output=report.txt")
    assert "\x1b" not in (project / "report.txt").read_text()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("chek", "ta-lint: error: no command is called 'chek'; did you mean check?"),
        (
            "zzz",
            "no command is called 'zzz'; the commands are check, clean, explain, rule, merge, server, rules",
        ),
        ("train.py", "ta-lint: error: to lint it, write `ta-lint check train.py`"),
        ("src", "to lint it, write `ta-lint check src`"),
        (
            "check --selct TA401",
            "ta-lint check: error: unrecognized arguments: --selct; did you mean --select?",
        ),
        ("check --selct=TA401", "unrecognized arguments: --selct=TA401; did you mean --select?"),
        ("--versoin", "ta-lint: error: unrecognized arguments: --versoin; did you mean --version?"),
        (
            "--fix .",
            "unrecognized arguments: --fix; it is an option of `ta-lint check`",
        ),
        ("check --fail-level=warn", "); did you mean warning?"),
        ("check --format=jsno", "); did you mean json?"),
        (
            "rules --format=markdown",
            "invalid choice: 'markdown' (choose from ",
        ),
        ("clean --all", "ta-lint clean: error: unrecognized arguments: --all"),
    ],
)
def test_a_slip_of_the_pen_is_told_with_what_may_be_meant(
    project: Path, capsys: pytest.CaptureFixture[str], words: str, told: str
) -> None:
    """N19"""
    (project / "src").mkdir()
    with pytest.raises(SystemExit) as ended:
        main(words.split())
    assert ended.value.code == 2
    assert told in capsys.readouterr().err.splitlines()[-1]


@pytest.mark.parametrize("table", ["ta-lint", "ta_lint", "ta-runtime"])
def test_a_table_of_nearly_the_right_name_is_told(project: Path, ta_lint: Command, table: str) -> None:
    """N6: it was ignored without a word."""
    (project / "pyproject.toml").write_text(f"[tool.{table}]\nselect = ['TA401']\n")
    (project / "train.py").write_text(BUGGY)
    assert ta_lint("check", "--select=TA401") == 1
    path = project / "pyproject.toml"
    assert (
        ta_lint.err == f"ta-lint: warning: {path}: [tool.{table}] is not read; put settings into [tool.ta]\n"
    )
    ta_lint("check", "--isolated", "--select=TA401")
    assert ta_lint.err == ""


@pytest.mark.parametrize("name", ["ta_lint.toml", "ta.toml", "ta-runtime.toml"])
def test_a_file_of_nearly_the_right_name_is_told(project: Path, ta_lint: Command, name: str) -> None:
    """N6: but not one that stands anywhere, as it may be somebody else's."""
    (project / "src").mkdir()
    (project / "src" / "train.py").write_text(BUGGY)
    (project / "src" / name).touch()
    assert ta_lint("check", "--select=TA401", "src") == 1
    assert ta_lint.err == ""
    (project / name).write_text("ignore = ['TA401']\n")
    assert ta_lint("check", "--select=TA401") == 1
    assert ta_lint.err == (
        f"ta-lint: warning: {project / name} is not read; name it ta-lint.toml, or put its settings into "
        "[tool.ta] of pyproject.toml\n"
    )
    assert ta_lint("check", "--config", name) == 0
    assert ta_lint.err == ""


@pytest.mark.parametrize("key", ["baseline", "cache-dir"])
@pytest.mark.parametrize("place", ["../../outside/x", "/somewhere/x", "link/x"])
def test_settings_have_nothing_written_outside_of_their_project(
    project: Path, ta_lint: Command, key: str, place: str
) -> None:
    """A4: who wrote the project may be a stranger; the command line is the user's own."""
    settings(project / "sub", f'{key} = "{place}"')
    (project / "sub" / "link").symlink_to(project.parent)
    (project / "sub" / "train.py").write_text(BUGGY)
    assert ta_lint("check", "--select=TA401", "sub") == 2
    assert ta_lint.err == (
        f"ta-lint: error: {project / 'sub/pyproject.toml'}: [tool.ta] {key}: {place!r} is outside the project; "
        f"only the option --{key} may name such a place\n"
    )
    settings(project / "sub", f'{key} = "../x"')
    assert ta_lint("check", "--select=TA401", "sub") == 1


def test_a_fix_does_not_follow_a_link_out_of_the_project(
    project: Path, tmp_path_factory: pytest.TempPathFactory, ta_lint: Command
) -> None:
    """A4: it changed the file that a repository's link names, wherever that is."""
    outside = tmp_path_factory.mktemp("outside") / "theirs.py"
    fixable = (
        "import torch\n\n\ndef train(loader, model, criterion, optimizer):\n    total = 0\n    for x, y in loader:\n"
        "        loss = criterion(model(x), y)\n        optimizer.zero_grad()\n        loss.backward()\n"
        "        optimizer.step()\n        total += loss\n    return total\n"
    )
    for path in (outside, project / "ours.py"):
        path.write_text(fixable)
    (project / "link.py").symlink_to(outside)
    (project / "near.py").symlink_to("ours.py")
    assert ta_lint("check", "--select=TA206", "--fix", "--unsafe-fixes", "link.py") == 2
    assert ta_lint.err == (
        f"ta-lint: error: link.py is a link out of the project; name {outside} to fix that file\n"
    )
    assert outside.read_text() == fixable
    assert ta_lint("check", "--select=TA206", "--fix", "--unsafe-fixes", "near.py") == 0
    assert (project / "ours.py").read_text() != fixable
    assert ta_lint("check", "--select=TA206", "--fix", "--unsafe-fixes", str(outside)) == 0
    assert outside.read_text() == (project / "ours.py").read_text()


@pytest.mark.parametrize(
    ("variable", "coloured"), [("NO_COLOR=1", False), ("NO_COLOR=", True), ("TERM=dumb", False)]
)
def test_a_terminal_without_colour_is_respected(project: Path, variable: str, coloured: bool) -> None:
    (project / "train.py").write_text(BUGGY)
    command = f"TERM=xterm {variable} {sys.executable} -m ta_lint check --select=TA401"
    terminal = subprocess.run(["script", "-qec", command, "/dev/null"], capture_output=True, text=True)
    assert "TA401" in terminal.stdout
    assert ("\x1b[" in terminal.stdout) == coloured
