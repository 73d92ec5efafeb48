"""What is timed: ta-lint over a tree in several ways, and its peers."""

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

import torchfix
from corpus import Missing

from speed.timing import Command, environment
from speed.trees import TIMM, TRANSFORMERS, Edits

TIMM_COLD = "ta-lint, timm, cold, 1 process"
COLD = "ta-lint, transformers, cold, 1 process"
COLD_BY_TWO = "ta-lint, transformers, cold, 2 processes"
WARM = "ta-lint, transformers, warm"
CHANGED = "ta-lint, transformers, warm, one file changed"
HELP = "ta-lint --help"
TORCH_FREE = "ta-lint, a file without torch"

TIMM_PARSED = "libcst.parse_module, timm"
PARSED = "libcst.parse_module, transformers"
RUFF = "ruff, rules F, transformers"
IMPORT = 'python -c "import libcst"'
PASS = "python -c pass"
TORCHFIX = "TorchFix, timm, all cores"
TORCHFIX_ALONE = "TorchFix, timm, 1 process"

SHORT = {WARM, CHANGED, HELP, TORCH_FREE, RUFF, IMPORT, PASS}
"""Those that end within a second or two, and so are run more often."""

SLOW = {TORCHFIX, TORCHFIX_ALONE}
"""Those that take minutes."""

LAZY = ("libcst", "rich")
"""What nothing without torch has to pay for."""

_FOUND = (0, 1)  # a linter that found something ends with 1

_PARSE = """
import pathlib, sys
import libcst
for path in sorted(pathlib.Path(sys.argv[1]).rglob("*.py")):
    data = path.read_bytes()
    if b"torch" in data:
        libcst.parse_module(data)
"""


def commands(scratch: Path, edits: Edits, wanted: set[str]) -> list[Command]:
    """Those that are wanted, in the order in which a round runs them; the trees and caches are in `scratch`.

    Raises:
        Missing: ruff or TorchFix is not here.
    """
    (scratch / "plain.py").write_text("import json\n\nprint(json.dumps({}))\n", encoding="utf-8")
    cache = ("--cache-dir", "cache")
    ruff = ("ruff", "check", "--no-cache", "--isolated", "--select", "F", "--exit-zero", TRANSFORMERS)
    made: dict[str, Callable[[], tuple[str, ...]]] = {
        TIMM_COLD: lambda: check("--jobs", "1", "--cache-dir", "new", TIMM),
        TIMM_PARSED: lambda: (sys.executable, "-c", _PARSE, TIMM),
        TORCHFIX: lambda: torchfix.command(torchfix.environment(), Path(TIMM)),
        TORCHFIX_ALONE: lambda: torchfix.command(torchfix.environment(), Path(TIMM), jobs=1),
        COLD: lambda: check("--jobs", "1", "--cache-dir", "new", TRANSFORMERS),
        COLD_BY_TWO: lambda: check("--jobs", "2", "--cache-dir", "new", TRANSFORMERS),
        PARSED: lambda: (sys.executable, "-c", _PARSE, TRANSFORMERS),
        WARM: lambda: check(*cache, TRANSFORMERS),
        RUFF: lambda: ruff,
        CHANGED: lambda: check(*cache, TRANSFORMERS),
        IMPORT: lambda: (sys.executable, "-c", "import libcst"),
        HELP: lambda: (sys.executable, "-m", "ta_lint", "--help"),
        TORCH_FREE: lambda: check(*cache, "plain.py"),
        PASS: lambda: (sys.executable, "-c", "pass"),
    }
    before = {CHANGED: edits.edit} | dict.fromkeys(
        (TIMM_COLD, COLD, COLD_BY_TWO), partial(_forget, scratch / "new")
    )
    chosen = [
        Command(name, argv(), scratch, _FOUND, before.get(name))
        for name, argv in made.items()
        if name in wanted
    ]
    for command in chosen:
        if shutil.which(command.argv[0], path=environment()["PATH"]) is None:
            raise Missing(f"{command.argv[0]} is not installed: pip install -e .[dev]")
    return chosen


def check(*arguments: str) -> tuple[str, ...]:
    """`ta-lint check` of this checkout, with its default rules."""
    return (sys.executable, "-m", "ta_lint", "check", "--isolated", *arguments)


def uncached(folders: Iterable[Path], scratch: Path) -> Command:
    """ta-lint in one process, with nothing kept, over several folders."""
    return Command(
        "ta-lint, a sample", check("--no-cache", "--jobs", "1", *map(str, folders)), scratch, _FOUND
    )


def heavy_imports(command: Command) -> list[str]:
    """Those of `LAZY` that a Python command imports.

    Raises:
        Missing: it did not run to its end.
    """
    python, *arguments = command.argv
    done = subprocess.run(
        [python, "-X", "importtime", *arguments],
        check=False, cwd=command.folder, env=environment(), capture_output=True, text=True,
    )  # fmt: skip
    if done.returncode:
        raise Missing(f"{command.name}: exit status {done.returncode}")
    # Lines such as `import time:   120 |   340 |   libcst.parser`.
    imported = {line.rpartition("|")[2].strip().partition(".")[0] for line in done.stderr.splitlines()}
    return [name for name in LAZY if name in imported]


def _forget(cache: Path) -> None:
    shutil.rmtree(cache, ignore_errors=True)
