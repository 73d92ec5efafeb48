"""A run with a cache says what a run without one says, byte for byte, after any edit of a project."""

from pathlib import Path

import pytest
from edited_project import differences, differences_in_an_editor

EDITS = 150  # benchmarks/warm_and_cold.py makes 2,000


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_warm_run_says_what_a_cold_one_says_after_random_edits(tmp_path: Path, seed: int) -> None:
    """D1: renames and new files gave names another meaning, and what the cache remembered hid the findings."""
    found = [what for _, what, _, _ in differences(tmp_path / "project", seed, EDITS // 3)]
    assert found == []


@pytest.mark.parametrize("seed", [1, 2])
def test_an_editor_that_goes_on_shows_what_a_new_one_shows_after_random_edits(
    tmp_path: Path, seed: int
) -> None:
    """It keeps what it knows of a project while nothing changes on disk, and sees unsaved texts."""
    assert [*differences_in_an_editor(tmp_path / "project", seed, EDITS // 2)] == []
