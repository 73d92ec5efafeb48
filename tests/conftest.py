"""Fixtures that several test files share."""

from collections.abc import Callable
from pathlib import Path

import pytest
import sarif_validator


@pytest.fixture
def validate_sarif(tmp_path: Path) -> Callable[[str], list[str]]:
    """What Microsoft's validator says about the text of a SARIF log; see `sarif_validator.validate`."""
    return lambda sarif: sarif_validator.validate(sarif, tmp_path)
