"""What is released and what a user installs: the sdist and the wheel."""

import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from email import message_from_bytes
from pathlib import Path

import pytest
import yaml
from test_links import links

from ta_lint import __version__

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sdist, and with the wheel that is built of it, as the release does."""
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--outdir", str(folder), str(ROOT)]
    subprocess.run(command, check=True, capture_output=True, timeout=300)
    return folder


@pytest.fixture(scope="module")
def wheel(dist: Path) -> Path:
    (built,) = dist.glob("*.whl")
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


def passes(*words: str | Path) -> None:
    """Whether a checker, run here, has nothing to say."""
    ran = subprocess.run(
        [sys.executable, "-m", *words], cwd=ROOT, capture_output=True, text=True, timeout=120
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_a_package_index_takes_what_is_built(dist: Path) -> None:
    passes("twine", "--no-color", "check", "--strict", *sorted(dist.iterdir()))


def test_the_wheel_has_no_stray_files(wheel: Path) -> None:
    passes("check_wheel_contents", wheel)


def test_the_sdist_has_what_the_tests_need_and_nothing_that_is_made(dist: Path) -> None:
    (sdist,) = dist.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {
        "pyproject.toml",
        "LICENSE",
        "rules/TA600-missing-zero-grad.md",
        "tests/test_packaging.py",
    } <= names
    made = (".venv", ".ta_cache", "__pycache__", ".pyc", ".git/", "benchmarks/corpora")
    assert not [name for name in names if any(part in name for part in made)]


def test_the_citation_is_valid_and_of_this_release() -> None:
    passes("check_jsonschema", "--builtin-schema", "vendor.citation-file-format", "CITATION.cff")
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert str(citation["version"]) == __version__
    assert citation["license"] == project["license"]
    assert citation["repository-code"] == project["urls"]["Homepage"]


@pytest.mark.parametrize("name", ["ci.yml", "release.yml"])
def test_a_workflow_is_one_by_the_schema_of_github(name: str) -> None:
    passes("check_jsonschema", "--builtin-schema", "vendor.github-workflows", f".github/workflows/{name}")


def test_a_release_is_published_without_a_token_and_by_a_job_that_runs_nothing_of_ours() -> None:
    text = (ROOT / ".github" / "workflows" / "release.yml").read_text()
    assert "secrets." not in text
    workflow = yaml.safe_load(text)
    assert workflow["permissions"] == {"contents": "read"}
    build, publish = workflow["jobs"]["build"], workflow["jobs"]["publish"]
    assert "permissions" not in build
    assert publish["permissions"] == {"id-token": "write"}
    assert (publish["needs"], publish["environment"]["name"]) == ("build", "pypi")
    assert not any("run" in step for step in publish["steps"])
    assert not any("${{" in step.get("run", "") for step in build["steps"])
