"""`ta-runtime run --lint` and `enable(lint=True)`: the script and what it imports are linted, run, and judged."""

import json
import re
from pathlib import Path

import commands
import pytest
from sarif_validator import unexplained, validate

SCRIPT = """\
import shutil

import torch

import helpers
from package.inner import dead

torch.save({"weight": torch.zeros(2, 4), "bias": torch.zeros(2)}, "start.pt")
shutil.copy("start.pt", "given.pt")
model = torch.nn.Linear(4, 2)
model.load_state_dict(torch.load("given.pt", weights_only=False))
optimizer = helpers.build(model)
for _ in range(4):
    loss = model(torch.randn(8, 4)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
model.load_state_dict(helpers.read(), strict=True)
"""
HELPERS = """\
import torch


def build(model):
    return torch.optim.Adam(model.parameters(), weight_decay=1e-2)


def read():
    return torch.load("start.pt", weights_only=False)
"""
DEAD = """\
import torch


def dead(model):
    return torch.optim.Adam(model.parameters(), weight_decay=1e-2)
"""
EXPECTED = {
    ("TA700", "train.py", 11): "confirmed",
    ("TA401", "helpers.py", 5): "confirmed",
    ("TA700", "helpers.py", 9): "refuted",
    ("TA401", "package/inner.py", 5): "unobserved",
}


def written(folder: Path) -> Path:
    """A small project: a script, what it imports, and a module that nobody does."""
    (folder / "pyproject.toml").write_text("[project]\nname = 'project'\nversion = '1'\n")
    (folder / "train.py").write_text(SCRIPT)
    (folder / "helpers.py").write_text(HELPERS)
    (folder / "package").mkdir()
    (folder / "package" / "__init__.py").write_text("")
    (folder / "package" / "inner.py").write_text(DEAD)
    (folder / "unrelated.py").write_text(DEAD)
    return folder


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return written(tmp_path)


@pytest.fixture(scope="module")
def judged_project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("judged"))


@pytest.fixture(scope="module")
def judged(judged_project: Path) -> commands.Ran:
    """The project's script, linted and run."""
    words = ("run", "--lint", "--output", "both.sarif", "train.py")
    return commands.ta_runtime(judged_project, *words)


@pytest.fixture(scope="module")
def log(judged: commands.Ran, judged_project: Path) -> str:
    assert judged.returncode == 0, judged.stderr
    return (judged_project / "both.sarif").read_text()


def of_log(text: str) -> dict[tuple[str, str, int], str]:
    found = {}
    for result in json.loads(text)["runs"][0]["results"]:
        place = result["locations"][0]["physicalLocation"]
        key = (result["ruleId"], place["artifactLocation"]["uri"], place["region"]["startLine"])
        if key[0] in ("TA700", "TA401"):
            found[key] = result["properties"]["verdict"]
    return found


def verdicts(text: str) -> dict[tuple[str, str, int], str]:
    return {
        (item["rule"], item["path"], item["line"]): item["verdict"]
        for item in json.loads(text)
        if item["rule"] in ("TA700", "TA401")
    }


def test_a_script_and_the_modules_of_the_project_that_it_imports_are_linted_and_judged(log: str) -> None:
    assert of_log(log) == EXPECTED


def test_the_run_ends_with_one_table_of_rule_line_verdict_and_evidence(judged: commands.Ran) -> None:
    assert "linted 4 files: 4 suspicions" in judged.stderr
    heading = next(line for line in judged.stderr.splitlines() if line.startswith("rule "))
    assert heading.split() == ["rule", "line", "verdict", "evidence"]
    for (rule, path, line), verdict in EXPECTED.items():
        assert re.search(rf"{rule}\s+{path}:{line}\s+{verdict}\s+\S", judged.stderr), (rule, path)
    assert "weights_only=True = loads this file as well" in re.sub(r"\s+", " ", judged.stderr)
    assert "4 suspicions of the linter: 2 confirmed, 1 refuted, 1 unobserved" in judged.stderr


def test_the_log_is_valid_and_takes_the_place_of_the_linters(log: str, tmp_path: Path) -> None:
    assert not unexplained(validate(log, tmp_path))
    [run] = json.loads(log)["runs"]
    assert run["automationDetails"]["id"] == "ta-lint/"
    refuted = [result for result in run["results"] if result["properties"].get("verdict") == "refuted"]
    assert [mark["kind"] for result in refuted for mark in result["suppressions"]] == ["external"]


def test_a_module_is_run_with_its_package(project: Path) -> None:
    (project / "package" / "train.py").write_text(SCRIPT)
    words = ("-m", "ta_runtime", "run", "--lint", "--format", "json", "-m", "package.train")
    found = verdicts(commands.warm(project, *words).stdout)
    assert found["TA700", "package/train.py", 11] == "confirmed"
    assert found["TA700", "helpers.py", 9] == "refuted"


def test_enable_lints_as_well(project: Path) -> None:
    (project / "train.py").write_text(
        "import ta_runtime\nta_runtime.enable(lint=True, output='both.json')\n" + SCRIPT
    )
    ran = commands.warm(project, "train.py")
    assert ran.returncode == 0, ran.stderr
    moved = {(rule, path, line + 2 * (path == "train.py")): v for (rule, path, line), v in EXPECTED.items()}
    assert verdicts((project / "both.json").read_text()) == moved


def test_what_is_imported_by_a_name_made_in_the_run_is_linted_at_its_end(project: Path) -> None:
    (project / "hidden.py").write_text(
        "import torch\n\n\ndef late():\n    torch.load('x.pt', weights_only=False)\n"
    )
    (project / "train.py").write_text("import importlib\n\nimportlib.import_module('hid' + 'den')\n" + SCRIPT)
    ran = commands.ta_runtime(project, "run", "--lint", "--format", "json", "train.py")
    assert verdicts(ran.stdout)["TA700", "hidden.py", 5] == "unobserved"


def test_merging_the_logs_of_a_lint_and_of_a_run_gives_the_same_verdicts(project: Path) -> None:
    files = ("train.py", "helpers.py", "package/inner.py")
    commands.python(project, "-m", "ta_lint", "check", *files, "--output", "s.sarif", "--format", "sarif")
    commands.ta_runtime(project, "run", "-q", "--output", "r.sarif", "train.py")
    merged = commands.python(project, "-m", "ta_lint", "merge", "s.sarif", "r.sarif", "--format", "json")
    assert verdicts(merged.stdout) == EXPECTED


def test_a_script_that_raises_is_judged_up_to_there(project: Path) -> None:
    (project / "train.py").write_text(
        SCRIPT.replace("for _ in range(4):", "raise ValueError\nfor _ in range(4):")
    )
    ran = commands.ta_runtime(project, "run", "--lint", "--format", "json", "train.py")
    assert ran.returncode == 1
    found = verdicts(ran.stdout)
    assert found["TA700", "train.py", 11] == "confirmed"
    assert found["TA700", "helpers.py", 9] == "unobserved"


def test_without_lint_no_linter_is_loaded(project: Path) -> None:
    (project / "train.py").write_text(SCRIPT + "import sys\nassert 'libcst' not in sys.modules\n")
    ran = commands.ta_runtime(project, "run", "train.py")
    assert ran.returncode == 0, ran.stderr
