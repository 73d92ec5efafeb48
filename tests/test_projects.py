"""Each section of the pages in `tests/projects` is a project of several files: the findings are those marked, and no other.

A block may name rules that are not on by default: `select=TA851,TA852`.
"""

from pathlib import Path

import pytest
from marked import Block, blocks

from ta_lint.core.config import Configs, Options
from ta_lint.engine import lint_file
from ta_lint.file import File

PAGES = sorted((Path(__file__).parent / "projects").glob("*.md"))
BLOCKS = [block for page in PAGES for block in blocks(page)]
PROJECTS = [
    [block for block in BLOCKS if (block.page, block.heading) == project]
    for project in dict.fromkeys((block.page, block.heading) for block in BLOCKS)
]


@pytest.mark.parametrize("files", PROJECTS, ids=lambda files: files[0].heading)
def test_a_project_gives_exactly_the_findings_it_marks(files: list[Block], tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("")
    for block in files:
        path = tmp_path / block.settings["path"]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(block.code)
    for block in files:
        asked = block.settings.get("select", "").split(",") if "select" in block.settings else []
        config = Configs(Options(extend_select=asked), tmp_path).root_config
        file = File(tmp_path / block.settings["path"], block.settings["path"], config)
        found = {(finding.site.line, finding.rule) for finding in lint_file(file) if finding.counts}
        assert found == block.expected("static"), block.settings["path"]
