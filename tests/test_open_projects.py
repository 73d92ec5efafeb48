"""A project that stays in memory, as in an editor: each look at it is as the first one, whatever happened on disk and in open files."""

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from edited_project import LONG_AGO, forget, in_a_fork

from ta_lint.core.config import Configs, Options
from ta_lint.engine import lint
from ta_lint.file import File
from ta_lint.project.project import renew
from ta_lint.server.needs import needs_of

CLEARS = "def clear(optimizer):\n    optimizer.zero_grad()\n"
CLEARS_NOT = "def clear(optimizer):\n    optimizer.state_dict()\n"
TRAINS = """\
import torch
from helpers import clear

model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(10):
    clear(optimizer)
    model(torch.randn(8, 4)).square().mean().backward()
    optimizer.step()
"""
# A file that has no word of torch: it is about training if a file that uses it is.
LOOP = "def fit(model, loader, optimizer):\n    for x in loader:\n        model(x).sum().backward()\n        optimizer.step()\n"
USES_THE_LOOP = "import torch\nfrom loop import fit\n\nfit(torch.nn.Linear(4, 1), loader, optimizer)\n"
USES_NOTHING = USES_THE_LOOP.replace("from loop import fit\n", "fit = print\n")
NET = "import torch\nfrom base import Base\n\n\nclass Net(Base):\n    def __init__(self):\n        self.layer = torch.nn.Linear(2, 2)\n"
PLAIN = "import torch\n\n\nclass Base:\n    def __init__(self):\n        self.layer = torch.nn.Linear(2, 2)\n"
MODULE = PLAIN.replace("Base:", "Base(torch.nn.Module):").replace(
    "        self.", "        super().__init__()\n        self."
)


class Open:
    """A folder that an editor has open."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        forget()

    def save(self, name: str, text: str) -> None:
        """A file that was written long ago, as far as its times tell: what is written just now is read again in any case."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        os.utime(path, (LONG_AGO, LONG_AGO))

    def rules(self, name: str, text: str | None = None) -> set[str]:
        """The rules with a finding in a file, with an unsaved text if one is given; the same as in an editor that was just started."""
        return {shown.partition(":")[0] for shown in self.shown(name, text)}

    def shown(self, name: str, text: str | None = None) -> list[str]:
        """The same with severities, such as `TA600:error`."""
        data = (text if text is not None else (self.folder / name).read_text()).encode()
        shown = self._look(name, data)
        assert shown == in_a_fork(lambda: self._look_first(name, data))
        return shown.split()

    def _look_first(self, name: str, data: bytes) -> str:
        forget()
        return self._look(name, data)

    def _look(self, name: str, data: bytes) -> str:
        """As the server does."""
        renew()
        config = Configs(Options(select=["TA415", "TA600"], isolated=True), self.folder).root_config
        file = File(self.folder / name, name, config, given=data)
        findings = lint(file, data)
        needs_of(file, data)
        return " ".join(f"{found.rule}:{found.severity.value}" for found in findings)


@pytest.fixture
def project(tmp_path: Path) -> Open:
    (tmp_path / "pyproject.toml").touch()
    return Open(tmp_path)


# -- what a folder has -----------------------------------------------------------------------------------------


def test_a_file_that_appears_is_seen(project: Open) -> None:
    project.save("train.py", TRAINS)
    assert project.rules("train.py") == set()
    project.save("helpers.py", CLEARS_NOT)
    assert project.rules("train.py") == {"TA600"}


def test_a_file_that_appears_before_the_one_that_was_meant_is_seen(project: Open) -> None:
    project.save("src/helpers.py", CLEARS)
    project.save("train.py", TRAINS)
    assert project.rules("train.py") == set()
    project.save("helpers.py", CLEARS_NOT)
    assert project.rules("train.py") == {"TA600"}


def test_a_file_in_a_package_that_appears_is_seen(project: Open) -> None:
    project.save("models/__init__.py", "")
    project.save("train.py", TRAINS.replace("from helpers", "from models.helpers"))
    assert project.rules("train.py") == set()
    project.save("models/helpers.py", CLEARS_NOT)
    assert project.rules("train.py") == {"TA600"}


def test_a_folder_that_appears_is_seen(project: Open) -> None:
    project.save("train.py", TRAINS.replace("from helpers", "from models.helpers"))
    assert project.rules("train.py") == set()
    project.save("models/helpers.py", CLEARS_NOT)
    assert project.rules("train.py") == {"TA600"}


def test_a_file_that_becomes_a_package_is_seen(project: Open) -> None:
    project.save("helpers.py", CLEARS_NOT)
    project.save("train.py", TRAINS)
    assert project.rules("train.py") == {"TA600"}
    (project.folder / "helpers.py").unlink()
    project.save("helpers/__init__.py", CLEARS)
    assert project.rules("train.py") == set()


def test_a_file_that_goes_is_no_longer_seen(project: Open) -> None:
    """It was deleted outside of the editor."""
    project.save("helpers.py", CLEARS_NOT)
    project.save("train.py", TRAINS)
    assert project.rules("train.py") == {"TA600"}
    (project.folder / "helpers.py").unlink()
    assert project.rules("train.py") == set()


def test_a_folder_that_goes_is_no_longer_seen(project: Open) -> None:
    project.save("models/helpers.py", CLEARS_NOT)
    project.save("train.py", TRAINS.replace("from helpers", "from models.helpers"))
    assert project.rules("train.py") == {"TA600"}
    shutil.rmtree(project.folder / "models")
    assert project.rules("train.py") == set()


def test_an_open_file_that_goes_is_seen_by_no_other(project: Open) -> None:
    project.save("helpers.py", CLEARS_NOT)
    project.save("train.py", TRAINS)
    assert project.rules("helpers.py", CLEARS_NOT) == set()
    assert project.rules("train.py") == {"TA600"}
    (project.folder / "helpers.py").unlink()
    assert project.rules("helpers.py", CLEARS_NOT) == set()
    assert project.rules("train.py") == set()


def test_a_user_that_appears_or_goes_is_seen(project: Open) -> None:
    project.save("loop.py", LOOP)
    assert project.rules("loop.py") == set()
    project.save("train.py", USES_THE_LOOP)
    assert project.rules("loop.py") == {"TA600"}
    (project.folder / "train.py").unlink()
    assert project.rules("loop.py") == set()


def test_a_command_that_appears_and_runs_the_code_is_seen(project: Open) -> None:
    """It is no file that the linter reads for anything else."""
    head, body = TRAINS.split("\n\n")
    function = f"{head}\n\ndef work():\n    " + body.replace("\n", "\n    ")
    project.save("helpers.py", CLEARS_NOT)
    project.save("train.py", f"{function}\nprint(__doc__)\n")
    assert project.shown("train.py") == ["TA600:note"]
    project.save("run.sh", "python -c 'import train; train.work()'\n")
    assert project.shown("train.py") == ["TA600:error"]
    (project.folder / "run.sh").unlink()
    assert project.shown("train.py") == ["TA600:note"]


# -- what files on disk say ------------------------------------------------------------------------------------


def test_a_change_with_the_same_size_and_time_is_seen(project: Open) -> None:
    project.save("helpers.py", CLEARS_NOT)
    project.save("train.py", TRAINS)
    assert project.rules("train.py") == {"TA600"}
    project.save("helpers.py", CLEARS + "#" * (len(CLEARS_NOT) - len(CLEARS)))
    assert project.rules("train.py") == set()


def test_a_branch_that_is_checked_out_is_seen(project: Open) -> None:
    """Many files change at once, some appear and some go."""

    def git(*words: str) -> None:
        who = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false")
        subprocess.run(["git", *who, *words], cwd=project.folder, check=True, capture_output=True)

    def commit(branch: str, files: dict[str, str]) -> None:
        git("checkout", "-q", "--orphan", branch)
        for path in project.folder.rglob("*.py"):
            path.unlink()
        for name, text in files.items():
            project.save(name, text)
        git("add", "-A")
        git("commit", "-qm", branch)

    git("init", "-q")
    commit(
        "one", {"train.py": TRAINS, "helpers.py": CLEARS, "loop.py": LOOP, "net.py": NET, "base.py": MODULE}
    )
    commit("two", {"train.py": TRAINS, "helpers/__init__.py": "from .all import *\n", "helpers/all.py": CLEARS_NOT,
                   "loop.py": LOOP, "main.py": USES_THE_LOOP, "net.py": NET, "base.py": PLAIN})  # fmt: skip
    for _ in range(2):
        git("checkout", "-q", "one")
        assert [project.rules(name) for name in ("train.py", "loop.py", "net.py")] == [
            set(),
            set(),
            {"TA415"},
        ]
        git("checkout", "-q", "two")
        assert [project.rules(name) for name in ("train.py", "loop.py", "net.py")] == [
            {"TA600"},
            {"TA600"},
            set(),
        ]


# -- what open files say ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("saved", [USES_THE_LOOP, USES_NOTHING])
def test_unsaved_imports_of_an_open_file_count_for_no_other(project: Open, saved: str) -> None:
    project.save("loop.py", LOOP)
    project.save("train.py", saved)
    on_disk = {"TA600"} if saved == USES_THE_LOOP else set()
    for unsaved in (USES_NOTHING, USES_THE_LOOP):
        project.rules("train.py", unsaved)
        assert project.rules("loop.py") == on_disk


def test_imports_that_are_typed_count_for_the_file_itself(project: Open) -> None:
    project.save("other.py", CLEARS)
    project.save("helpers.py", CLEARS_NOT)
    project.save("train.py", TRAINS)
    assert project.rules("train.py") == {"TA600"}
    assert project.rules("train.py", TRAINS.replace("helpers", "other")) == set()
    assert project.rules("train.py", TRAINS.replace("helpers", "nowhere")) == set()
    assert project.rules("train.py", TRAINS) == {"TA600"}


def test_imports_that_are_typed_decide_whether_a_file_is_about_training(project: Open) -> None:
    project.save("train.py", "import torch\n")
    project.save("loop.py", LOOP)
    assert project.rules("loop.py", LOOP) == set()
    assert project.rules("loop.py", f"from train import *\n{LOOP}") == {"TA600"}
    assert project.rules("loop.py", LOOP) == set()


def test_exports_that_are_typed_count_for_the_file_itself(project: Open) -> None:
    """What its classes derive from leads through another file, and back."""
    head = "\n\nfrom net import Net\n\n\nclass Head(Net):\n    def __init__(self):\n        self.head = torch.nn.Linear(2, 2)\n"
    project.save("net.py", "from base import Base\n\n\nclass Net(Base):\n    pass\n")
    project.save("base.py", PLAIN + head)
    assert project.rules("base.py") == set()
    assert project.rules("base.py", MODULE + head) == {"TA415"}
    assert project.rules("base.py", PLAIN + head) == set()


@pytest.mark.parametrize(("saved", "found"), [(MODULE, {"TA415"}), (PLAIN, set())])
def test_unsaved_exports_of_an_open_file_count_for_no_other(
    project: Open, saved: str, found: set[str]
) -> None:
    project.save("base.py", saved)
    project.save("net.py", NET)
    for unsaved in (MODULE, PLAIN, "class"):
        project.rules("base.py", unsaved)
        assert project.rules("net.py") == found


def test_unsaved_exports_of_an_open_file_count_for_no_other_that_was_seen_before(project: Open) -> None:
    project.save("base.py", PLAIN)
    project.save("net.py", NET)
    assert project.rules("net.py") == set()
    project.rules("base.py", MODULE)
    assert project.rules("net.py") == set()
    project.save("base.py", MODULE)
    assert project.rules("net.py") == {"TA415"}


@pytest.mark.parametrize("how", [lambda path: path.write_text(PLAIN), lambda path: path.unlink()])
def test_an_open_file_that_changes_on_disk_counts_as_it_is_there(
    project: Open, how: Callable[[Path], object]
) -> None:
    project.save("base.py", PLAIN)
    project.save("net.py", NET)
    project.rules("base.py", MODULE)
    project.save("base.py", MODULE)
    assert project.rules("net.py") == {"TA415"}
    project.rules("base.py", MODULE)
    how(project.folder / "base.py")
    assert project.rules("net.py") == set()
