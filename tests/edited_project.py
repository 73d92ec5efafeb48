"""A small project of training code under random edits, and what a warm run says of it beside a cold one.

Its files find bugs in each other: steps and loops, models and losses, names that come by `import *`, and modules of one
name in several folders, of which an import means another one once a file appears, goes or is renamed.
"""

import contextlib
import io
import os
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from ta_lint import cache
from ta_lint.cli import main
from ta_lint.core.config import Configs, Options
from ta_lint.engine import lint
from ta_lint.facts.program.program import program_of
from ta_lint.file import File
from ta_lint.project import index
from ta_lint.project.project import project_of, renew
from ta_lint.server.needs import needs_of

LONG_AGO = 1_700_000_000

FILES = (
    "train.py", "loop.py", "helpers.py", "utils.py", "model.py",
    "models/__init__.py", "models/net.py", "models/blocks.py", "models/helpers.py",
    "src/helpers.py", "src/utils.py", "src/model.py", "src/models/__init__.py", "src/models/net.py",
    "pkg/__init__.py", "pkg/train.py", "pkg/helpers.py", "pkg/model.py", "pkg/deep/__init__.py", "pkg/deep/loop.py",
    "tests/test_model.py", "torch_utils.py",
)  # fmt: skip

IMPORTS = (
    "from helpers import step", "from helpers import *", "from .helpers import step", "from ..helpers import step",
    "from utils import *", "from utils import step, clear", "import helpers", "import utils", "from utils import Base",
    "from model import Net", "from model import *", "import model", "from .model import Net", "from ..model import Net",
    "from models import Net", "from models import *", "import models", "from models.net import Net", "from .net import Net",
    "from .net import *", "from .blocks import Base", "from models.blocks import Base", "from models import net, blocks",
    "from models import helpers", "import models.net as net", "from pkg import Net, step", "from pkg import *", "import pkg",
    "from pkg.helpers import step", "from pkg.deep import fit", "from pkg.deep.loop import fit", "from . import helpers",
    "from .deep import *", "from loop import fit", "from .loop import fit", "from train import *", "from src.helpers import step",
    "from torch_utils import step", "import torch.nn.functional as F", "from torch import nn", "import lightning",
)  # fmt: skip

BODIES = (
    "def step(loss, optimizer):\n    loss.backward()\n    optimizer.step()\n",
    "def step(loss, optimizer):\n    optimizer.zero_grad()\n    loss.backward()\n    optimizer.step()\n",
    "def clear(optimizer):\n    optimizer.zero_grad()\n",
    "def clear(optimizer):\n    pass\n",
    "class Base(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.scale = 2\n",
    "class Base:\n    def zero_grad(self):\n        pass\n",
    "class Base(torch.nn.Module):\n    def forward(self, x):\n        return x.softmax(1)\n",
    ("class Net(Base):\n    def __init__(self):\n        self.layer = torch.nn.Linear(2, 2)\n\n"
    "    def forward(self, x):\n        return torch.softmax(self.layer(x), 1)\n"),
    ("class Net(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    "        self.layers = [torch.nn.Linear(2, 2)]\n\n    def forward(self, x):\n        return self.layers[0](x)\n"),
    "class Net(blocks.Base):\n    def __init__(self):\n        self.drop = torch.nn.Dropout()\n",
    "class Net(helpers.Base):\n    def forward(self, x):\n        return torch.sigmoid(self.net(x))\n",
    ("def fit(model, loader, optimizer):\n    for x, y in loader:\n        loss = torch.nn.functional.cross_entropy(model(x), y)\n"
    "        loss.backward()\n        optimizer.step()\n"),
    ("def fit(model, loader, optimizer):\n    model.eval()\n    for x, y in loader:\n        clear(optimizer)\n"
    "        loss = model(x).sum()\n        step(loss, optimizer)\n"),
    ("def fit(model, loader, optimizer):\n    for x, y in loader:\n        optimizer.zero_grad()\n"
    "        loss = F.cross_entropy(model(x), y)\n        loss.backward()\n        optimizer.step()\n        total += loss\n"),
    "def evaluate(model, loader):\n    model.eval()\n    return sum(model(x).sum() for x in loader)\n",
    "model = Net()\noptimizer = torch.optim.Adam(model.parameters(), weight_decay=0.1)\nfit(model, loader, optimizer)\n",
    "model = models.Net()\nloss = torch.nn.CrossEntropyLoss()(model(x), y)\n",
    "model = Net()\noptimizer = torch.optim.SGD(model.parameters(), lr=0.1)\nfor x in data:\n    step(model(x).sum(), optimizer)\n",
    ("model = Net()\noptimizer = torch.optim.SGD(model.parameters(), lr=0.1)\nfor x in data:\n    clear(optimizer)\n"
    "    helpers.step(model(x).sum(), optimizer)\n"),
    "scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 3)\nfor x in data:\n    scheduler.step()\n    fit(model, x, optimizer)\n",
    "model = net.Net()\nfor epoch in range(3):\n    evaluate(model, loader)\n    fit(model, loader, optimizer)\n",
    "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)  # noqa: TA910\nprint(undefined, Base, Net)\n",
    "for x in data:\n    loss = model(x).sum()\n    loss.backward(retain_graph=True)\n    step(loss, optimizer)\n",
    "names = []\n",
    "__all__ = ['step', 'Net']\n",
)  # fmt: skip

SETTINGS = (
    "[tool.ta]\n",
    "[tool.ta]\nignore = ['TA910']\n",
    "[tool.ta]\nextend-select = ['ALL']\n",
    "[tool.ta]\ntarget-torch = '2.0'\n",
    "[tool.ta.per-file-ignores]\n'models/*' = ['TA4']\n",
    "[tool.ta]\nexclude = ['src']\n",
    "[project]\ndependencies = ['torch>=1.9', 'lightning<2']\n",
)


class Project:
    """The project in a folder, edited and linted by the numbers of a seed."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder = folder
        self.random = random.Random(seed)
        folder.mkdir(parents=True)
        (folder / "pyproject.toml").write_text(SETTINGS[0])
        for name in FILES:
            if self.random.random() < 0.6:
                self._write(name)

    # -- edits ------------------------------------------------------------------------------------------------

    def edit(self) -> str:
        """Make one edit that is possible, and say which."""
        edits: list[Callable[[], str | None]] = [
            self._change, self._change, self._change, self._create, self._create, self._delete, self._rename, self._rename,
            self._rename, self._swap, self._in_the_past, self._halve, self._package, self._link, self._settings,
            self._rename_folder, self._requirements, self._ignore,
        ]  # fmt: skip
        while (said := self.random.choice(edits)()) is None:
            pass
        return said

    def _text(self) -> str:
        choose = self.random
        lines = choose.sample(IMPORTS, choose.randint(0, 3))
        head = ["import torch"] if choose.random() < 0.75 else []
        body = choose.sample(BODIES, choose.randint(1, 3))
        return "\n".join([*head, *lines, "", "", *body])

    def _write(self, name: str, *, text: str | None = None) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self._text() if text is None else text)
        if self.random.random() < 0.5:
            os.utime(path, (LONG_AGO, LONG_AGO))

    def _present(self) -> list[Path]:
        return sorted(path for path in self.folder.rglob("*.py") if path.is_file() or path.is_symlink())

    def _some(self) -> Path | None:
        present = self._present()
        return self.random.choice(present) if present else None

    def _place(self) -> Path:
        return self.folder / self.random.choice(FILES)

    def _name(self, path: Path) -> str:
        return path.relative_to(self.folder).as_posix()

    def _change(self) -> str | None:
        path = self._some()
        if path is None or not path.exists():
            return None
        self._write(self._name(path))
        return f"change {self._name(path)}"

    def _create(self) -> str | None:
        path = self._place()
        if path.exists() or path.is_symlink():
            return None
        self._write(self._name(path))
        return f"create {self._name(path)}"

    def _delete(self) -> str | None:
        path = self._some()
        if path is None or len(self._present()) < 6:
            return None
        path.unlink()
        return f"delete {self._name(path)}"

    def _rename(self) -> str | None:
        path, to = self._some(), self._place()
        if path is None or path == to or to.is_dir():
            return None
        to.parent.mkdir(parents=True, exist_ok=True)
        path.replace(to)
        return f"rename {self._name(path)} to {self._name(to)}"

    def _swap(self) -> str | None:
        one, other = self._some(), self._some()
        if one is None or other is None or one == other:
            return None
        aside = self.folder / "aside"
        one.replace(aside)
        other.replace(one)
        aside.replace(other)
        return f"swap {self._name(one)} and {self._name(other)}"

    def _in_the_past(self) -> str | None:
        """Other content with the size and the time of the file as it is."""
        path = self._some()
        if path is None or not path.is_file():
            return None
        status, size = path.stat(), path.stat().st_size
        text = self._text()[:size]
        path.write_text(text + "#" * (size - len(text)))
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
        return f"change {self._name(path)} with its old size and time"

    def _halve(self) -> str | None:
        path = self._some()
        if path is None or not path.is_file():
            return None
        text = path.read_text()
        path.write_text(text[: self.random.randint(0, len(text))])
        return f"half-written {self._name(path)}"

    def _package(self) -> str:
        folders = sorted({self.folder / Path(name).parent for name in FILES} - {self.folder})
        path = self.random.choice(folders) / "__init__.py"
        if path.exists() or path.is_symlink():
            path.unlink()
            return f"no package {self._name(path.parent)}"
        self._write(self._name(path))
        return f"package {self._name(path.parent)}"

    def _link(self) -> str | None:
        path, to = self._place(), self._some()
        if to is None or path == to or path.is_symlink():
            return None
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        path.symlink_to(to)
        return f"link {self._name(path)} to {self._name(to)}"

    def _settings(self) -> str:
        number = self.random.randrange(len(SETTINGS))
        (self.folder / "pyproject.toml").write_text(SETTINGS[number])
        return f"settings {number}"

    def _requirements(self) -> str:
        path = self.folder / "requirements.txt"
        path.write_text(
            self.random.choice(("", "torch==2.0\n", "torch>=1.8\nlightning<2\n", "transformers==4.40\n"))
        )
        return "requirements"

    def _ignore(self) -> str:
        path = self.folder / ".gitignore"
        path.write_text(self.random.choice(("", "", "src/\n", "helpers.py\n", "models/*\n!models/net.py\n")))
        return ".gitignore"

    def _rename_folder(self) -> str | None:
        folders = sorted(
            path for path in self.folder.iterdir() if path.is_dir() and not path.name.startswith(".")
        )
        if not folders:
            return None
        one, to = (
            self.random.choice(folders),
            self.folder / self.random.choice(("models", "pkg", "src", "lib", "tests")),
        )
        if one == to:
            return None
        if to.exists():
            shutil.rmtree(to)
        one.rename(to)
        return f"rename folder {one.name} to {to.name}"

    # -- runs -------------------------------------------------------------------------------------------------

    def paths(self) -> list[str]:
        """What a run is given: most often the whole, sometimes a few files, as by a commit hook."""
        present = [self._name(path) for path in self._present()]
        if self.random.random() < 0.8 or len(present) < 3:
            return ["."]
        return self.random.sample(present, 2)

    def warm(self, paths: list[str]) -> str:
        """What a run says with the cache on disk: one of a new process, or one of a process that goes on, such as `--watch`.

        At times the cache has no findings, only what files show of themselves, or that is damaged.
        """
        if self.random.random() < 0.5:
            forget()
        if self.random.random() < 0.3:
            for book in self._kept("findings-*"):
                book.unlink()
        if self.random.random() < 0.05:
            for shelf in self._kept("outlines-*"):
                shelf.write_bytes(shelf.read_bytes()[: self.random.randint(0, 20_000)])
        return self._said(paths)

    def _kept(self, pattern: str) -> list[Path]:
        return sorted((self.folder / cache.FOLDER).glob(pattern))

    def cold(self, paths: list[str]) -> str:
        """What a run of a new process says without a cache; this process keeps its memory."""
        return in_a_fork(lambda: self._forgetful([*paths, "--no-cache"]))

    def warm_twice_at_once(self, paths: list[str]) -> list[str]:
        """What two runs say that begin together, and share a cache."""
        return in_forks([lambda: self._forgetful(paths)] * 2)

    def typed(self) -> tuple[str, bytes]:
        """A file as an editor has it: as on disk, with another text, or with more code at its end."""
        name = self.random.choice([self._name(path) for path in self._present()])
        path = self.folder / name
        saved = path.read_text() if path.is_file() else ""
        more = f"{saved}\n{self.random.choice(IMPORTS)}\n{self.random.choice(BODIES)}"
        return name, self.random.choice((saved, saved, more, self._text())).encode()

    def looked_at(self, name: str, text: bytes) -> str:
        """What an editor shows of a file with an unsaved text."""
        renew()
        config = Configs(Options(select=["ALL"], isolated=True), self.folder).root_config
        file = File(self.folder / name, name, config, given=text)
        findings = lint(file, text)
        needs_of(file, text)  # as the server does, which looks up more than most checks
        return "\n".join(map(repr, findings))

    def looked_at_first(self, name: str, text: bytes) -> str:
        """What an editor shows of it that was just started."""

        def look() -> str:
            forget()
            return self.looked_at(name, text)

        return in_a_fork(look)

    def _forgetful(self, words: list[str]) -> str:
        forget()
        return self._said(words)

    def _said(self, words: list[str]) -> str:
        said = io.StringIO()
        with (
            contextlib.chdir(self.folder),
            contextlib.redirect_stdout(said),
            contextlib.redirect_stderr(io.StringIO()),
        ):
            status = main(["check", "--format=json", "--jobs=1", "--show-notes", *words])
        return f"{said.getvalue()}\nexit status {status}"


def forget() -> None:
    """Keep nothing in memory that a new process does not have."""
    project_of.cache_clear()
    program_of.cache_clear()
    for value in vars(cache).values():
        if (
            getattr(value, "__module__", "") == cache.__name__
            and hasattr(value, "cache_clear")
            and "version" not in value.__name__
        ):
            value.cache_clear()


def in_a_fork(work: Callable[[], str]) -> str:
    (said,) = in_forks([work])
    return said


def in_forks(works: list[Callable[[], str]]) -> list[str]:
    """What each piece of work returns in a fork of this process; all run at once."""
    running = []
    for work in works:
        out, into = os.pipe()
        if (pid := os.fork()) == 0:
            status = 1
            try:
                os.close(out)
                with os.fdopen(into, "wb") as stream:
                    stream.write(work().encode())
                status = 0
            finally:
                os._exit(status)
        os.close(into)
        running.append((pid, out))
    said = []
    for pid, out in running:
        with os.fdopen(out, "rb") as stream:
            said.append(stream.read().decode())
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    return said


def differences_in_an_editor(folder: Path, seed: int, edits: int) -> Iterator[str]:
    """After which edits an editor that goes on did not show what one shows that was just started."""
    project = Project(folder, seed)
    forget()
    for _ in range(edits):
        done = project.edit() if project.random.random() < 0.4 else "nothing"
        name, text = project.typed()
        if project.looked_at(name, text) != project.looked_at_first(name, text):
            yield f"{name} after {done}"
            forget()


@contextlib.contextmanager
def outlines_of_few_files_are_kept() -> Iterator[None]:
    """What a project of twenty files shows of itself is kept on disk as that of a large one is."""
    few, index.FEW = index.FEW, 0
    try:
        yield
    finally:
        index.FEW = few


def differences(folder: Path, seed: int, edits: int) -> Iterator[tuple[int, str, list[str], str]]:
    """The number of each of the edits after which a warm run did not say what a cold one says, with what it was."""
    with outlines_of_few_files_are_kept():
        yield from _differences(folder, seed, edits)


def _differences(folder: Path, seed: int, edits: int) -> Iterator[tuple[int, str, list[str], str]]:
    project = Project(folder, seed)
    project.warm(["."])
    done: list[str] = []
    for number in range(edits):
        done = [*done[-3:], *(project.edit() for _ in range(project.random.choice((1, 1, 1, 2, 3))))]
        paths = project.paths()
        if project.random.random() < 0.1:
            warm = project.warm_twice_at_once(paths)
        else:
            warm = [project.warm(paths)]
        cold = project.cold(paths)
        if any(one != cold for one in warm):
            yield number, f"{' '.join(paths)} after {'; '.join(done)}", warm, cold
            shutil.rmtree(folder / cache.FOLDER)
            forget()
