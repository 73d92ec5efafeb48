"""What the cache remembers: never other findings than without it, whatever happens to files, settings, disk and process."""

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from marked import blocks

from ta_lint import cache
from ta_lint import signed as signed_file
from ta_lint.cache import Cache
from ta_lint.cli import main
from ta_lint.core.config import Configs, Options
from ta_lint.core.digest import digest_of
from ta_lint.core.finding import Finding
from ta_lint.discovery import discover
from ta_lint.file import File
from ta_lint.project.project import renew
from ta_lint.runner import lint_files
from ta_lint.signed import SignedFile, signing_key

ROOT = Path(__file__).parents[1]
CORPUS = ROOT / "benchmarks/corpora/timm-1.0.31/timm/optim"
FORMATS = ("text", "concise", "json", "sarif", "github")
CLEAN = "import torch\nprint(torch.zeros(1))\n"
BUGGY = "import torch\noptimizer = torch.optim.Adam(model.parameters(), weight_decay=0.1)\n"
NOTEBOOK = {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [
    {"cell_type": "code", "id": "a", "metadata": {}, "outputs": [], "execution_count": None, "source": BUGGY}
]}  # fmt: skip


def check(folder: Path, *words: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """`ta-lint check WORDS` in a folder, as a user runs it."""
    command = [sys.executable, "-m", "ta_lint", "check", "--select=TA401,TA001", "--format=concise", *words]
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, **options)
    assert "Traceback" not in ran.stderr, ran.stderr
    return ran


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A project with one finding, in a file that was written long ago."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "pyproject.toml").touch()
    write(folder / "train.py", BUGGY)
    return folder


def write(path: Path, text: str) -> Path:
    """A file whose last change is no longer new. Its status has changed now, so only its digest tells."""
    path.write_text(text)
    os.utime(path, (1_700_000_000, 1_700_000_000))
    return path


def files(folder: Path, *select: str) -> list[File]:
    configs = Configs(Options(select=list(select or ("TA401", "TA001"))), folder)
    return discover([folder], configs, folder)


def lint(folder: Path, *select: str) -> dict[str, list[Finding]]:
    """What a run in this process finds, with a cache in its usual place."""
    ran = lint_files(files(folder, *select), 1, Cache(folder / cache.FOLDER, folder))
    return {file.name: findings for file, findings in ran}


def remembered(folder: Path, *select: str) -> dict[str, list[Finding] | None]:
    """What the cache knows of each file."""
    renew()  # as a run does
    wanted = files(folder, *select)
    known, unknown = Cache(folder / cache.FOLDER, folder).find(wanted)
    found: dict[str, list[Finding] | None] = {file.name: None for file in unknown}
    return found | {file.name: findings for file, findings in known}


def only_book(folder: Path) -> Path:
    (book,) = (folder / cache.FOLDER).glob("findings-*")
    return book


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The code of some of the test cases, a few notebooks and real files, in one project."""
    folder = tmp_path_factory.mktemp("cases")
    (folder / "pyproject.toml").write_text('[tool.ta]\nper-file-ignores = {"*_1.py" = ["TA4"]}\n')
    for page in sorted((ROOT / "tests/cases").glob("TA*.md"))[::30]:
        for block in blocks(page):
            (folder / f"{page.stem[:5]}_{block.number}.py").write_text(block.code)
    (folder / "training.ipynb").write_text(json.dumps(NOTEBOOK))
    (folder / "broken.py").write_text("import torch\nx = (\n")
    (folder / "escaped.py").write_text(f"{BUGGY[:-1]}  # noqa: TA401, TA600\n")
    (folder / os.fsdecode(b"n\xe9on.py")).write_text(BUGGY)
    for path in sorted(CORPUS.glob("*.py"))[::10]:
        shutil.copy(path, folder)
    return folder


@pytest.mark.parametrize("words", [(), ("--select=ALL",), ("--target-torch=2.1", "--extend-select=TA414")])
def test_every_report_is_the_same_byte_for_byte_without_a_cache_with_a_new_one_and_with_a_full_one(
    cases: Path, words: tuple[str, ...]
) -> None:
    def report(*more: str) -> tuple[bytes, int]:
        command = [sys.executable, "-m", "ta_lint", "check", "--format=sarif", *words, *more]
        ran = subprocess.run(command, cwd=cases, capture_output=True, timeout=240)
        assert not ran.stderr, ran.stderr
        return ran.stdout, ran.returncode

    shutil.rmtree(cases / cache.FOLDER, ignore_errors=True)
    fresh = report("--no-cache", "--jobs=1")
    assert not (cases / cache.FOLDER).exists()
    assert fresh[0].count(b'"ruleId"') > 50
    assert fresh == report("--jobs=2")
    assert fresh == report()


def test_every_format_says_the_same_of_what_is_remembered(
    cases: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    monkeypatch.chdir(cases)

    def report(style: str, *more: str) -> tuple[bytes, int]:
        status = main(["check", f"--format={style}", "--jobs=1", *more])
        captured = capfdbinary.readouterr()
        assert not captured.err, captured.err
        return captured.out, status

    fresh = {style: report(style, "--no-cache") for style in FORMATS}
    report("sarif")
    monkeypatch.setattr("ta_lint.engine.lint_file", lambda file: pytest.fail("linted again"))
    assert fresh == {style: report(style) for style in FORMATS}


def test_what_is_remembered_is_not_linted_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = lint(folder)
    assert [finding.rule for finding in before["train.py"]] == ["TA401"]
    monkeypatch.setattr("ta_lint.engine.lint_file", lambda file: pytest.fail("linted again"))
    assert lint(folder) == before


def test_a_file_that_was_only_touched_or_checked_out_anew_is_still_known(folder: Path) -> None:
    lint(folder)
    os.utime(folder / "train.py")
    assert remembered(folder)["train.py"]
    text = (folder / "train.py").read_text()
    (folder / "train.py").unlink()
    (folder / "train.py").write_text(text)
    assert remembered(folder)["train.py"]


def test_once_its_times_are_settled_a_file_is_not_even_read(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = time.time_ns()
    monkeypatch.setattr(time, "time_ns", lambda: now + 10**10)
    lint(folder)
    (folder / "train.py").chmod(0o644)
    assert remembered(folder)["train.py"]  # its status has changed, so it was read
    lint(folder)
    monkeypatch.setattr(cache, "read_with_stamp", lambda path: pytest.fail("read"))
    assert remembered(folder)["train.py"]


@pytest.mark.parametrize("_", range(20))
def test_an_edit_of_the_same_size_in_the_same_tick_of_the_clock_is_seen(folder: Path, _: int) -> None:
    path = folder / "train.py"
    path.write_text(BUGGY)
    lint(folder)
    times = path.stat()
    path.write_text(BUGGY.replace("0.1", "0.0"))
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert remembered(folder)["train.py"] is None
    assert lint(folder)["train.py"] == []


@pytest.mark.parametrize(
    "changed",
    [
        Options(select=["TA401", "TA600"]),
        Options(select=["TA401", "TA001"], target_torch="2.1"),
    ],
    ids=["rules", "target"],
)
def test_other_settings_do_not_share_what_is_remembered(folder: Path, changed: Options) -> None:
    lint(folder)
    (file,) = discover([folder], Configs(changed, folder), folder)
    assert Cache(folder / cache.FOLDER, folder).find([file]) == ([], [file])
    assert remembered(folder)["train.py"]


@pytest.mark.parametrize(
    "table",
    [
        'per-file-ignores = {"train.py" = ["TA401"]}',
        'unfixable = ["TA401"]',
        'extend-safe-fixes = ["TA401"]',
    ],
)
def test_settings_of_the_project_that_decide_on_a_finding_count(folder: Path, table: str) -> None:
    before = lint(folder)
    (folder / "pyproject.toml").write_text(f"[tool.ta]\n{table}\n")
    assert remembered(folder)["train.py"] is None
    assert lint(folder) != before


def test_settings_that_decide_on_no_finding_do_not(folder: Path) -> None:
    lint(folder)
    (folder / "pyproject.toml").write_text(
        '[tool.ta]\nfail-level = "error"\nextend-exclude = ["old"]\nunsafe-fixes = true\nbaseline = "known.json"\n'
    )
    assert remembered(folder)["train.py"]


def test_a_project_can_move_with_its_cache(folder: Path, tmp_path: Path) -> None:
    lint(folder)
    moved = tmp_path / "elsewhere"
    shutil.copytree(folder, moved)
    assert remembered(moved)["train.py"]


def test_projects_that_share_a_cache_folder_do_not_mix(folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    write(other / "train.py", BUGGY)
    list(lint_files(files(folder), 1, Cache(tmp_path / "shared", folder)))
    assert Cache(tmp_path / "shared", other).find(files(other)) == ([], files(other))
    known, _ = Cache(tmp_path / "shared", folder).find(files(folder))
    assert [file.name for file, _ in known] == ["train.py"]


def test_an_edited_check_and_an_edited_page_are_asked_anew(folder: Path, tmp_path: Path) -> None:
    checkout = tmp_path / "checkout"
    for part in ("ta_lint", "rules"):
        shutil.copytree(ROOT / part, checkout / part, ignore=shutil.ignore_patterns("__pycache__"))
    (checkout / "pyproject.toml").touch()

    def said() -> str:
        command = [sys.executable, "-P", "-m", "ta_lint", "check", "--select=TA401", "--format=json"]
        environment = {**os.environ, "PYTHONPATH": str(checkout), "PYTHONDONTWRITEBYTECODE": ""}
        return subprocess.run(command, cwd=folder, capture_output=True, text=True, env=environment).stdout

    assert '"severity": "warning"' in said()
    module = checkout / "ta_lint/checks/runs/ta401_adam_with_weight_decay.py"
    module.write_text(module.read_text().replace("scales the decay", "distorts the decay"))
    assert "distorts the decay" in said()
    page = checkout / "rules/TA401-adam-with-weight-decay.md"
    page.write_text(page.read_text().replace('severity = "warning"', 'severity = "error"'))
    assert '"severity": "error"' in said()


def resealed(book: Path, change: Callable[[dict[str, list[object]]], object]) -> None:
    """Change what a cache file says, as somebody who has the user's key."""
    *world, known = json.loads(book.read_bytes().partition(b"\n")[2])
    change(known)
    signed(book, json.dumps([*world, known]).encode())


def entries(book: Path) -> dict[str, Any]:
    """What a cache file remembers of each file."""
    known: dict[str, Any] = json.loads(book.read_bytes().partition(b"\n")[2])[-1]
    return known


def signed(book: Path, body: bytes, key: bytes | None = None) -> None:
    book.write_bytes(SignedFile(book, key or signing_key()).head(body) + b"\n" + body)


SPOILT: dict[str, Callable[[Path], object]] = {
    "empty": lambda book: book.write_bytes(b""),
    "cut off": lambda book: book.write_bytes(book.read_bytes()[:-100]),
    "one bit": lambda book: book.write_bytes(book.read_bytes().replace(b"TA401", b"TA400", 1)),
    "of another version": lambda book: book.write_bytes(book.read_bytes().replace(b"cache 2", b"cache 9", 1)),
    "not ours": lambda book: book.write_bytes(b"\x80\x04\x95" + os.urandom(1000)),
    "no table": lambda book: resealed(book, lambda entries: (entries.clear(), entries.update(a=[1]))),
    "numbers for texts": lambda book: resealed(
        book, lambda entries: entries.update({"train.py": [1, 2, 3, 4]})
    ),
    "an unknown rule": lambda book: resealed(
        book, lambda entries: entries["train.py"][1][0].update(rule="TA999")
    ),
    "a place in another file": lambda book: resealed(
        book, lambda entries: entries["train.py"][1][0]["site"].update(path="/etc/passwd")
    ),
    "a place that is none": lambda book: resealed(
        book, lambda entries: entries["train.py"][1][0]["site"].update(line="last")
    ),
    "a field less": lambda book: resealed(book, lambda entries: entries["train.py"][1][0].pop("message")),
    "a field more": lambda book: resealed(
        book, lambda entries: entries["train.py"][1][0].update(colour="red")
    ),
    "a number for a message": lambda book: resealed(
        book, lambda entries: entries["train.py"][1][0].update(message=7)
    ),
    "a line before the first": lambda book: resealed(
        book, lambda entries: entries["train.py"][1][0]["site"].update(line=-5, column=0)
    ),
    "nested without end": lambda book: signed(book, b"[" * 100_000 + b"]" * 100_000),
    "a folder": lambda book: (book.unlink(), book.mkdir()),
    "a pipe": lambda book: (book.unlink(), os.mkfifo(book)),
    "a link to nowhere": lambda book: (book.unlink(), book.symlink_to("nowhere")),
}


@pytest.mark.parametrize("spoilt", SPOILT)
def test_a_spoilt_cache_is_not_believed_and_made_anew(folder: Path, spoilt: str) -> None:
    (found,) = lint(folder)["train.py"]
    book = only_book(folder)
    SPOILT[spoilt](book)
    ran = check(folder)
    assert ran.stdout.splitlines()[0] == f"train.py:2:13: TA401 warning: {found.message}"
    assert (ran.stdout.count("TA401"), ran.returncode) == (1, 1)
    if spoilt != "a folder":
        assert not ran.stderr
        assert remembered(folder)["train.py"] is not None


def unsigned(book: Path, body: bytes, head: bytes) -> None:
    book.write_bytes(head + digest_of(body).encode() + b"\n" + body)


def renamed(book: Path, other: Path) -> None:
    """A file that this user has written, in the place of another."""
    assert entries(other)["train.py"][1] == []
    shutil.copy(other, book)


FORGED: dict[str, Callable[[Path, bytes, Path], object]] = {
    "with a digest, as all were once": lambda book, body, _: unsigned(book, body, b"ta-lint cache 1 "),
    "with a digest, of today": lambda book, body, _: unsigned(book, body, signed_file._HEAD),
    "signed by somebody else": lambda book, body, _: signed(book, body, os.urandom(32)),
    "by the user, for other settings": lambda book, _, other: renamed(book, other),
}


@pytest.mark.parametrize("place", [cache.FOLDER, "forged"])
@pytest.mark.parametrize("forged", FORGED)
def test_a_cache_that_comes_with_a_clone_changes_no_result(folder: Path, forged: str, place: str) -> None:
    """A4: not one of `.ta_cache`, nor one that the settings of the clone name, even under the name that it would have."""
    (folder / "pyproject.toml").write_text(f'[tool.ta]\ncache-dir = "{place}"\n')
    check(folder)
    (book,) = (folder / place).glob("findings-*")
    check(folder, "--ignore=TA401")
    (other,) = {*(folder / place).glob("findings-*")} - {book}
    *world, known = json.loads(book.read_bytes().partition(b"\n")[2])
    known["train.py"][1] = []
    body = json.dumps([*world, known]).encode()

    def cloned() -> str:
        for command in ("init -q", "add -f .", "-c user.name=a -c user.email=a@b.c commit -qm all"):
            subprocess.run(["git", *command.split()], cwd=folder, check=True)
        clone = folder.with_name("clone")
        shutil.rmtree(clone, ignore_errors=True)
        subprocess.run(["git", "clone", "-q", folder, clone], check=True)
        assert (clone / place / book.name).is_file()
        return check(clone).stdout

    FORGED[forged](book, body, other)
    assert "TA401" in cloned()
    signed(book, body)  # with the key of this user, it would
    assert "TA401" not in cloned()


def test_what_another_user_remembers_is_neither_believed_nor_lost(
    folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A4: of one folder that both use, as of a copy."""
    lint(folder)
    with monkeypatch.context() as other:
        other.setenv("XDG_STATE_HOME", str(tmp_path / "other"))
        assert remembered(folder)["train.py"] is None
        lint(folder)
        assert remembered(folder)["train.py"]
    assert remembered(folder)["train.py"]
    assert len(list((folder / cache.FOLDER).glob("findings-*"))) == 2


def test_jobs_of_a_ci_with_one_secret_share_a_cache(
    folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TA_CACHE_KEY", "k" * 32)
    lint(folder)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "of a new container"))
    assert remembered(folder)["train.py"]
    assert not (tmp_path / "of a new container").exists()
    monkeypatch.setenv("TA_CACHE_KEY", "K" * 32)
    assert remembered(folder)["train.py"] is None


def test_a_secret_that_can_be_guessed_is_refused(folder: Path) -> None:
    ran = check(folder, env={**os.environ, "TA_CACHE_KEY": "secret"})
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr.startswith("ta-lint: error: TA_CACHE_KEY: has fewer than 32 characters")


def test_without_a_place_for_a_key_there_is_one_warning_and_no_cache(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    ran = check(folder, env={**os.environ, "XDG_STATE_HOME": str(tmp_path / "file")})
    assert (ran.returncode, ran.stdout.count("TA401")) == (1, 1)
    (line,) = ran.stderr.splitlines()
    assert "Not a directory; TA_CACHE_KEY may hold a key, --no-cache does without" in line
    assert not (folder / cache.FOLDER).exists()


@pytest.mark.parametrize("words", [(), ("--cache-dir=.ta_cache",)])
def test_nothing_is_written_where_a_link_of_the_project_leads(
    folder: Path, tmp_path: Path, words: tuple[str, ...]
) -> None:
    """A4: a repository chooses what its links name."""
    (tmp_path / "elsewhere").mkdir()
    (folder / cache.FOLDER).symlink_to(tmp_path / "elsewhere")
    ran = check(folder, *words)
    assert "leads out of the project by a link; --cache-dir names another place" in ran.stderr
    assert not list((tmp_path / "elsewhere").iterdir())


@pytest.mark.parametrize("obstacle", ["a file in its place", "a full disk"])
def test_a_cache_that_cannot_be_written_is_one_warning_and_no_error(folder: Path, obstacle: str) -> None:
    limit = None
    if obstacle == "a full disk":
        limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (300, 300))
    else:
        (folder / cache.FOLDER).touch()
    ran = check(folder, preexec_fn=limit)
    assert (ran.returncode, ran.stdout.count("TA401")) == (1, 1)
    (line,) = ran.stderr.splitlines()
    assert line.startswith("ta-lint: warning: the cache cannot be written")
    assert "--no-cache" in line
    assert not list(folder.glob(f"{cache.FOLDER}/.findings*"))
    assert not check(folder, "--quiet", preexec_fn=limit).stderr


def test_a_cache_folder_is_hidden_from_git_and_from_backups(folder: Path) -> None:
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    check(folder)
    shown = subprocess.run(["git", "status", "--short"], cwd=folder, capture_output=True, text=True).stdout
    assert cache.FOLDER not in shown
    tag = (folder / cache.FOLDER / "CACHEDIR.TAG").read_text()
    assert tag.startswith("Signature: 8a477f597d28d172789f06886806bc55")


def test_a_folder_that_was_there_gets_no_marks(folder: Path, tmp_path: Path) -> None:
    check(folder, f"--cache-dir={tmp_path}")
    assert list(tmp_path.glob("findings-*"))
    assert not (tmp_path / ".gitignore").exists()


def test_the_command_line_names_the_place_before_the_environment_and_that_before_the_settings(
    folder: Path, tmp_path: Path
) -> None:
    (folder / "pyproject.toml").write_text('[tool.ta]\ncache-dir = "set"\n')
    places = {"given": tmp_path / "given", "variable": tmp_path / "variable", "set": folder / "set"}
    environment = {**os.environ, "TA_CACHE_DIR": str(places["variable"])}

    def made() -> list[str]:
        found = [name for name, place in places.items() if place.is_dir()]
        for name in found:
            shutil.rmtree(places[name])
        return found

    check(folder, "--cache-dir=../given", env=environment)
    assert made() == ["given"]
    check(folder, env=environment)
    assert made() == ["variable"]
    check(folder)
    assert made() == ["set"]
    assert not (folder / cache.FOLDER).exists()


@pytest.mark.parametrize("words", [("--no-cache",), ("--diff",), ("--fix",)])
def test_no_cache_is_made_where_none_is_asked_for(folder: Path, words: tuple[str, ...]) -> None:
    check(folder, *words)
    assert not (folder / cache.FOLDER).exists()


def test_standard_input_is_neither_looked_up_nor_remembered(folder: Path) -> None:
    check(folder)
    ran = check(folder, "-", "--stdin-filename=train.py", input=CLEAN)
    assert (ran.returncode, ran.stdout.count("TA401")) == (0, 0)
    assert remembered(folder)["train.py"]


HELPER = "def step(loss, optimizer):\n    loss.backward()\n    optimizer.step()\n"
CALLER = (
    "import torch\nfrom helpers import step\n\nmodel = torch.nn.Linear(2, 2)\n"
    "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\nfor x in data:\n    step(model(x).sum(), optimizer)\n"
)


def test_a_result_is_known_until_a_file_changes_that_it_was_taken_from(folder: Path) -> None:
    write(folder / "helpers.py", HELPER)
    write(folder / "loop.py", CALLER)
    write(folder / "other.py", "import torch\n")
    assert len(lint(folder, "TA600")["helpers.py"]) == 1
    assert None not in remembered(folder, "TA600").values()
    write(folder / "other.py", "import torch\n\nprint(torch.zeros(1))\n")
    known = remembered(folder, "TA600")
    assert [name for name, findings in known.items() if findings is None] == ["other.py"]
    write(folder / "loop.py", CALLER.replace("    step(", "    optimizer.zero_grad()\n    step("))
    assert remembered(folder, "TA600")["helpers.py"] is None
    assert lint(folder, "TA600")["helpers.py"] == []


def test_a_new_file_that_imports_another_has_it_linted_again(folder: Path) -> None:
    write(folder / "helpers.py", f"import torch\n\n\n{HELPER}")
    assert lint(folder, "TA600")["helpers.py"] == []
    write(folder / "loop.py", CALLER)
    assert remembered(folder, "TA600")["helpers.py"] is None
    assert len(lint(folder, "TA600")["helpers.py"]) == 1
    (folder / "loop.py").unlink()
    assert lint(folder, "TA600")["helpers.py"] == []


def test_a_result_depends_on_what_its_own_linting_asked_for(folder: Path) -> None:
    """Each part runs the step of the one before, which is linted first. What that asked for is no business of the last."""
    for number in range(1, 9):
        write(
            folder / f"part{number}.py",
            f"import torch\nfrom part{number - 1} import step{number - 1}\n\n\n"
            f"def step{number}(loss, optimizer):\n    loss.backward()\n    optimizer.step()\n\n\n"
            f"model = torch.nn.Linear(2, 2)\noptimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
            f"for x in data:\n    step{number - 1}(model(x).sum(), optimizer)\n",
        )
    lint(folder, "TA600")
    read, seen, *_ = entries(only_book(folder))["part8.py"][2]
    used = {*read, *seen}
    assert "part7.py" in used
    assert used.isdisjoint({"part1.py", "part2.py", "part3.py"})


def test_an_edit_that_changes_no_import_leaves_the_results_of_files_that_it_does_not_import(
    folder: Path,
) -> None:
    write(folder / "helpers.py", HELPER)
    write(folder / "apart.py", HELPER)
    write(folder / "other.py", "import torch\nfrom helpers import unused\n")
    lint(folder, "TA600")
    write(folder / "other.py", "import torch\nfrom helpers import unused\n\nprint(torch.zeros(1))\n")
    changed = [name for name, found in remembered(folder, "TA600").items() if found is None]
    assert changed == ["helpers.py", "other.py"]  # what a script does in a file that it imports counts there
    write(folder / "other.py", f"import torch\nfrom helpers import step\n{CALLER}")
    assert remembered(folder, "TA600")["helpers.py"] is None


def test_of_a_file_that_many_import_a_comment_leaves_the_results_of_those_that_only_name_it(
    folder: Path,
) -> None:
    write(folder / "registry.py", "import torch\n\nnames = []\n")
    users = [f"model{number}.py" for number in range(20)]
    for user in users:
        write(folder / user, f"import torch\nfrom registry import names\n\nnames.append({user!r})\n{BUGGY}")
    found = lint(folder, "TA401")
    write(folder / "registry.py", "import torch\n\nnames = []  # of models\n")
    assert [name for name, known in remembered(folder, "TA401").items() if known is None] == ["registry.py"]
    write(folder / "registry.py", "import torch\nfrom other import names\n")
    assert all(remembered(folder, "TA401")[user] is None for user in users)
    assert lint(folder, "TA401") == found


def test_a_crash_of_a_check_is_not_remembered(folder: Path) -> None:
    from dataclasses import replace

    (found,) = lint(folder)["train.py"]
    (file,) = files(folder, "TA401", "TA600")
    known = Cache(folder / cache.FOLDER, folder)
    world = cache.World({"train.py": cache.FileState("0" * 32, None, "", "")}, {}, {})
    learned = cache.Learned(cache.Context([], [], [], [], []), world, is_steady=True, outlines={})
    known.keep(file, [replace(found, rule="TA000")], learned)
    assert known.find([file]) == ([], [file])


def test_what_nobody_looks_up_for_a_month_is_dropped(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(folder / "old.py", BUGGY)
    lint(folder)
    lint(folder, "TA600")
    (folder / "old.py").unlink()
    for book in (folder / cache.FOLDER).glob("findings-*"):
        os.utime(book, (1_700_000_000, 1_700_000_000))
    later = time.time_ns() + 40 * 86_400 * 10**9
    monkeypatch.setattr(time, "time_ns", lambda: later)
    write(folder / "new.py", BUGGY)
    lint(folder)
    assert set(entries(only_book(folder))) == {"new.py", "train.py"}


def test_of_too_much_the_oldest_settings_are_dropped(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for age, rule in enumerate(("TA600", "TA601", "TA602")):
        lint(folder, rule)
        newest = max((folder / cache.FOLDER).glob("findings-*"), key=lambda book: book.stat().st_mtime)
        os.utime(newest, (time.time() - 1000 + age, time.time() - 1000 + age))
    monkeypatch.setattr(cache, "_BYTES_KEPT", 2 * newest.stat().st_size + 700)
    write(folder / "train.py", CLEAN)
    lint(folder, "TA401")
    kept = {
        rule
        for rule in ("TA600", "TA601", "TA602", "TA401")
        if remembered(folder, rule)["train.py"] is not None
    }
    assert "TA401" in kept
    assert "TA600" not in kept


def test_a_run_where_nothing_has_changed_loads_no_parser_and_starts_no_process(folder: Path) -> None:
    write(folder / "train.py", CLEAN)
    code = (
        "import sys; from ta_lint.cli import main\n"
        "main(['check', '--quiet', '--jobs=2'])\n"
        "print(*{name.split('.')[0] for name in sys.modules})"
    )
    run = lambda: subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True)
    run()
    loaded = set(run().stdout.split())
    assert "ta_lint" in loaded
    assert not loaded & {"libcst", "pyflakes", "rich", "multiprocessing", "concurrent", "msgspec", "symtable"}


def test_two_runs_at_once_leave_a_cache_that_serves_with_all_that_one_of_them_found(folder: Path) -> None:
    for part in ("left", "right"):
        (folder / part).mkdir()
        for number in range(12):
            write(folder / part / f"{number}.py", BUGGY)
    command = [sys.executable, "-m", "ta_lint", "check", "--select=TA401", "--quiet", "--format=concise"]
    runs = [
        subprocess.Popen([*command, part], cwd=folder, stdout=subprocess.PIPE) for part in ("left", "right")
    ]
    said = [run.communicate(timeout=60)[0] for run in runs]
    assert [text.count(b"TA401") for text in said] == [12, 12]
    known = remembered(folder)
    assert any(all(known[f"{part}/{number}.py"] for number in range(12)) for part in ("left", "right"))
    assert check(folder).stdout == check(folder, "--no-cache").stdout


def test_a_run_that_is_killed_at_any_moment_leaves_a_cache_that_serves(folder: Path) -> None:
    for number in range(40):
        write(folder / f"{number}.py", BUGGY)
    fresh = check(folder, "--no-cache").stdout
    code = (
        "import sys, ta_lint.cache; from ta_lint.cli import main\n"
        "ta_lint.cache._SECONDS_BETWEEN_WRITES = 0\n"
        "main(['check', '--select=TA401,TA001', '--quiet', '--jobs=1'])"
    )
    killed = 0
    for delay in (0, 0.01, 0.03, 0.1):  # of the moments when it writes; before, there is nothing to spoil
        run = subprocess.Popen([sys.executable, "-c", code], cwd=folder, stdout=subprocess.DEVNULL)
        while run.poll() is None and not list(folder.glob(f"{cache.FOLDER}/*findings-*")):
            time.sleep(0.001)
        time.sleep(delay)
        run.kill()
        killed += run.wait() == -signal.SIGKILL
        assert check(folder).stdout == fresh
        shutil.rmtree(folder / cache.FOLDER)
    assert killed


def clean(folder: Path, *words: str, **environment: str) -> str:
    command = [sys.executable, "-m", "ta_lint", "clean", *words]
    ran = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, env={**os.environ, **environment}
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    return ran.stdout


def test_clean_removes_the_caches_of_a_project_and_below_and_says_so_once(
    folder: Path, tmp_path: Path
) -> None:
    nested = folder / "vendored" / "lib"
    nested.mkdir(parents=True)
    write(nested / "train.py", BUGGY)
    check(folder)
    check(folder, "vendored/lib", "--cache-dir=vendored/lib/.ta_cache")
    check(folder, f"--cache-dir={tmp_path / 'named'}")
    said = clean(folder, TA_CACHE_DIR=str(tmp_path / "named")).splitlines()
    assert [line.partition(":")[0] for line in said] == [
        "Removed .ta_cache",
        "Removed vendored/lib/.ta_cache",
        "Removed ../named",
    ]
    assert not list(tmp_path.rglob("findings-*"))
    assert not (folder / cache.FOLDER).exists()
    assert clean(folder) == ""


def test_clean_leaves_what_is_somebody_elses(folder: Path) -> None:
    check(folder)
    (folder / cache.FOLDER / "notes.txt").write_text("mine")
    (folder / cache.FOLDER / ".gitignore").write_text("mine as well")
    assert "stays" in clean(folder)
    assert {path.name for path in (folder / cache.FOLDER).iterdir()} == {"notes.txt", ".gitignore"}


def test_clean_leaves_files_of_others_that_have_such_a_name(folder: Path) -> None:
    """A7: also where the settings say that the folder is the cache, and a name is just as ours are."""
    results = folder / "results"
    results.mkdir()
    (folder / "pyproject.toml").write_text('[tool.ta]\ncache-dir = "results"\n')
    check(folder)
    (own,) = results.iterdir()
    left_over = results / f".{own.name}.0123abcd"
    left_over.touch()
    foreign = [
        results / "findings-mine.json",
        results / own.name.replace(own.name[9:12], "abc"),
        results / f".findings-mine.json.{'0' * 8}",
    ]
    for path in foreign:
        path.write_text('{"mine": true}')
    (results / f"findings-{'0' * 32}.json").symlink_to(own)
    clean(folder)
    assert {path.name for path in results.iterdir()} == {
        *(path.name for path in foreign),
        f"findings-{'0' * 32}.json",
    }


def test_old_files_of_others_that_have_such_a_name_are_not_dropped(folder: Path) -> None:
    """A7: nor are they when a cache is tidied up."""
    (folder / cache.FOLDER).mkdir()
    foreign = [folder / cache.FOLDER / name for name in ("findings-mine.json", f"findings-{'0' * 32}.json")]
    for path in foreign:
        os.utime(write(path, "{}"), (1_000_000_000, 1_000_000_000))
    lint(folder)
    assert all(path.exists() for path in foreign)
    assert len(list((folder / cache.FOLDER).iterdir())) == 3


def test_clean_does_not_follow_a_link_of_the_project(folder: Path, tmp_path: Path) -> None:
    check(folder, f"--cache-dir={tmp_path / 'other'}")
    (folder / cache.FOLDER).symlink_to(tmp_path / "other")
    clean(folder)
    assert list((tmp_path / "other").glob("findings-*"))
