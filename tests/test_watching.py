"""`ta-lint check --watch` as a user has it: a real process on a terminal, real changes of files, what it shows."""

import contextlib
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import watchfiles
from commands import python

from ta_lint.cli import main
from ta_lint.commands.check.settings import Settings
from ta_lint.commands.check.watch import follow
from ta_lint.commands.check.watched_files import Reading, WatchedFiles
from ta_lint.core.config import Configs, Options
from ta_lint.file import File
from ta_lint.runner import Result, lint_files

ADAM = "import torch\n\nmodel = torch.nn.Linear(2, 2)\noptimizer = torch.optim.Adam(model.parameters(), weight_decay=0.1)\n"
CLEAN = ADAM.replace("Adam(", "AdamW(").replace("0.1", "0.01")
LOAD = "import torch\n\nstate = torch.load('last.pt', weights_only=False)\n"
WAITING = "Watching for file changes."
DEADLINE = 60  # seconds until a test gives up; no test says how fast it is
CLEARED = "\x1b[H\x1b[2J"
COUNTED = """
import gc, os, signal, sys
from ta_lint.cli import main

def count(*_):
    gc.collect()
    with open("blocks.new", "w") as file:
        file.write(str(sys.getallocatedblocks()))
    os.replace("blocks.new", "blocks")

signal.signal(signal.SIGUSR1, count)
sys.exit(main())
"""
"""ta-lint, which writes at SIGUSR1 how many blocks of memory Python's objects take."""


class Watcher:
    """A `ta-lint check --watch` at work, and what it shows on its terminal."""

    def __init__(self, folder: Path, *words: str, program: tuple[str, str] = ("-m", "ta_lint")) -> None:
        self._leader, terminal = pty.openpty()
        termios.tcsetwinsize(terminal, (50, 200))
        self.process = subprocess.Popen(
            [sys.executable, *program, "check", "--watch", "--format=concise", *words],
            cwd=folder,
            env={**os.environ, "TERM": "xterm", "NO_COLOR": "1"},
            preexec_fn=lambda: os.login_tty(terminal),
        )
        os.close(terminal)
        self._unread = ""

    def report(self) -> str:
        """The next report, once it is complete."""
        deadline = time.monotonic() + DEADLINE
        while WAITING not in self._unread:
            self._unread += self._read(deadline, f"no report, only {self._unread!r}")
        shown, _, self._unread = self._unread.partition(WAITING)
        return shown.replace("\r\n", "\n")

    def until(self, right: Callable[[str], bool]) -> list[str]:
        """The reports up to the first that is right: who writes slowly is seen twice."""
        shown = [self.report()]
        while not right(shown[-1]):
            shown.append(self.report())
        return shown

    def type(self, key: bytes) -> str:
        """Press a key that ends it; returns the last that it shows."""
        os.write(self._leader, key)
        last = self._unread
        with contextlib.suppress(OSError):  # Linux says so at the end of a terminal
            while part := self._read(time.monotonic() + DEADLINE, f"it goes on after {key!r}"):
                last += part
        self.process.wait(DEADLINE)
        return last

    def _read(self, deadline: float, otherwise: str) -> str:
        ready, _, _ = select.select([self._leader], [], [], max(0, deadline - time.monotonic()))
        assert ready, f"{otherwise}, for {DEADLINE} s"
        return os.read(self._leader, 65536).decode()

    def end(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(DEADLINE)
        os.close(self._leader)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A repository with two files, one of which has a finding."""
    (tmp_path / ".git").mkdir()
    (tmp_path / "train.py").write_text(ADAM)
    (tmp_path / "fine.py").write_text(CLEAN)
    return tmp_path


@pytest.fixture
def watching(project: Path) -> Iterator[Callable[..., Watcher]]:
    """Starts watchers in the project, and ends them with the test."""
    watchers: list[Watcher] = []

    def start(*words: str, **started: tuple[str, str]) -> Watcher:
        watchers.append(Watcher(project, *words, **started))
        return watchers[-1]

    yield start
    for watcher in watchers:
        watcher.end()


Watching = Callable[..., Watcher]


def reading_of(project: Path) -> Reading:
    """The default settings, and no baseline."""
    return Reading(Settings(Configs(Options(), project), project), [], [])


def group_lives(leader: int) -> bool:
    """Whether a process is left of the group that a process led."""
    try:
        os.killpg(leader, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_report_comes_first_alone_on_the_screen_and_says_when(watching: Watching) -> None:
    before, _, shown = watching().report().rpartition(CLEARED)
    assert "TA401" not in before  # a bar, where linting takes long
    assert "train.py:4:13: TA401 warning" in shown
    assert re.search(r"^\[\d\d:\d\d:\d\d\] Found 1 warning in 1 file\. $", shown, re.MULTILINE)


def test_a_changed_file_is_linted_again_and_what_was_found_in_others_stays(
    project: Path, watching: Watching
) -> None:
    watcher = watching()
    watcher.report()
    (project / "fine.py").write_text(LOAD)
    shown = watcher.until(lambda shown: "fine.py" in shown)[-1]
    assert CLEARED in shown
    assert "fine.py:3:9: TA700" in shown
    assert "train.py:4:13: TA401" in shown


def test_a_mended_file_is_clean(project: Path, watching: Watching) -> None:
    watcher = watching()
    watcher.report()
    (project / "train.py").write_text(CLEAN)
    assert "All checks passed. " in watcher.until(lambda shown: "TA401" not in shown)[-1]


def test_new_files_are_found_and_deleted_ones_forgotten(project: Path, watching: Watching) -> None:
    watcher = watching()
    watcher.report()
    (project / "models" / "deep").mkdir(parents=True)
    (project / "models" / "deep" / "new.py").write_text(ADAM)
    watcher.until(lambda shown: "models/deep/new.py:4:13: TA401" in shown)
    (project / "train.py").unlink()
    assert "new.py" in watcher.until(lambda shown: "train.py" not in shown)[-1]
    shutil.rmtree(project / "models")
    watcher.until(lambda shown: "All checks passed" in shown)


def test_a_folder_that_moves_takes_its_files_along(project: Path, watching: Watching) -> None:
    (project / "old").mkdir()
    (project / "old" / "loop.py").write_text(ADAM)
    watcher = watching()
    assert "old/loop.py" in watcher.report()
    (project / "old").rename(project / "v1.0")
    assert "old/loop.py" not in watcher.until(lambda shown: "v1.0/loop.py:4:13" in shown)[-1]


def test_an_editor_that_saves_by_renaming_is_followed(project: Path, watching: Watching) -> None:
    watcher = watching("train.py")  # by name: what is at that name now is another file
    watcher.report()
    for text, right in ((CLEAN, "All checks passed"), (ADAM, "TA401"), (CLEAN, "All checks passed")):
        (project / ".train.py.tmp").write_text(text)
        (project / ".train.py.tmp").replace(project / "train.py")
        watcher.until(lambda shown, right=right: right in shown)  # type: ignore[misc]


def test_what_is_excluded_or_ignored_stays_out_and_is_no_reason_to_report(
    project: Path, watching: Watching
) -> None:
    (project / "pyproject.toml").write_text('[tool.ta]\nextend-exclude = ["vendored"]\n')
    (project / ".gitignore").write_text("scratch*.py\n")
    (project / "vendored").mkdir()
    watcher = watching()
    watcher.report()
    (project / "vendored" / "copy.py").write_text(ADAM)
    (project / "scratch_1.py").write_text(ADAM)
    (project / "notes.txt").write_text("torch")
    (project / "train.py").write_text(f"\n{ADAM}")
    (shown,) = watcher.until(lambda shown: "train.py:5:13" in shown)
    assert "Found 1 warning in 1 file." in shown


def test_files_are_linted_only_if_one_has_changed(project: Path) -> None:
    linted: list[list[str]] = []

    def lint(files: list[File], _: Settings) -> Iterator[Result]:
        linted.append([file.name for file in files])
        return lint_files(files, 1)

    files = WatchedFiles([project], lambda: reading_of(project), lint)
    assert files.refresh()
    assert linted == [["fine.py", "train.py"]]
    assert not files.refresh()
    (project / "fine.py").write_text(LOAD)
    assert files.refresh()
    assert linted[1:] == [[], ["fine.py", "train.py"]]
    assert {file.name: [finding.rule for finding in found] for file, found in files.results} == {
        "fine.py": ["TA700"],
        "train.py": ["TA401"],
    }


def test_a_change_of_one_file_shows_in_the_findings_of_another(project: Path) -> None:
    """D1: a watch kept what was found in the files that had not changed themselves."""
    step = "def step(loss, optimizer):\n    loss.backward()\n    optimizer.step()\n"
    loop = (
        "import torch\nfrom fine import step\n\nmodel = torch.nn.Linear(2, 2)\n"
        "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\nfor x in data:\n    optimizer.zero_grad()\n"
        "    step(model(x).sum(), optimizer)\n"
    )
    (project / "fine.py").write_text(step)
    (project / "train.py").write_text(loop)
    files = WatchedFiles([project], lambda: reading_of(project), lambda files, _: lint_files(files, 1))
    files.refresh()
    assert "TA600" not in rules(files, "fine.py")
    (project / "train.py").write_text(loop.replace("    optimizer.zero_grad()\n", ""))
    files.refresh()
    assert "TA600" in rules(files, "fine.py")


def rules(files: WatchedFiles, name: str) -> list[str]:
    """The rules of the findings in a watched file."""
    return [found.rule for file, findings in files.results for found in findings if file.name == name]


def test_changed_settings_hold_at_once_for_all_files(project: Path, watching: Watching) -> None:
    watcher = watching()
    watcher.report()
    (project / "pyproject.toml").write_text('[tool.ta]\nignore = ["TA401"]\n')
    watcher.until(lambda shown: "All checks passed" in shown)
    (project / "pyproject.toml").unlink()
    watcher.until(lambda shown: "train.py:4:13: TA401" in shown)
    (project / "ta-lint.toml").write_text('ignore = ["TA401"]\n')
    watcher.until(lambda shown: "All checks passed" in shown)
    (project / "ta-lint.toml").unlink()
    watcher.until(lambda shown: "train.py:4:13: TA401" in shown)
    (project / ".gitignore").write_text("train.py\n")
    watcher.until(lambda shown: "All checks passed" in shown)


def test_settings_above_the_watched_folder_hold_too(project: Path, watching: Watching) -> None:
    (project / "src").mkdir()
    (project / "train.py").rename(project / "src" / "train.py")
    watcher = watching("src")
    assert "src/train.py:4:13: TA401" in watcher.report()
    (project / "pyproject.toml").write_text('[tool.ta]\nignore = ["TA401"]\n')
    watcher.until(lambda shown: "All checks passed" in shown)
    (project / ".gitignore").write_text("src/train.py\n")
    assert "no Python files" in watcher.until(lambda shown: "warning: no" in shown)[-1]


def test_wrong_settings_are_told_until_they_are_right_and_the_old_ones_hold(
    project: Path, watching: Watching
) -> None:
    (project / "pyproject.toml").write_text('[tool.ta]\nignore = ["TA401"]\n')
    watcher = watching()
    assert "All checks passed" in watcher.report()
    (project / "pyproject.toml").write_text('[tool.ta]\nignor = ["TA700"]\n')
    shown = watcher.until(lambda shown: "error" in shown)[-1]
    assert "pyproject.toml: [tool.ta] has no key 'ignor'; did you mean ignore?" in shown
    assert "what held before stays" in shown
    (project / "fine.py").write_text(LOAD)
    shown = watcher.until(lambda shown: "fine.py:3:9: TA700" in shown)[-1]
    assert "has no key 'ignor'" in shown, "still to be mended"
    assert "TA401" not in shown
    (project / "pyproject.toml").write_text('[tool.ta]\nignore = ["TA700"]\n')
    # between the two halves of a write the file is empty, and nothing ignored
    shown = watcher.until(lambda shown: "error" not in shown and "TA700" not in shown)[-1]
    assert "train.py:4:13: TA401" in shown
    assert watcher.process.poll() is None


def test_a_baseline_written_meanwhile_counts(project: Path, watching: Watching) -> None:
    (project / "pyproject.toml").write_text('[tool.ta]\nbaseline = "known.json"\n')
    assert python(project, "-m", "ta_lint", "check", "--update-baseline").returncode == 0
    watcher = watching()
    assert "All checks passed (1 in the baseline)." in watcher.report()
    (project / "fine.py").write_text(LOAD)
    watcher.until(lambda shown: "fine.py:3:9: TA700" in shown)
    assert python(project, "-m", "ta_lint", "check", "--update-baseline").returncode == 0
    watcher.until(lambda shown: "All checks passed (2 in the baseline)." in shown)
    (project / "known.json").unlink()
    assert "TA401" not in watcher.until(lambda shown: "known.json does not exist" in shown)[-1]


def test_what_a_single_run_warns_of_is_told_with_each_report(project: Path, watching: Watching) -> None:
    (project / "pyproject.toml").write_text('[tool.ta]\nbaseline = "known.json"\n')
    assert python(project, "-m", "ta_lint", "check", "--update-baseline", "--no-cache").returncode == 0
    (project / ".ta_cache").write_text("in the way")
    watcher = watching()
    shown = watcher.report()
    assert "warning: the cache cannot be written" in shown
    assert "nothing" not in shown
    (project / "train.py").write_text(CLEAN)
    shown = watcher.until(lambda shown: "All checks passed. " in shown)[-1]
    assert "1 entry of known.json matches nothing; --update-baseline drops them" in shown


def test_a_watched_folder_may_go_and_come_back(project: Path, watching: Watching) -> None:
    (project / "src").mkdir()
    (project / "src" / "loop.py").write_text(ADAM)
    watcher = watching("src")
    assert "src/loop.py" in watcher.report()
    for _ in range(2):
        shutil.rmtree(project / "src")
        watcher.until(lambda shown: "no Python files" in shown)
        (project / "src").mkdir()
        (project / "src" / "loop.py").write_text(ADAM)
        watcher.until(lambda shown: "src/loop.py:4:13" in shown)


def test_a_folder_that_comes_and_goes_before_it_can_be_watched_is_reported_gone(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = project / "src" / "loop.py"

    def come() -> None:
        source.parent.mkdir()
        source.write_text(ADAM)

    def watch_late(*folders: str, **options: Any) -> Iterator[Any]:
        if not folders and not source.exists():
            come()
        for tick, changes in enumerate(watch_folders(*folders, **options)):
            assert tick < 100, "the folder is gone, and nobody has said so"
            yield changes

    def show() -> None:
        shown.append([file.name for file, _ in files.results])
        if not shown[-1]:
            raise KeyboardInterrupt
        shutil.rmtree(source.parent)

    watch_folders = watchfiles.watch
    monkeypatch.setattr(watchfiles, "watch", watch_late)
    come()
    shown: list[list[str]] = []
    files = WatchedFiles([source.parent], lambda: reading_of(project), lambda files, _: lint_files(files, 1))
    with pytest.raises(KeyboardInterrupt):
        follow(files, show)
    assert shown == [["src/loop.py"], ["src/loop.py"], []]


def test_many_changes_at_once_are_few_reports(project: Path, watching: Watching) -> None:
    """As a checkout of another branch makes them."""
    shutil.rmtree(project / ".git")
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b"]
    for words in (["init", "-q", "-b", "main"], ["add", "."], ["commit", "-qm", "a"], ["switch", "-qc", "b"]):
        subprocess.run([*git, *words], cwd=project, check=True)
    for number in range(150):
        (project / f"loop_{number}.py").write_text(ADAM)
    (project / "train.py").unlink()
    for words in (["add", "."], ["commit", "-qm", "b"], ["switch", "-q", "main"]):
        subprocess.run([*git, *words], cwd=project, check=True)
    watcher = watching()
    assert "Found 1 warning in 1 file." in watcher.report()
    subprocess.run([*git, "switch", "-q", "b"], cwd=project, check=True)
    shown = watcher.until(lambda shown: "Found 150 warnings in 150 files." in shown)
    assert len(shown) < 15
    subprocess.run([*git, "switch", "-q", "main"], cwd=project, check=True)
    assert len(watcher.until(lambda shown: "Found 1 warning in 1 file." in shown)) < 15


def test_ctrl_c_ends_it_with_status_0_and_leaves_nothing(project: Path, watching: Watching) -> None:
    before = {path: path.read_bytes() for path in project.rglob("*.*") if path.is_file()}
    watcher = watching("--no-cache")
    watcher.report()
    assert "Traceback" not in watcher.type(b"\x03")
    assert watcher.process.returncode == 0
    assert {path: path.read_bytes() for path in project.rglob("*.*") if path.is_file()} == before
    assert not group_lives(watcher.process.pid)


def test_ctrl_c_ends_the_first_run_and_its_workers(project: Path, watching: Watching) -> None:
    source = ADAM + "".join(f"def f{number}(x):\n    return x + {number}\n" for number in range(3000))
    for number in range(60):
        (project / f"long_{number}.py").write_text(source)
    watcher = watching("--jobs=2", "--quiet")
    workers = Path(f"/proc/{watcher.process.pid}/task/{watcher.process.pid}/children")
    while watcher.process.poll() is None and not workers.read_text():
        time.sleep(0.01)
    assert "Traceback" not in watcher.type(b"\x03")
    assert watcher.process.returncode == 0
    deadline = time.monotonic() + DEADLINE
    while group_lives(watcher.process.pid):  # until the system has ended those that were told to
        assert time.monotonic() < deadline


def test_a_long_watch_takes_no_more_memory(project: Path, watching: Watching) -> None:
    body = "".join(f"def f{number}(x):\n    return x + {number}\n" for number in range(300))
    watcher = watching("fine.py", program=("-c", COUNTED))
    watcher.report()

    def blocks(changes: range) -> int:
        for change in changes:
            (project / "fine.py").write_text(f"{LOAD}# {change}\n{body}" if change % 2 else f"{CLEAN}{body}")
            watcher.until(lambda shown, odd=change % 2: ("TA700" in shown) is bool(odd))  # type: ignore[misc]
        watcher.process.send_signal(signal.SIGUSR1)
        deadline = time.monotonic() + DEADLINE
        while not (project / "blocks").exists():
            assert time.monotonic() < deadline
            time.sleep(0.01)
        counted = int((project / "blocks").read_text())
        (project / "blocks").unlink()
        return counted

    warm = blocks(range(15))
    assert blocks(range(15, 55)) < warm + 2_000  # the file alone takes 20,000


def test_a_pipe_gets_no_control_characters(project: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "ta_lint", "check", "--watch"], cwd=project, stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        shown = ""
        while WAITING not in shown:
            shown += process.stdout.readline()
        process.send_signal(signal.SIGINT)
        shown += process.communicate(timeout=DEADLINE)[0]
    finally:
        process.kill()
    assert process.returncode == 0
    assert "TA401" in shown
    assert "\x1b" not in shown


@pytest.mark.parametrize(
    "words",
    [
        ["--fix"],
        ["--diff"],
        ["--output", "x.txt"],
        ["--format", "sarif"],
        ["--format", "json"],
        ["--format", "github"],
        ["--update-baseline"],
        ["-"],
    ],
    ids=" ".join,
)
def test_what_a_reader_of_the_screen_has_no_use_for_is_refused(
    words: list[str], project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", "--watch", *words]) == 2
    named = words[0] if words[0] != "--format" else " ".join(words)
    assert f"error: --watch: not together with {named};" in capsys.readouterr().err


def test_what_is_wrong_from_the_start_ends_it(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(project)
    assert main(["check", "--watch", "missing.py"]) == 2
    assert "missing.py: no such file or folder" in capsys.readouterr().err
    (project / "pyproject.toml").write_text("[tool.ta]\nselect = 3\n")
    assert main(["check", "--watch"]) == 2
    assert "[tool.ta] select" in capsys.readouterr().err


def test_without_the_extra_the_error_names_the_remedy(project: Path) -> None:
    code = "import sys; sys.modules['watchfiles'] = None; from ta_lint.cli import main; sys.exit(main(sys.argv[1:]))"
    ran = python(project, "-c", code, "check", "--watch")
    assert ran.returncode == 2
    assert "--watch needs watchfiles: pip install 'ta-lint[watch]'" in ran.stderr
