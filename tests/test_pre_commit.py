"""The hook as a project uses it: a real pre-commit, a real repository, a commit that is blocked."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
HEALTHY = "import torch\n\nmodel = torch.nn.Linear(2, 2)\noptimizer = torch.optim.AdamW(model.parameters())\n"
BUGGY = HEALTHY.replace("AdamW(model.parameters())", "Adam(model.parameters(), weight_decay=0.1)")


def run(folder: Path, *command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    identity = {
        "GIT_AUTHOR_NAME": "a",
        "GIT_AUTHOR_EMAIL": "a@b",
        "GIT_COMMITTER_NAME": "a",
        "GIT_COMMITTER_EMAIL": "a@b",
    }
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, env={**os.environ, **identity, **environment}
    )


@pytest.fixture(scope="module")
def hook_repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """This project as it stands in the working tree, as a repository of its own that pre-commit can clone."""
    folder = tmp_path_factory.mktemp("hook")
    tracked = run(ROOT, "git", "ls-files", "--cached", "--others", "--exclude-standard").stdout.splitlines()
    for name in tracked:
        source, copy = ROOT / name, folder / name
        if source.is_file():
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(source.read_bytes())
    run(folder, "git", "init", "--quiet")
    run(folder, "git", "add", "--all")
    assert run(folder, "git", "commit", "--quiet", "--message=hook").returncode == 0
    return folder


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Where pre-commit keeps the environment that it builds, once for all tests."""
    return str(tmp_path_factory.mktemp("pre-commit-home"))


def repository(folder: Path, **files: str) -> Path:
    run(folder, "git", "init", "--quiet")
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text)
    run(folder, "git", "add", "--all")
    return folder


def try_repo(folder: Path, hook_repository: Path, home: str) -> subprocess.CompletedProcess[str]:
    command = (
        sys.executable,
        "-m",
        "pre_commit",
        "try-repo",
        str(hook_repository),
        "ta-lint",
        "--all-files",
        "--verbose",
    )
    return run(folder, *command, PRE_COMMIT_HOME=home)


def test_try_repo_fails_on_a_buggy_file_and_shows_the_finding(
    tmp_path: Path, hook_repository: Path, home: str
) -> None:
    cell = {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": [], "source": BUGGY}
    notebook = {"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 4}
    (tmp_path / "demo.ipynb").write_text(json.dumps(notebook))
    ran = try_repo(repository(tmp_path, train=BUGGY, fine=HEALTHY), hook_repository, home)
    assert ran.returncode == 1, ran.stdout + ran.stderr
    assert "TA401" in ran.stdout
    assert "train.py:4:13" in ran.stdout
    assert "demo.ipynb:cell 1:4:13" in ran.stdout
    assert "fine.py" not in ran.stdout


def test_try_repo_passes_on_a_clean_repository(tmp_path: Path, hook_repository: Path, home: str) -> None:
    ran = try_repo(repository(tmp_path, fine=HEALTHY), hook_repository, home)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_a_commit_is_blocked_until_the_bug_is_mended(
    tmp_path: Path, hook_repository: Path, home: str
) -> None:
    folder = repository(tmp_path, train=BUGGY)
    revision = run(hook_repository, "git", "rev-parse", "HEAD").stdout.strip()
    (folder / ".pre-commit-config.yaml").write_text(
        f"repos:\n  - repo: {hook_repository}\n    rev: {revision}\n    hooks:\n      - id: ta-lint\n"
    )
    run(folder, "git", "add", "--all")
    assert run(folder, sys.executable, "-m", "pre_commit", "install", PRE_COMMIT_HOME=home).returncode == 0
    blocked = run(folder, "git", "commit", "--message=buggy", PRE_COMMIT_HOME=home)
    assert blocked.returncode == 1
    assert "TA401" in blocked.stdout + blocked.stderr
    assert run(folder, "git", "rev-parse", "--verify", "HEAD").returncode != 0, "nothing was committed"
    (folder / "train.py").write_text(HEALTHY)
    run(folder, "git", "add", "--all")
    assert run(folder, "git", "commit", "--message=mended", PRE_COMMIT_HOME=home).returncode == 0


def test_the_hook_environment_has_no_torch(tmp_path: Path, hook_repository: Path, home: str) -> None:
    try_repo(repository(tmp_path, fine=HEALTHY), hook_repository, home)
    installed = {path.name for path in Path(home).rglob("site-packages/*")}
    assert "libcst" in installed
    assert "torch" not in installed
