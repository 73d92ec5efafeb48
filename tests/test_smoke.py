"""The smoke set, which runs on the oldest and newest Python and torch (`.github/workflows/ci.yml`), works on those of the tests."""

import pytest
import smoke


def test_it_has_fifty_trainings_that_need_no_framework() -> None:
    assert len(smoke.HEALTHY) + 1 == 50


def test_two_of_them_are_the_same_watched_and_plain(capsys: pytest.CaptureFixture[str]) -> None:
    assert smoke.main(["cnn", "lstm"]) == 0
    assert "2 trainings" in capsys.readouterr().out


def test_a_difference_is_told(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(smoke, "WEIGHTS", "\nimport sys\nprint('ta_runtime' in sys.modules)\n")
    assert smoke.main(["mlp"]) == 1
    assert "mlp: watched, it ends with 0 and other output:\nTrue" in capsys.readouterr().out
