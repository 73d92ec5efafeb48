"""A library that is not installed is asked for by the extra of the command that runs, so that nobody is asked twice."""

import re
from functools import partial
from pathlib import Path

import commands
import pytest
from commands import Ran, at_once

LIBRARIES = ("torch", "pyarrow", "duckdb", "plotly")
COMMANDS = {
    "run": (["run", "train.py"], "runtime", {"torch"}),
    "run --record": (["run", "--record", "run", "train.py"], "record", {"torch", "pyarrow"}),
    "audit": (["audit", "models:Net", "--phase", "static"], "runtime", {"torch"}),
    "diff": (["diff", "none", "none"], "record", {"pyarrow"}),
    "report": (["report", "none"], "report", {"plotly", "pyarrow"}),
    "collect": (["collect", "-o", "trace", "train.py"], "invariants", {"torch", "pyarrow"}),
    "infer": (["infer", "none"], "invariants", {"pyarrow"}),
    "check": (["check", "none"], "invariants", {"torch", "pyarrow"}),
}
"""Words of each command, its extra in `pyproject.toml`, and which of the libraries it cannot do without on these words."""


def without(library: str, folder: Path, words: list[str]) -> Ran:
    code = f"import sys; sys.modules[{library!r}] = None; from ta_runtime.cli import main; sys.exit(main({words!r}))"
    return commands.warm(folder, "-c", code)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_missing_library_is_asked_for_by_the_extra_of_the_command(command: str, tmp_path: Path) -> None:
    """N5: `collect`, `infer` and `check` asked for another extra than theirs, and after it for the next."""
    (tmp_path / "train.py").write_text("")
    words, extra, needed = COMMANDS[command]
    asked = {}
    libraries = [library for library in LIBRARIES if library in needed or library not in ("torch", "pyarrow")]
    runs = [partial(without, library, tmp_path, words) for library in libraries]
    for library, ran in zip(libraries, at_once(runs), strict=True):
        if found := re.search(
            r"there is no (\w+); install it by `pip install 'ta-lint\[(\w+)\]'`", ran.stderr
        ):
            assert ran.returncode == 2
            assert len(ran.stderr.splitlines()) == 1
            asked[library] = found.groups()
    assert asked == {library: (library, extra) for library in needed}


def test_what_only_the_end_of_a_command_needs_is_asked_for_by_its_extra(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("")
    assert commands.ta_runtime(tmp_path, "collect", "-o", "trace", "train.py").returncode == 0
    ran = without("duckdb", tmp_path, ["infer", "trace"])
    assert ran.returncode == 2
    assert "there is no duckdb; install it by `pip install 'ta-lint[invariants]'`" in ran.stderr
