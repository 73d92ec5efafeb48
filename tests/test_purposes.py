"""Words of `names.toml` that say what is meant: whole words of names alone."""

import pytest

from ta_lint.core.purposes import is_meant


@pytest.mark.parametrize(
    ("purpose", "name", "meant"),
    [
        ("residual_gradient", "residual_gradient_loss", True),
        ("residual_gradient", "BairdUpdate", True),
        ("residual_gradient", "full_gradient_step", True),
        ("residual_gradient", "FullGradient", True),
        ("residual_gradient", "full_step", False),
        ("residual_gradient", "residuals", False),
        ("all_epochs", "self.total_loss", True),
        ("all_epochs", "overall", True),
        ("all_epochs", "recall", False),
        ("all_epochs", "allocated", False),
    ],
)
def test_a_purpose_is_told_by_whole_words(purpose: str, name: str, meant: bool) -> None:
    assert is_meant(purpose, name) is meant


def test_any_of_several_names_tells_it() -> None:
    assert is_meant("residual_gradient", "loss", "BairdResidual")
