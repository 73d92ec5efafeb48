"""What files show of themselves, kept on disk: no run says anything else for it, whatever happens to files, disk and process."""

import errno
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from edited_project import LONG_AGO, forget, in_forks

from ta_lint import cache, signed
from ta_lint.cache import Cache
from ta_lint.cli import main
from ta_lint.core.config import Configs, Options
from ta_lint.core.digest import digest_of
from ta_lint.discovery import discover
from ta_lint.project import around, index
from ta_lint.project.index import Index
from ta_lint.project.layout import Layout
from ta_lint.project.outline import decoded, outline_of
from ta_lint.project.project import Project
from ta_lint.runner import lint_files

CLEARS = "def clear(optimizer):\n    optimizer.zero_grad()\n"
CLEARS_NOT = "def clear(optimizer):\n    optimizer.state_dict()\n"
LOOP = "def fit(model, loader, optimizer):\n    for x in loader:\n        clear(optimizer)\n        model(x).sum().backward()\n        optimizer.step()\n"
FILES = {
    "train.py": "import torch\nfrom loop import fit\n\nfit(torch.nn.Linear(4, 1), loader, optimizer)\n",
    "loop.py": f"from helpers import *\n\n\n{LOOP}",
    "helpers/__init__.py": "from .all import *\n",
    "helpers/all.py": CLEARS_NOT,
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A small project, for which outlines are kept as for a large one."""
    monkeypatch.setattr(index, "FEW", 0)
    folder = tmp_path / "project"
    for name, text in FILES.items():
        save(folder / name, text)
    (folder / "pyproject.toml").touch()
    forget()
    yield folder
    forget()


def save(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    os.utime(path, (LONG_AGO, LONG_AGO))


def run(folder: Path, *names: str, kept: bool = True) -> dict[str, list[str]]:
    """The rules that a run of a new process finds, with outlines as the whole cache."""
    for book in (folder / cache.FOLDER).glob("findings-*"):
        book.unlink()
    forget()
    configs = Configs(Options(select=["TA600"]), folder)
    files = discover([folder / name for name in names] or [folder], configs, folder)
    ran = lint_files(files, 1, Cache(folder / cache.FOLDER, folder) if kept else None)
    return {file.name: [found.rule for found in findings] for file, findings in ran}


def shelf(folder: Path) -> Path:
    (path,) = (folder / cache.FOLDER).glob("outlines-*")
    return path


def names(folder: Path) -> set[str]:
    lines = shelf(folder).read_bytes().split(b"\n")[1:]
    return {json.loads(line.partition(b"\t")[0]) for line in lines}


def calls_to(name: str, function: Callable[..., object], monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The first argument of each call from `around` to a function."""
    first: list[object] = []

    def called(*arguments: object) -> object:
        first.append(arguments[0])
        return function(*arguments)

    monkeypatch.setattr(around, name, called)
    return first


@pytest.fixture
def settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock is ahead, so that no file was written just now."""
    monkeypatch.setattr("ta_lint.core.reading._SETTLED_NS", -(10**12))


def test_a_file_that_did_not_change_gets_no_new_outline(
    folder: Path, settled: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(folder)["loop.py"] == ["TA600"]
    assert names(folder) == set(FILES)
    made = calls_to("outline_of", outline_of, monkeypatch)
    assert run(folder, "loop.py") == {"loop.py": ["TA600"]}
    assert made == []
    save(folder / "helpers/all.py", CLEARS)
    assert run(folder, "loop.py") == {"loop.py": []}
    assert len(made) == 1


def test_a_file_that_was_only_checked_out_anew_is_read_and_keeps_its_outline(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(folder)
    made = calls_to("outline_of", outline_of, monkeypatch)
    for name, text in FILES.items():
        save(folder / name, text)
    assert run(folder)["loop.py"] == ["TA600"]
    assert made == []


def test_a_change_with_the_same_size_and_time_is_seen(folder: Path, settled: None) -> None:
    assert run(folder)["loop.py"] == ["TA600"]
    save(folder / "helpers/all.py", CLEARS + "#" * (len(CLEARS_NOT) - len(CLEARS)))
    assert run(folder)["loop.py"] == []


def test_few_files_are_not_kept(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index, "FEW", 40)
    run(folder)
    assert not list((folder / cache.FOLDER).glob("outlines-*"))


def test_what_is_kept_already_is_not_written_again(
    folder: Path, settled: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also of the first files that are looked at, before what is on disk is read."""
    run(folder)
    monkeypatch.setattr(index, "FEW", 2)
    monkeypatch.setattr(cache._Shelf, "save", lambda *_: pytest.fail("it was written"))
    assert run(folder)["loop.py"] == ["TA600"]


def test_without_a_cache_nothing_is_read_or_written(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(folder, kept=False)
    assert not (folder / cache.FOLDER).exists()
    run(folder)
    before = shelf(folder).read_bytes()
    save(folder / "helpers/all.py", CLEARS)
    monkeypatch.setattr(signed.SignedFile, "read", lambda _: pytest.fail("it was read"))
    monkeypatch.chdir(folder)
    forget()
    assert main(["check", "--no-cache", "--quiet", "train.py"]) == 0
    assert shelf(folder).read_bytes() == before


def test_a_file_without_torch_in_a_large_project_is_told_by_outlines(
    folder: Path, settled: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such a run ends before there is a cache of findings."""
    save(folder / "plain.py", "x = 1\n")
    monkeypatch.chdir(folder)
    assert main(["check", "--quiet", "plain.py"]) == 0
    assert "plain.py" in names(folder)
    forget()
    monkeypatch.setattr(around, "read_with_stamp", lambda path: pytest.fail(f"{path} was read"))
    assert main(["check", "--quiet", "plain.py"]) == 0


def test_a_file_that_is_gone_is_dropped_with_the_next_change(folder: Path) -> None:
    run(folder)
    (folder / "train.py").unlink()
    save(folder / "helpers/all.py", CLEARS)
    assert run(folder)["loop.py"] == []
    assert names(folder) == set(FILES) - {"train.py"}


def test_two_runs_at_once_add_to_each_other(folder: Path) -> None:
    """Each writes what the other has not seen."""
    for number in range(20):
        save(folder / f"one/{number}.py", "import torch\n")
        save(folder / f"two/{number}.py", "import torch\n")
    in_forks([lambda: repr(run(folder, "one/0.py")), lambda: repr(run(folder, "two/0.py"))] * 2)
    assert run(folder) == run(folder, kept=False)


def test_a_project_can_move_with_its_outlines(folder: Path, tmp_path: Path) -> None:
    run(folder)
    before = names(folder)
    moved = folder.rename(tmp_path / "moved")
    assert run(moved)["loop.py"] == ["TA600"]
    assert names(moved) == before


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-20])


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def forged(path: Path) -> None:
    """By somebody without the user's key: the helper would be empty."""
    body = path.read_bytes().partition(b"\n")[2].replace(b"helpers", b"nothing")
    path.write_bytes(signed.SignedFile(path, b"k" * 32).head(body) + b"\n" + body)


def of_nonsense(path: Path) -> None:
    """With the user's key."""
    lines = [
        b'"loop.py"\t[]',
        b'"train.py"\tnull',
        b"helpers\t",
        b'"helpers/all.py"\t[1,2',
        b"",
        b"\t",
        b'"a"\t{}',
    ]
    signed.SignedFile(path, signed.signing_key()).write(b"\n".join(lines))


def a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def a_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


@pytest.mark.parametrize("spoil", [cut, emptied, forged, of_nonsense, a_folder, a_pipe])
def test_spoilt_outlines_are_not_believed(folder: Path, settled: None, spoil: Callable[[Path], None]) -> None:
    expected = run(folder)
    spoil(shelf(folder))
    assert run(folder) == expected == run(folder, kept=False)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EDQUOT])
def test_a_disk_that_takes_nothing_changes_no_result(
    folder: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    run(folder)
    before = shelf(folder).read_bytes()
    save(folder / "helpers/all.py", CLEARS)

    def write(*_: object) -> int:
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as full:
        full.setattr(Path, "write_bytes", write)
        assert run(folder)["loop.py"] == []
    assert shelf(folder).read_bytes() == before
    assert run(folder)["loop.py"] == []


def test_outlines_of_another_version_are_not_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(folder)
    old = shelf(folder)
    monkeypatch.setattr(cache, "_linter_version", lambda: "another")
    monkeypatch.setattr(
        around, "outline_of", lambda *what: pytest.fail("made") if not what else outline_of(*what)
    )
    run(folder)
    assert len({old, *(folder / cache.FOLDER).glob("outlines-*")}) == 2


def test_too_many_outlines_are_those_of_the_last_run(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(folder)
    size = shelf(folder).stat().st_size
    monkeypatch.setattr(cache, "_BYTES_KEPT", 2 * size + 200)
    save(folder / "more.py", "import torch\n" + "".join(f"from torch import name{i}\n" for i in range(20)))
    assert run(folder)["loop.py"] == ["TA600"]
    assert names(folder) == {"more.py"}
    monkeypatch.setattr(cache, "_BYTES_KEPT", 10)
    assert run(folder)["loop.py"] == ["TA600"]


def test_clean_removes_outlines(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(folder)
    monkeypatch.chdir(folder)
    main(["clean"])
    assert not (folder / cache.FOLDER).exists()


def test_an_answer_about_a_file_that_changes_meanwhile_is_not_kept(folder: Path) -> None:
    path = folder / "helpers/all.py"
    known = Index(str(folder))
    project = Project(str(folder), known)
    assert project.around.attributes(str(path)) == frozenset()
    project.around._read.cache_clear()  # as if many other files were read since
    save(path, "class A:\n    def act(self): ...\n")
    assert project.around.has(str(path), "class")
    assert project.around.changing == {str(path)}
    line = known.news()[b'"helpers/all.py"']
    outline = decoded(line)
    assert outline is not None
    assert (outline.digest, [*outline.answers]) == (digest_of(CLEARS_NOT.encode()), ["attributes"])
    assert Project(str(folder), known).around.has(str(path), "class")


def test_an_outline_is_the_same_after_it_was_written() -> None:
    text = Path(__file__).read_bytes()
    outline = outline_of(text, digest_of(text), [1, 2, 3, 4, 5])
    again = decoded(outline.encoded())
    assert again is not None
    assert again.encoded() == outline.encoded()
    assert (again.links, again.bound, again.statements) == (outline.links, outline.bound, outline.statements)


# -- what a file imports ---------------------------------------------------------------------------------------


def files_around(folder: Path, files: dict[str, str], text: str) -> set[str]:
    """The files that define what one with this text imports."""
    for name, content in files.items():
        save(folder / name, content)
    (folder / "pyproject.toml").touch()
    root = str(folder)
    found = around.Around(Layout(root), Index(root)).files(str(folder / "train.py"), text.encode())
    return {os.path.relpath(path, root) for path in found}


PACKAGE = {
    "pkg/__init__.py": "from .a import *\nfrom .b import Net as Model, Loss  # noqa: F401, E402\nfrom .c import (\n    step,  # step\n)\n\ndef own(): ...\n",
    "pkg/a.py": "def own(): ...\ndef helper(): ...\ndef sub(): ...\ndef Model(): ...\n",
    "pkg/b.py": "class Net: ...\n",
    "pkg/c.py": "def step(): ...\n",
    "pkg/sub.py": "x = 1\n",
}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("from pkg import helper\n", {"a"}),
        ("from pkg import Model\n", {"b"}),
        ("from pkg import Model as Net, Loss  # helper\n", {"b"}),
        ("from pkg import step as helper\n", {"c"}),
        ("from pkg import own\n", set()),
        ("from pkg import sub\n", {"sub"}),
        ("from pkg import nothing\n", set()),
        ("from pkg import F401\n", set()),
        ("from pkg import *\n", {"a", "b", "c", "sub"}),
        ("import pkg\n", {"a", "b", "c", "sub"}),
        ("from pkg.a import own\n", {"a"}),
    ],
)
def test_a_package_is_asked_for_what_is_imported(tmp_path: Path, text: str, found: set[str]) -> None:
    """It has what it imports by name first, then what it defines, its modules, and what comes by `*`."""
    expected = {f"pkg/{name}.py" for name in found} | ({"pkg/__init__.py"} if "pkg.a" not in text else set())
    assert files_around(tmp_path, PACKAGE, text) == expected


@pytest.mark.parametrize(
    "how",
    [
        "from . import net, deep",
        "from pkg import net, deep",
        "from . import net as net, deep as deep",
        "import pkg.net, pkg.deep",
    ],
)
@pytest.mark.parametrize("text", ["import pkg\n", "from pkg import *\n", "from pkg import net, deep\n"])
def test_a_package_hands_on_its_modules(tmp_path: Path, how: str, text: str) -> None:
    files = {
        "pkg/__init__.py": f"{how}\n",
        "pkg/net.py": "class Net: ...\n",
        "pkg/deep/__init__.py": "from .loop import fit\n",
        "pkg/deep/loop.py": "def fit(): ...\n",
    }
    assert files_around(tmp_path, files, text) == set(files)


def test_packages_that_import_each_other_are_asked_once(tmp_path: Path) -> None:
    files = {
        "one/__init__.py": "from two import *\nfrom two import b\n",
        "two/__init__.py": "from one import *\nfrom one import a\nfrom .deep import c\n",
        "two/deep.py": "c = 1\n",
    }
    for text in ("from one import a\n", "from one import b\n", "from one import *\n"):
        assert "one/__init__.py" in files_around(tmp_path, files, text)
    assert files_around(tmp_path, files, "from one import c\n") == {"one/__init__.py", "two/deep.py"}


@pytest.mark.parametrize(
    ("count", "found"), [(300, {"pkg/__init__.py", "pkg/m7.py"}), (301, {"pkg/__init__.py"})]
)
def test_of_a_package_that_imports_everything_from_too_many_files_nothing_more_is_read(
    tmp_path: Path, count: int, found: set[str]
) -> None:
    files = {f"pkg/m{number}.py": f"name{number} = 1\n" for number in range(count)}
    files["pkg/__init__.py"] = "".join(f"from .m{number} import *\n" for number in range(count))
    assert files_around(tmp_path, files, "from pkg import name7\n") == found
