"""What files may have by `from module import *`, directly or through others."""

from pathlib import Path

from ta_lint.project.exports import Exports, exports
from ta_lint.project.layout import Layout
from ta_lint.project.stars import Stars


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


def test_a_name_is_given_through_other_files(tmp_path: Path) -> None:
    files = {
        "a.py": "from b import *\nfrom d import *\n",
        "b.py": "from c import *\n",
        "c.py": "x = 1\n",
        "d.py": "y = 1\n",
    }
    stars, _ = stars_of(tmp_path, files)
    assert stars.giving(str(tmp_path / "a.py"), "x") == ["b"]
    assert stars.giving(str(tmp_path / "a.py"), "y") == ["d"]
    assert stars.giving(str(tmp_path / "b.py"), "y") == []


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
