"""A run with a cache says what a run without one says, byte for byte, after any edit of a project."""

from pathlib import Path

import pytest
from edited_project import differences

EDITS = 150  # benchmarks/warm_and_cold.py makes 2,000


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_warm_run_says_what_a_cold_one_says_after_random_edits(tmp_path: Path, seed: int) -> None:
    """D1: renames and new files gave names another meaning, and what the cache remembered hid the findings."""
    found = [what for _, what, _, _ in differences(tmp_path / "project", seed, EDITS // 3)]
    assert found == []
