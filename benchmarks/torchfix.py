"""The peer that has the same job: TorchFix, in a virtual environment of its own."""

import platform
import subprocess
import sys
from pathlib import Path

from corpus import FOLDER, Missing, run_pip

VERSION = "0.7.0"
REQUIREMENT = f"TorchFix=={VERSION}"
OFF_BY_DEFAULT = ("TOR3", "TOR4", "TOR9")  # on when selected, or with ALL


def environment() -> Path:
    """A virtual environment of its own, as TorchFix needs an older libcst than ta-lint may have.

    Raises:
        Missing: it cannot be made.
    """
    folder = FOLDER / ".torchfix-venv"
    mark = folder / "complete"
    wanted = f"{REQUIREMENT}, Python {platform.python_version()}"
    if not mark.is_file() or mark.read_text(encoding="utf-8") != wanted:
        print(f"installing {REQUIREMENT}", file=sys.stderr, flush=True)
        made = subprocess.run(
            [sys.executable, "-m", "venv", "--clear", str(folder)], check=False, capture_output=True
        )
        if made.returncode:
            raise Missing("python -m venv does not work here, and TorchFix needs it")
        run_pip("install", "--only-binary=libcst", REQUIREMENT, python=folder / "bin" / "python")
        mark.write_text(wanted, encoding="utf-8")
    return folder


def command(environment: Path, folder: Path, jobs: int | None = None) -> tuple[str, ...]:
    """All its rules over a folder, by default on all cores. It ends with 1 if it failed on some files."""
    limit = () if jobs is None else ("--jobs", str(jobs))
    return str(environment / "bin" / "torchfix"), "--select", "ALL", *limit, str(folder)
