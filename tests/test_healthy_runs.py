"""Small runs as they should be (`tests/runs/`): no default rule of the run has anything to say about them."""

from pathlib import Path

import pytest
from observed import observed

RUNS = sorted((Path(__file__).parent / "runs").glob("*.py"))


@pytest.mark.parametrize("every", [1, 10])
@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.stem)
def test_a_healthy_run_has_no_findings(run: Path, every: int, tmp_path: Path) -> None:
    code = run.read_text(encoding="utf-8") + "\nopen('finished', 'w').close()\n"
    findings = observed(code, tmp_path, path=run.name, every_n_steps=every)
    said = [
        f"{finding.rule} line {finding.site.line}: {finding.message} {finding.evidence}"
        for finding in findings
    ]
    assert said == []
    assert (tmp_path / "finished").exists()
