"""Healthy programs that tempt a rule: the linter reports nothing about them.

Each file of `tests/healthy` is one idiom, as tutorials and training repositories write it; its docstring says what is
tempting about it. The programs are linted with the default rules, and are not run.
"""

from pathlib import Path

import pytest

from ta_lint.core.config import Configs, Options
from ta_lint.engine import lint_file
from ta_lint.file import File

FOLDER = Path(__file__).parent / "healthy"
PROGRAMS = sorted(FOLDER.glob("*.py"))


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.stem)
def test_a_healthy_program_has_no_findings(program: Path, tmp_path: Path) -> None:
    config = Configs(Options(), tmp_path).root_config  # no configuration file applies
    findings = lint_file(File(program, f"src/{program.name}", config))
    assert [f"{finding.rule} line {finding.site.line}: {finding.message}" for finding in findings] == []


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.stem)
def test_a_healthy_program_says_what_is_tempting_about_it(program: Path) -> None:
    assert program.read_text(encoding="utf-8").startswith('"""Tempting: ')
