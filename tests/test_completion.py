"""`--print-completion`: what a shell then completes, asked of a real bash; and that nobody else pays for it."""

import subprocess
import sys
from pathlib import Path

import pytest

from ta_lint import cli
from ta_lint.core.arguments import SHELLS

ROOT = Path(__file__).parents[1]

# what bash does when somebody presses Tab at the end of a line
_TAB = """
source "$0"
COMP_WORDS=($1) COMP_LINE=$1 COMP_POINT=${#1}
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
function=$(complete -p "${COMP_WORDS[0]}" | sed 's/.*-F \\([^ ]*\\).*/\\1/')
"$function"
printf '%s\\n' "${COMPREPLY[@]}"
"""


def printed(module: str, shell: str) -> str:
    command = [sys.executable, "-m", module, "--print-completion", shell]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert (ran.returncode, ran.stderr) == (0, "")
    return ran.stdout


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("completion")
    paths = {"ta-lint": folder / "ta-lint", "ta-runtime": folder / "ta-runtime"}
    for name, path in paths.items():
        path.write_text(printed(name.replace("-", "_"), "bash"))
    return paths


@pytest.mark.parametrize(
    ("line", "completed"),
    [
        ("ta-lint che", "check"),
        ("ta-lint check --add-n", "--add-noqa"),
        ("ta-lint check --format j", "json junit"),
        ("ta-lint check --fail-level w", "warning"),
        ("ta-lint check --select TA40", "TA400 TA401 TA402 TA403 TA404 TA405 TA406 TA407 TA408 TA409"),
        ("ta-lint rule TA60", "TA600 TA601 TA602 TA603 TA604 TA605 TA606 TA607 TA608 TA609"),
        ("ta-lint check --config pyproj", "pyproject.toml"),
        ("ta-lint check README", "README.md"),
        ("ta-runtime run --rec", "--record"),
    ],
)
def test_a_shell_completes(scripts: dict[str, Path], line: str, completed: str) -> None:
    command = ["bash", "-c", _TAB, str(scripts[line.split()[0]]), line]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert sorted(ran.stdout.split()) == completed.split(), ran.stderr


@pytest.mark.parametrize("shell", SHELLS)
def test_every_shell_gets_a_script_with_all_commands(shell: str) -> None:
    script = printed("ta_lint", shell)
    assert all(command in script for command in cli._COMMANDS)
    assert "add-noqa" in script


def test_another_shell_is_refused_and_a_missing_shtab_asked_for(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for words, told in {
        "bsh": "; did you mean bash?",
        "bash": "--print-completion needs shtab: pip install 'ta-lint[completion]'",
    }.items():
        monkeypatch.setitem(sys.modules, "shtab", None)
        with pytest.raises(SystemExit) as ended:
            cli.main(["--print-completion", words])
        assert ended.value.code == 2
        assert told in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [
        ("--help",),
        ("check", "--help"),
        ("check", "examples/regression.py", "--no-cache", "-q", "--output=/dev/null"),
    ],
)
def test_nothing_else_loads_what_makes_it(words: tuple[str, ...]) -> None:
    """Nor what suggests words, which few need."""
    code = (
        "import sys, atexit\nfrom ta_lint.cli import main\n"
        "atexit.register(lambda: print(*{'shtab', 'difflib', 'torch'} & set(sys.modules), file=sys.stderr))\n"
        f"main({list(words)})"
    )
    ran = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0
    assert ran.stderr == "\n"
