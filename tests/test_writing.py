"""D16: a file is written whole or not at all, keeps its names, owner and mode, and nothing is left beside it."""

import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ta_lint.core import files
from ta_lint.core.errors import UsageError
from ta_lint.core.files import write_atomically

KILLED = """
import os, signal, sys
from pathlib import Path
from ta_lint.core.files import write_atomically
os.fsync = lambda descriptor: os.kill(os.getpid(), signal.SIGKILL)
write_atomically(Path(sys.argv[1]), "new")
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "train.py"
    path.write_text("old")
    return path


@contextmanager
def no_room() -> Iterator[None]:
    """As on a full disk: no file can be larger than one byte."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("nameless", [True, False])
def test_a_kill_leaves_the_old_file_and_what_it_leaves_beside_is_cleared(
    file: Path, nameless: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = KILLED if nameless else f"import os\ndel os.O_TMPFILE\n{KILLED}"
    ran = subprocess.run([sys.executable, "-c", code, file], timeout=60)
    assert ran.returncode == -signal.SIGKILL
    assert file.read_text() == "old"
    left = [path for path in file.parent.iterdir() if path != file]
    assert len(left) == (0 if nameless and files._nameless(file.parent) is not None else 1)
    for path in left:
        os.utime(path, (1_700_000_000, 1_700_000_000))
    write_atomically(file, "new")
    assert [path.name for path in file.parent.iterdir()] == ["train.py"]


@pytest.mark.parametrize("names", [1, 2])
def test_a_full_disk_leaves_the_old_file_under_all_its_names(file: Path, names: int) -> None:
    other = file.with_name("other.py")
    if names == 2:
        os.link(file, other)
    with no_room(), pytest.raises(UsageError, match=r"cannot write .*train\.py: File too large"):
        write_atomically(file, "new and longer")
    assert file.read_text() == "old"
    assert len(list(file.parent.iterdir())) == names


def test_all_names_of_a_file_stay(file: Path) -> None:
    other, link = file.with_name("other.py"), file.with_name("link.py")
    os.link(file, other)
    link.symlink_to(other)
    for text in ("longer than before", "short"):
        write_atomically(link, text)
        assert (file.read_text(), other.read_text(), file.stat().st_nlink) == (text, text, 2)
    assert link.is_symlink()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root writes files of others")
def test_root_gives_a_file_to_nobody_else(file: Path) -> None:
    file.chmod(0o640)
    os.chown(file, 1234, 2345)
    write_atomically(file, "new")
    status = file.stat()
    assert (status.st_uid, status.st_gid, status.st_mode & 0o7777) == (1234, 2345, 0o640)


def test_a_file_whose_owner_cannot_be_kept_is_written_in_its_place(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    number = file.stat().st_ino
    monkeypatch.setattr(files, "_owned_as", lambda descriptor, before: False)
    write_atomically(file, "new")
    assert (file.read_text(), file.stat().st_ino) == ("new", number)
    assert [path.name for path in file.parent.iterdir()] == ["train.py"]
