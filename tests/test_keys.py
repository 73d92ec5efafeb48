"""A key that only this user has, wherever a project would like it to come from."""

import os
from pathlib import Path

import pytest

from ta_lint.core.keys import user_key


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state" / "ta-lint" / "x.key"


def test_a_key_is_made_once_and_its_owner_alone_may_read_it(path: Path) -> None:
    key = user_key("x.key")
    assert (len(key), path.read_bytes()) == (32, key)
    assert (path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert user_key("x.key") == key
    assert user_key("y.key") != key
    assert {entry.name for entry in path.parent.iterdir()} == {"x.key", "y.key"}


@pytest.mark.parametrize("trouble", ["others may read it", "it is cut off", "a link"])
def test_a_key_that_somebody_else_may_know_is_replaced(path: Path, trouble: str) -> None:
    key = user_key("x.key")
    if trouble == "others may read it":
        path.chmod(0o640)
    elif trouble == "it is cut off":
        path.write_bytes(key[:31])
    else:
        path.rename(path.with_name("moved"))
        path.symlink_to("moved")
    replaced = user_key("x.key")
    assert replaced != key
    assert user_key("x.key") == replaced


def test_a_folder_of_the_project_holds_no_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A4: a relative name, as of a variable or of a home that nobody knows, is one in somebody's repository."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", "state")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    user_key("x.key")
    assert [entry.name for entry in tmp_path.iterdir()] == ["home"]
    monkeypatch.setenv("HOME", "~")
    with pytest.raises(OSError, match="nobody knows the home folder"):
        user_key("x.key")
    assert not Path("~").exists()


def test_without_a_place_it_says_which(path: Path) -> None:
    path.parents[1].touch()
    with pytest.raises(OSError, match="Not a directory") as raised:
        user_key("x.key")
    assert str(raised.value.filename).startswith(os.fspath(path.parents[1]))
