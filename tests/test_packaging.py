"""What a user installs: the wheel, built as pip builds it."""

import subprocess
import sys
import venv
import zipfile
from email import message_from_bytes
from pathlib import Path

import pytest
from test_links import links

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        "--wheel-dir",
        str(folder),
        str(ROOT),
    ]
    subprocess.run(command, check=True, capture_output=True)
    (built,) = folder.glob("*.whl")
    return built


def test_the_wheel_holds_the_package_and_the_pages_and_nothing_else(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    top = {name.split("/")[0] for name in names}
    assert {name for name in top if not name.endswith(".dist-info")} == {"ta_lint", "ta_runtime"}
    packed = {Path(name).name for name in names if name.startswith("ta_lint/_rules/")}
    assert packed == {page.name for page in (ROOT / "rules").glob("TA*.md")}
    data = {f"ta_lint/data/{path.name}" for path in (ROOT / "ta_lint" / "data").iterdir()}
    assert {"ta_lint/py.typed", "ta_lint/data/torch_symbols.toml", *data} <= set(names)
    assert {"ta_runtime/html/base.css", "ta_runtime/report/page.css", "ta_runtime/report/page.js"} <= set(
        names
    )


def test_on_a_package_index_every_link_of_the_readme_leads_to_the_repository(wheel: Path) -> None:
    """N18: the README is the long description there, beside none of the files that it links to."""
    (name,) = (name for name in zipfile.ZipFile(wheel).namelist() if name.endswith(".dist-info/METADATA"))
    shown = message_from_bytes(zipfile.ZipFile(wheel).read(name))
    text = shown.get_payload()
    assert shown["Description-Content-Type"] == "text/markdown"
    here = list(links((ROOT / "README.md").read_text(encoding="utf-8")))
    assert "docs/verdicts.md" in here
    url = "https://github.com/ta-lint/ta-lint/blob/main/"
    assert list(links(text)) == [link if "://" in link else url + link for link in here]  # type: ignore[arg-type]


def test_an_installed_wheel_finds_its_pages_beside_a_foreign_rules_package(
    wheel: Path, tmp_path: Path
) -> None:
    """`rules` belongs to another project on the package index: one here must neither be shadowed nor be read."""
    venv.create(tmp_path / "env", system_site_packages=False, with_pip=False)
    (site,) = (tmp_path / "env").rglob("site-packages")
    zipfile.ZipFile(wheel).extractall(site)
    (site / "rules").mkdir()
    (site / "rules" / "__init__.py").write_text("foreign = True\n")
    dependencies = next(Path(path) for path in sys.path if path.endswith("site-packages"))
    (site / "dependencies.pth").write_text(f"{dependencies}\n")
    code = "import rules; assert rules.foreign; from ta_lint.cli import main; main(['rules'])"
    python = tmp_path / "env" / "bin" / "python"
    ran = subprocess.run([python, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert "TA600  missing-zero-grad" in ran.stdout
