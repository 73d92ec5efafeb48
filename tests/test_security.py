"""What SECURITY.md promises and no other test holds: foreign code is never run, and every test that the page names exists."""

import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BUGGY = "import torch\nstate = torch.load('weights.pt', weights_only=False)\n"

_LOADERS = "pickle marshal dill cloudpickle joblib shelve".split()
RUNS_CODE = {
    *("eval", "exec", "compile", "__import__", "subprocess.run", "subprocess.Popen", "os.system", "os.popen"),
    *(
        "torch.load",
        "torch.hub.load",
        "numpy.load",
        "np.load",
        "yaml.load",
        "yaml.unsafe_load",
        "yaml.full_load",
    ),
    *(f"{module}.{name}" for module in _LOADERS for name in ("load", "loads", "open", "Unpickler")),
}
HARMLESS = {
    ("ta_lint/core/source.py", "compile"): "for syntax errors; what it makes is not run",
    ("ta_lint/syntax/convert.py", "exec"): "of numbers alone",
    ("ta_lint/syntax/tree.py", "eval"): "of the names of libcst's fields",
    ("ta_runtime/monitor/recognition.py", "exec"): "of lines of its own",
    ("ta_runtime/probes/places.py", "compile"): "a call, written here",
    ("ta_runtime/probes/places.py", "eval"): "a call, written here",
    ("ta_runtime/commands/program.py", "compile"): "the script that the user has it run",
    ("ta_runtime/commands/program.py", "exec"): "the script that the user has it run",
    (
        "ta_runtime/audit/description.py",
        "subprocess.run",
    ): "git, asked for the commit, with its hooks for files off",
    ("ta_runtime/preflight/forking.py", "pickle.loads"): "what a copy of the process answers through a pipe",
    ("ta_runtime/probes/patching.py", "compile"): "a text of our own, with numbers alone put in",
    ("ta_runtime/api.py", "exec"): "a text of our own",
    ("ta_runtime/startup/sitecustomize.py", "compile"): "the file of ours beside it",
    ("ta_runtime/startup/sitecustomize.py", "exec"): "the file of ours beside it",
    ("ta_runtime/ranks.py", "pickle.loads"): "what the other ranks of this job show",
    (
        "ta_runtime/audit/children.py",
        "pickle.loads",
    ): "what its own processes leave in a folder for their owner alone",
    (
        "ta_runtime/startup/__init__.py",
        "pickle.loads",
    ): "what the process that started this one says, in that folder",
}


def calls(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call):
            yield ast.unparse(node.func)


def test_nothing_that_reads_files_can_run_what_they_hold() -> None:
    found = {
        (path.relative_to(ROOT).as_posix(), name)
        for package in ("ta_lint", "ta_runtime")
        for path in (ROOT / package).rglob("*.py")
        for name in calls(path)
        if name in RUNS_CODE
    }
    assert found == HARMLESS.keys()


def test_no_module_of_a_linted_repository_is_imported(tmp_path: Path) -> None:
    """Neither in the command nor in its workers, whatever the repository calls its files."""
    for name in (
        "libcst",
        "msgspec",
        "rich",
        "attrs",
        "sarif_om",
        "pyflakes",
        "torch",
        "tomllib",
        "sitecustomize",
        "json",
    ):
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'run')!r}, 'w')\n")
    for number in range(20):
        (tmp_path / f"train_{number}.py").write_text(f"{BUGGY}# {'x' * 20_000}\n")
    (tmp_path / "pyproject.toml").write_text("[tool.ta]\nselect = ['TA700']\n")
    command = [Path(sys.executable).with_name("ta-lint"), "check", "--jobs=2", "--format=sarif"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)  # type: ignore[arg-type]
    assert len(json.loads(ran.stdout)["runs"][0]["results"]) == 20
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    "settings",
    [
        r'fail-level = "\u001b[2J\n::set-output name=a::b"',
        r'baseline = "\u001b[2J\n::error::mine"',
        r'"\u001b[2J\n::error::mine" = 1',
        r'select = ["\u001b[2J\n::error::mine"]',
        r'target-torch = "\u001b[2J\n::error::mine"',
        r'exclude = ["[\u001b[2J\n::error::mine"]',
    ],
)
def test_settings_can_command_neither_a_terminal_nor_a_runner(tmp_path: Path, settings: str) -> None:
    (tmp_path / "pyproject.toml").write_text(f"[tool.ta]\n{settings}\n")
    (tmp_path / "train.py").write_text(BUGGY)
    command = [sys.executable, "-m", "ta_lint", "check", "--no-cache"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert (ran.returncode, ran.stdout) == (2, "")
    (line,) = ran.stderr.splitlines()
    assert line.startswith("ta-lint: error: ")
    assert line.isprintable()


def test_the_page_names_tests_that_there_are() -> None:
    named = re.findall(r"`(tests/\w+\.py)(?:::(\w+))?`", (ROOT / "SECURITY.md").read_text(encoding="utf-8"))
    assert len(named) > 15
    for path, function in named:
        text = (ROOT / path).read_text(encoding="utf-8")
        assert not function or f"def {function}(" in text, (path, function)
