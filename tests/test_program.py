"""What a script sees of itself and of its process under `ta-runtime run` and `collect` is what it sees under Python."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import commands
import pytest
from commands import at_once

PROBE = """\
import gc, locale, logging, os, signal, sys, threading, warnings

given = {"argv": list(sys.argv), "path": list(sys.path)}


def function():
    pass


if "elsewhere" in sys.argv:
    os.chdir("elsewhere")
import neighbour

if "torch" in sys.argv:
    import torch

    torch.optim.SGD([torch.zeros(1)], lr=0.1)  # which loads the compiler of torch, as we do
    print([torch.get_num_threads(), torch.get_default_dtype(), torch.is_grad_enabled()])
    print(sorted(os.environ), warnings.filters)
main = sys.modules["__main__"]
loader = main.__loader__
json = __import__("json")
print(json.dumps({
    **given,
    "names": sorted(name for name in vars(main) if name.startswith("__")),
    "name": [__name__, main.__doc__, main.__package__],
    "file": [__file__, function.__code__.co_filename, main.__cached__, neighbour.__file__],
    "reads": len(open(__file__).read()),
    "spec": repr(main.__spec__).split(" object at ")[0],
    "loader": [type(loader).__name__, loader.name, loader.path],
    "source": loader.get_source(loader.name) == open(__file__).read(),
    "builtins": type(main.__builtins__).__name__,
    "annotations": getattr(main, "__annotations__", None),
    "same": vars(main) is globals(),
    "flags": [*sys.flags],
    "hooks": [hook.__module__ for hook in (sys.excepthook, sys.displayhook, sys.unraisablehook, warnings.showwarning)],
    "streams": [stream.name for stream in (sys.stdin, sys.stdout, sys.stderr)],
    "garbage": [gc.isenabled(), gc.get_threshold(), gc.get_debug()],
    "limits": [sys.getrecursionlimit(), sys.getswitchinterval(), sys.dont_write_bytecode],
    "tracing": [sys.gettrace(), sys.getprofile()],
    "signals": [repr(signal.getsignal(each)) for each in (signal.SIGINT, signal.SIGTERM, signal.SIGPIPE)],
    "threads": [each.name for each in threading.enumerate()],
    "locale": locale.getlocale(),
    "logging": [logging.getLogger().level, len(logging.getLogger().handlers)],
}, indent=1))
"""
SPAWNS = """\
import os
import tempfile

import torch
import torch.multiprocessing


class Squares(torch.utils.data.Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        return torch.tensor(index * index)


def write(rank, folder):
    with open(f"{folder}/{rank}", "w") as file:
        file.write(__name__)


def main():
    os.chdir(tempfile.mkdtemp())
    loader = torch.utils.data.DataLoader(Squares(), batch_size=2, num_workers=1, multiprocessing_context="spawn")
    print([batch.tolist() for batch in loader])
    torch.multiprocessing.spawn(write, (os.getcwd(),), nprocs=2)
    print([open(name).read() for name in sorted(os.listdir())])


if __name__ == "__main__":
    main()
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A script with a module beside it, and a folder that holds a link to the script."""
    for name in ("project", "project/sub", "project/sub/elsewhere", "project/elsewhere"):
        (tmp_path / name).mkdir()
    (tmp_path / "project" / "probe.py").write_text(PROBE)
    (tmp_path / "project" / "neighbour.py").write_text("")
    (tmp_path / "project" / "sub" / "link.py").symlink_to("../probe.py")
    return tmp_path / "project"


COMMANDS = {"run": ("run", "--quiet"), "collect": ("collect", "-o", "../trace")}


def seen(ran: commands.Ran) -> Any:
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
@pytest.mark.parametrize(
    ("folder", "words"),
    [
        ("project", ("probe.py", "a", "--b=c")),
        ("project", ("./probe.py",)),
        ("project", ("probe.py", "elsewhere")),
        ("project/sub", ("../probe.py", "elsewhere")),
        ("project/sub", ("link.py", "elsewhere")),
        ("project/sub", (".//./link.py",)),
        ("", ("project/sub/../probe.py",)),
        ("project", ("-m", "probe", "elsewhere", "-m", "x")),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else value,
)
def test_a_script_sees_what_it_sees_under_python(
    project: Path, command: tuple[str, ...], folder: str, words: tuple[str, ...]
) -> None:
    """A2: its file is an absolute path, its arguments are as given, and nothing else is otherwise.

    `sys.orig_argv` differs: it says how the process was started, so that who starts it again starts the command again.
    """
    where = project.parent / folder
    watched = commands.ta_runtime(where, *command, *words)
    assert seen(watched) == seen(commands.python(where, *words))


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_a_script_of_torch_finds_torch_as_under_python(project: Path, command: tuple[str, ...]) -> None:
    words = ("probe.py", "torch")
    plain, watched = at_once(
        [
            partial(commands.python, project, *words),
            partial(commands.python, project, "-m", "ta_runtime", *command, *words),
        ]
    )
    assert (watched.returncode, watched.stdout) == (0, plain.stdout)


@pytest.mark.parametrize(
    ("command", "words"),
    [(COMMANDS["run"], ("sub/../train.py",)), (COMMANDS["collect"], ("-m", "train"))],
    ids=["script", "module"],
)
def test_processes_that_a_script_spawns_find_it_from_another_folder(
    project: Path, command: tuple[str, ...], words: tuple[str, ...]
) -> None:
    """A2: a spawned process imports the script by its path, after `os.chdir` too."""
    (project / "train.py").write_text(SPAWNS)
    ran = commands.ta_runtime(project, *command, *words)
    assert ran.stdout == "[[0, 1], [4, 9]]\n['__mp_main__', '__mp_main__']\n", ran.stderr


def test_a_script_given_by_its_absolute_path_is_the_one_that_is_named(project: Path) -> None:
    path = str(project / "probe.py")
    found = seen(commands.ta_runtime(project / "sub", *COMMANDS["run"], path))
    assert found["file"][:2] == [path, path]
    assert found["argv"] == [path]
    assert found["path"][0] == str(project.resolve())


def test_the_traceback_of_a_script_is_that_of_python(project: Path) -> None:
    (project / "raises.py").write_text("def train():\n    raise ValueError('no data')\n\n\ntrain()\n")
    plain = commands.python(project, "raises.py")
    watched = commands.ta_runtime(project, "run", "--quiet", "raises.py")
    assert (watched.returncode, watched.stderr) == (plain.returncode, plain.stderr)
    assert str(project / "raises.py") in plain.stderr
