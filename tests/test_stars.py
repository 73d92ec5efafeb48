"""Star imports: only the modules that may give a name are asked for it, and the files behind all of them are remembered."""

from pathlib import Path

import pytest

from ta_lint.project.imports import Imports
from ta_lint.project.project import Project
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
