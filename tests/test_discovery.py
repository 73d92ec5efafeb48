"""Which files are found: what git would list, and which of them are worth a look."""

import random
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from ta_lint.core.config import Configs, Options
from ta_lint.discovery import discover
from ta_lint.engine import lint_file
from ta_lint.file import File, may_hold_findings

NAMES = ["a", "b", "ab", "ba", ".a", "a.py", "b.py", "ab.py", "b.pyi", ".py", "a.txt"]
PARTS = [
    "a",
    "b",
    "ab",
    "ab?",
    "*",
    "?",
    "a*",
    "*b",
    "b?",
    ".a",
    "a.py",
    "*.py",
    "*.py[io]",
    "[ab].py",
    "a*.py",
]


def lines(chance: random.Random) -> Iterator[str]:
    """Lines of a `.gitignore`: most are names, some are paths."""
    for _ in range(chance.randint(1, 4)):
        path = "/".join(chance.choice(PARTS) for _ in range(chance.choice([1, 1, 1, 2])))
        lead = chance.choice(["", "", "", "/", "**/"])
        yield f"{lead}{path}{chance.choice(['', '', '/'])}"


def negating(lines: Iterator[str], chance: random.Random) -> Iterator[str]:
    """The same, some of them negated, and some written as few people do."""
    for line in lines:
        line = line if chance.random() < 0.8 else f"{line.replace('b', '[!a]')}{chance.choice([' ', '**'])}"
        yield chance.choice(["", "", "!"]) + line


def found(folder: Path) -> list[str]:
    (folder / "pyproject.toml").write_text("[tool.ta]\nexclude = []\n")
    return [file.name for file in discover([folder], Configs(Options(), folder), folder)]


@pytest.mark.parametrize("seed", range(60))
def test_the_files_of_a_tree_are_those_that_git_lists(seed: int, tmp_path: Path) -> None:
    """Also where lines are negated, which it asks of an entry by itself, and never out of a folder that is ignored."""
    chance = random.Random(seed)
    folders = [tmp_path]
    for _ in range(12):
        folder = chance.choice(folders) / chance.choice(NAMES[:5])
        folder.mkdir(exist_ok=True)
        folders.append(folder)
    for folder in sorted(set(folders)):
        for name in chance.sample(NAMES[4:], 4):
            if not (folder / name).exists():
                (folder / name).write_text("")
        if folder == tmp_path or chance.random() < 0.3:
            (folder / ".gitignore").write_text("# a comment\n\n" + "\n".join(negating(lines(chance), chance)))
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    listed = subprocess.run(
        ["git", "-c", "core.excludesFile=", "ls-files", "--others", "--exclude-standard", "-z"],
        cwd=tmp_path,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split("\0")
    assert found(tmp_path) == sorted(name for name in listed if Path(name).suffix in (".py", ".pyi"))


def test_a_file_is_found_once_however_it_is_named(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "b.py").write_text("")
    named = [tmp_path / "a", tmp_path / "a" / ".." / "a" / "b.py", tmp_path]
    (file,) = discover(named, Configs(Options(), tmp_path), tmp_path)
    assert file.name == "a/b.py"
    assert file.path == tmp_path / "a" / "b.py"


def test_a_file_has_the_settings_of_the_nearest_folder_that_has_any(tmp_path: Path) -> None:
    for folder, fail_level in ((tmp_path, "note"), (tmp_path / "a", "error")):
        folder.mkdir(exist_ok=True)
        (folder / "pyproject.toml").write_text(f"[tool.ta]\nfail-level = '{fail_level}'\n")
    (tmp_path / "a" / "b").mkdir()
    for name in ("x.py", "a/x.py", "a/b/x.py"):
        (tmp_path / name).write_text("")
    files = discover([tmp_path], Configs(Options(), tmp_path), tmp_path)
    assert {file.name: file.config.fail_level for file in files} == {
        "x.py": "note",
        "a/x.py": "error",
        "a/b/x.py": "error",
    }


FRAGMENTS = [
    b"import torch\n", b"TORCH", b"\0", b"x = 1\n", b"x = (\n", b"# noqa: TA603\n", b"y = 2  #NoQA:uncalled-method\n",
    b"# ta: noqa: TA401\n", b"\xff", "import torch\n".encode("utf-16"), "# coding: no\n".encode("utf-8-sig"),
    b"import timm\n", b"# timm, datasets\n", b'{"cells": []}',
    b'{"cells": [{"cell_type": "code", "source": "import datasets"}]}', b'{"cells": [{"cell_type": "code", "source": "import tor\\u0063h"}]}',
]  # fmt: skip


def test_what_is_not_worth_a_look_has_no_finding(tmp_path: Path) -> None:
    config = Configs(Options(select=["ALL"]), tmp_path).of_directory(tmp_path)
    chance = random.Random(1)
    spared = 0
    for number in range(400):
        path = tmp_path / f"{number}{chance.choice(['.py', '.pyi', '.ipynb'])}"
        path.write_bytes(b"".join(chance.choices(FRAGMENTS, k=chance.randint(0, 3))))
        file = File(path, path.name, config)
        if not may_hold_findings([file]):
            assert lint_file(file) == [], path.read_bytes()
            spared += 1
    assert 30 < spared < 370


def test_what_cannot_be_read_is_worth_a_look(tmp_path: Path) -> None:
    config = Configs(Options(), tmp_path).of_directory(tmp_path)
    assert may_hold_findings([File(tmp_path, "a", config)])
    assert may_hold_findings([File(tmp_path / "missing.py", "missing.py", config)])


def test_a_file_outside_the_root_has_its_whole_path_for_a_name(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "projects.py").write_text("")
    root = tmp_path / "project"
    (file,) = discover([tmp_path / "projects.py"], Configs(Options(), root), root)
    assert file.name == (tmp_path / "projects.py").as_posix()


def test_a_gitignore_with_a_byte_order_mark_and_a_form_feed_is_read_as_git_reads_it(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_bytes(b"\xef\xbb\xbfa.py\r\n\x0cb.py\n")
    for name in ("a.py", "b.py"):
        (tmp_path / name).touch()
    assert found(tmp_path) == ["b.py"]


def test_what_macos_stores_beside_a_file_is_not_linted(tmp_path: Path) -> None:
    (tmp_path / "._train.py").write_bytes(b"\x00\x05\x16\x07\x00\x02\x00\x00Mac OS X")
    (tmp_path / "train.py").write_text("import torch\n")
    found = discover([tmp_path], Configs(Options(), tmp_path), tmp_path)
    assert [file.name for file in found] == ["train.py"]
