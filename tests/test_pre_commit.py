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
def home(tmp_path_factory: pytest.TempPathFactory, hook_repository: Path) -> str:
    """Where pre-commit keeps the environment of the hook, which it builds once for all tests."""
    home = str(tmp_path_factory.mktemp("pre-commit-home"))
    folder = with_hook(tmp_path_factory.mktemp("first"), hook_repository, train=BUGGY)
    built = pre_commit(folder, "install-hooks", PRE_COMMIT_HOME=home)
    assert built.returncode == 0, built.stdout + built.stderr
    return home


def repository(folder: Path, **files: str) -> Path:
    run(folder, "git", "init", "--quiet")
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text)
    run(folder, "git", "add", "--all")
    return folder


def with_hook(folder: Path, hook_repository: Path, hook: str = "ta-lint", **files: str) -> Path:
    """A repository whose configuration names the hook."""
    revision = run(hook_repository, "git", "rev-parse", "HEAD").stdout.strip()
    (folder / ".pre-commit-config.yaml").write_text(
        f"repos:\n  - repo: {hook_repository}\n    rev: {revision}\n    hooks:\n      - id: {hook}\n"
    )
    return repository(folder, **files)


def pre_commit(folder: Path, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return run(folder, sys.executable, "-m", "pre_commit", *words, **environment)


def test_try_repo_fails_on_a_buggy_file_and_shows_the_finding(
    tmp_path: Path, hook_repository: Path, home: str
) -> None:
    cell: dict[str, object] = {
        "cell_type": "code",
        "execution_count": None,
        "metadata": {},
        "outputs": [],
        "source": BUGGY,
    }
    notebook = {"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 4}
    (tmp_path / "demo.ipynb").write_text(json.dumps(notebook))
    words = ("try-repo", str(hook_repository), "ta-lint", "--all-files", "--verbose")
    ran = pre_commit(repository(tmp_path, train=BUGGY, fine=HEALTHY), *words, PRE_COMMIT_HOME=home)
    assert ran.returncode == 1, ran.stdout + ran.stderr
    assert "TA401" in ran.stdout
    assert "train.py:4:13" in ran.stdout
    assert "demo.ipynb:cell 1:4:13" in ran.stdout
    assert "fine.py" not in ran.stdout


def test_a_clean_repository_passes(tmp_path: Path, hook_repository: Path, home: str) -> None:
    folder = with_hook(tmp_path, hook_repository, fine=HEALTHY)
    ran = pre_commit(folder, "run", "--all-files", PRE_COMMIT_HOME=home)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_a_commit_is_blocked_until_the_bug_is_mended(
    tmp_path: Path, hook_repository: Path, home: str
) -> None:
    folder = with_hook(tmp_path, hook_repository, train=BUGGY)
    assert pre_commit(folder, "install", PRE_COMMIT_HOME=home).returncode == 0
    blocked = run(folder, "git", "commit", "--message=buggy", PRE_COMMIT_HOME=home)
    assert blocked.returncode == 1
    assert "TA401" in blocked.stdout + blocked.stderr
    assert run(folder, "git", "rev-parse", "--verify", "HEAD").returncode != 0, "nothing was committed"
    (folder / "train.py").write_text(HEALTHY)
    run(folder, "git", "add", "--all")
    assert run(folder, "git", "commit", "--message=mended", PRE_COMMIT_HOME=home).returncode == 0


def test_the_fixing_hook_stops_once_with_the_file_mended(
    tmp_path: Path, hook_repository: Path, home: str
) -> None:
    suppressed_for_nothing = HEALTHY + "lr = 0.1  # noqa: TA401\n"
    folder = with_hook(tmp_path, hook_repository, "ta-lint-fix", train=suppressed_for_nothing)
    ran = pre_commit(folder, "run", "--all-files", PRE_COMMIT_HOME=home)
    assert ran.returncode == 1, ran.stdout + ran.stderr
    assert "files were modified by this hook" in ran.stdout
    assert (folder / "train.py").read_text() == HEALTHY + "lr = 0.1\n"
    run(folder, "git", "add", "--all")
    assert pre_commit(folder, "run", "--all-files", PRE_COMMIT_HOME=home).returncode == 0


def test_the_fixing_hook_reports_what_it_does_not_fix(
    tmp_path: Path, hook_repository: Path, home: str
) -> None:
    folder = with_hook(tmp_path, hook_repository, "ta-lint-fix", train=BUGGY)
    ran = pre_commit(folder, "run", "--all-files", PRE_COMMIT_HOME=home)
    assert ran.returncode == 1
    assert "TA401" in ran.stdout
    assert (folder / "train.py").read_text() == BUGGY


def test_the_hook_environment_has_no_torch(home: str) -> None:
    installed = {path.name for path in Path(home).rglob("site-packages/*")}
    assert "libcst" in installed
    assert "torch" not in installed
