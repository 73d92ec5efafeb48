"""Star imports: only the modules that may give a name are asked for it, and the files behind all of them are remembered."""

from pathlib import Path

import pytest

from ta_lint.project.exports import Exports, exports
from ta_lint.project.imports import Imports
from ta_lint.project.layout import Layout
from ta_lint.project.project import Project
from ta_lint.project.stars import Stars
from ta_lint.project.trail import Surface

FILES = {
    "pyproject.toml": "",
    "user.py": "from pkg import f, g, h\n",
    "pkg/__init__.py": "from .a import *\nfrom .b import *\nfrom .inner import *\nfrom torch.nn import *\n",
    "pkg/a.py": "from .c import *\ndef f(): pass\n",
    "pkg/b.py": "from .a import *\ndef g(): pass\n",
    "pkg/c.py": "from .a import *\ndef h(): pass\n",  # in a circle with `a`
    "pkg/inner/__init__.py": "",
    "pkg/inner/deep.py": "x = 1\n",
}


@pytest.fixture
def imports(tmp_path: Path) -> Imports:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return Project(str(tmp_path)).imports


@pytest.mark.parametrize(
    ("name", "file"), [("f", "a.py"), ("g", "b.py"), ("h", "c.py"), ("deep", "inner/deep.py"), ("no", None)]
)
def test_a_name_is_found_where_python_finds_it(
    imports: Imports, tmp_path: Path, name: str, file: str | None
) -> None:
    found = imports.target(str(tmp_path / "user.py"), f"pkg.{name}").definition
    assert (found.file if found is not None else None) == (str(tmp_path / "pkg" / file) if file else None)


def test_a_name_that_is_not_found_depends_on_all_files_that_could_give_it(
    imports: Imports, tmp_path: Path
) -> None:
    user = str(tmp_path / "user.py")
    imports.target(user, "pkg.no")
    found = imports.used(user)
    assert {Surface(str(tmp_path / "pkg" / f"{name}.py")) for name in ("__init__", "a", "b", "c")} <= found


def test_what_an_editor_holds_counts(imports: Imports, tmp_path: Path) -> None:
    user, changed = str(tmp_path / "user.py"), str(tmp_path / "pkg" / "c.py")
    assert imports.target(user, "pkg.new").definition is None
    imports.give(changed, "def new(): pass\n")
    found = imports.target(user, "pkg.new").definition
    assert found is not None
    assert found.file == changed


def stars_of(folder: Path, files: dict[str, str]) -> tuple[Stars, list[str]]:
    """The stars of some files, and a list of the files whose exports are asked for, each time."""
    folder.mkdir(exist_ok=True)
    for name, text in files.items():
        (folder / name).write_text(text)
    known = {str(folder / name): exports(text) for name, text in files.items()}
    asked: list[str] = []

    def export(path: str) -> Exports | None:
        asked.append(path)
        return known.get(path)

    return Stars(Layout(str(folder)), export), asked


def test_files_give_each_other_all_that_they_have(tmp_path: Path) -> None:
    ring = {f"m{n}.py": f"from m{(n + 1) % 4} import *\nx{n} = 1\n" for n in range(4)}
    for first in range(4):
        stars, _ = stars_of(tmp_path, {**ring, "a.py": "from m2 import *\n"})
        for asking in (*range(first, 4), *range(first)):
            file = str(tmp_path / f"m{asking}.py")
            assert [n for n in range(4) if stars.giving(file, f"x{n}")] == list(range(4))
            assert stars.giving(str(tmp_path / "a.py"), f"x{asking}") == ["m2"]


def test_what_nobody_can_read_may_give_any_name(tmp_path: Path) -> None:
    stars, _ = stars_of(tmp_path, {"a.py": "from b import *\n", "b.py": "from unseen import *\n"})
    assert stars.giving(str(tmp_path / "a.py"), "x") == ["b"]
    assert stars.giving(str(tmp_path / "b.py"), "x") == ["unseen"]


def test_files_whose_stars_meet_are_gone_through_once(tmp_path: Path) -> None:
    """Each file went through all below it, and each of these again."""
    counts = []
    for size in (50, 100):
        folder = tmp_path / str(size)
        files = {
            f"m{n}.py": f"from m{n - 1} import *\nfrom m{n - 2} import *\nx{n} = 1\n" for n in range(2, size)
        }
        stars, asked = stars_of(folder, {"m0.py": "x0 = 1\n", "m1.py": "x1 = 1\n", **files})
        for n in reversed(range(size)):
            stars.giving(str(folder / f"m{n}.py"), "x0")
        counts.append(len(asked))
    assert counts[1] <= 2.2 * counts[0]
