"""The extension for VS Code: its own tests pass against this server, and what is packed is what a user needs."""

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from ta_lint import __version__

ROOT = Path(__file__).parents[1]
EXTENSION = ROOT / "editors" / "vscode"
NPM = shutil.which("npm")

if not os.environ.get("CI"):
    pytestmark = pytest.mark.skipif(
        NPM is None or shutil.which("node") is None, reason="Node.js is not installed"
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the extension with its dependencies, as of a fresh checkout."""
    copy = tmp_path_factory.mktemp("editors") / "vscode"
    shutil.copytree(EXTENSION, copy, ignore=shutil.ignore_patterns("dist", "node_modules", "out", "*.vsix"))
    npm(copy, "ci", "--prefer-offline")
    return copy


def npm(folder: Path, *words: str) -> None:
    assert NPM is not None, "install Node.js"
    ran = subprocess.run(
        [NPM, *words],
        cwd=folder,
        env={**os.environ, "TA_LINT_PYTHON": sys.executable},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=180,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_its_tests_pass_against_the_server(folder: Path) -> None:
    npm(folder, "test")


def test_what_is_packed_is_the_bundle_and_not_its_sources(folder: Path) -> None:
    npm(folder, "run", "package")
    packed = zipfile.ZipFile(folder / f"ta-lint-{__version__}.vsix")
    assert {name for name in packed.namelist() if name.startswith("extension/")} == {
        "extension/LICENSE.txt",
        "extension/dist/extension.js",
        "extension/dist/notices.txt",
        "extension/package.json",
        "extension/readme.md",
    }
    bundle = packed.read("extension/dist/extension.js").decode()
    assert 'require("vscode")' in bundle
    assert 'require("vscode-languageclient' not in bundle
    assert "vscode-languageclient 11" in packed.read("extension/dist/notices.txt").decode()


def test_its_version_and_licence_are_those_of_the_linter() -> None:
    manifest = json.loads((EXTENSION / "package.json").read_text())
    assert manifest["version"] == __version__
    assert manifest["license"] == "MIT"
    assert (EXTENSION / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()


def test_each_dependency_is_of_one_release_and_none_is_needed_at_run_time() -> None:
    manifest = json.loads((EXTENSION / "package.json").read_text())
    assert "dependencies" not in manifest
    lock = json.loads((EXTENSION / "package-lock.json").read_text())["packages"]
    for name, version in manifest["devDependencies"].items():
        assert lock[f"node_modules/{name}"]["version"] == version
