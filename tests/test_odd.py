"""Odd training scripts run watched as they run plainly: each in one of the modes; `python tests/odd_runs.py` runs them in all."""

import odd_runs
import pytest
from odd_runs import MODES, Script

SCRIPTS = odd_runs.scripts()


def share() -> list[object]:
    """Each script in a mode, in turn; where it is known to differ, in one in which it does."""
    chosen: list[object] = []
    for number, script in enumerate(SCRIPTS):
        modes = script.modes or MODES
        mode = modes[number % len(modes)]
        defect = script.defect_in(mode)
        marks = [pytest.mark.xfail(reason=defect, strict=script.always)] if defect else []
        chosen.append(pytest.param(script, mode, marks=marks, id=f"{script.name}-{mode}"))
    return chosen


@pytest.mark.parametrize(("script", "mode"), share())
def test_a_watched_training_cannot_be_told_from_a_plain_one(script: Script, mode: str) -> None:
    assert odd_runs.cell(script, mode) == []


def test_what_is_compared_can_differ() -> None:
    """The exit status, the output and what the tool says of itself."""
    plain = odd_runs.Told(0, "digest 1\\n", "")
    assert odd_runs.differences(plain, plain) == []
    for other in (
        odd_runs.Told(1, "digest 1\\n", ""),
        odd_runs.Told(0, "digest 2\\n", ""),
        odd_runs.Told(0, "digest 1\\n", "warning"),
        odd_runs.Told(0, "digest 1\\n", "", ("TA000",)),
    ):
        assert len(odd_runs.differences(plain, other)) == 1


def test_there_are_many_scripts_and_each_says_what_it_is_about() -> None:
    assert len(SCRIPTS) >= 80
    for script in SCRIPTS:
        text = (odd_runs.FOLDER / f"{script.name}.py").read_text()
        assert text.startswith("#"), script.name
        assert len(text.splitlines()) <= 64, script.name
