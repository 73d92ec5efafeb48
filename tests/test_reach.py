"""An error or warning in code that nothing in the project runs is a note, which says so."""

import json
from pathlib import Path

import pytest
from test_whole_program import write

from ta_lint.core.config import Configs, Options
from ta_lint.core.finding import Finding
from ta_lint.discovery import discover
from ta_lint.runner import lint_files

MAIN = """\
import torch
{imports}


def main():
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        optimizer.zero_grad()
        model(torch.ones(2, 4)).mean().backward()
        optimizer.step()
    {calls}


{below}

if __name__ == "__main__":
    main()
"""
HELPER = """\
def helper(loader):
    print(len(loader), epochs)
"""
TOOLS = f"import torch\n\n\n{HELPER}\n\ndef known():\n    print('epoch')\n"


def script(imports: str = "", calls: str = "pass", below: str = "") -> str:
    return MAIN.format(imports=imports, calls=calls, below=below)


def findings(folder: Path, *rules: str) -> list[Finding]:
    files = discover([folder], Configs(Options(select=rules or ["TA910"]), folder), folder)
    return [finding for _, found in lint_files(files, 1) for finding in found]


def severity(folder: Path, *rules: str) -> str:
    (finding,) = findings(folder, *rules)
    return finding.severity.value


def test_an_error_in_a_function_that_nothing_names_is_a_note_that_says_why(tmp_path: Path) -> None:
    write(tmp_path, {"train.py": script(below=HELPER)})
    (finding,) = findings(tmp_path)
    assert finding.severity.value == "note"
    assert [(other.site.line, other.message) for other in finding.related] == [
        (15, "nothing in this project calls `helper`")
    ]


@pytest.mark.parametrize(
    "files",
    [
        {"train.py": script(calls="helper([])", below=HELPER)},
        {"train.py": script(calls="getattr(torch, 'helper', None)", below=HELPER)},
        {"train.py": script(calls="hook = helper", below=HELPER)},
        {"train.py": script("import registry", below=f"@registry.register\n{HELPER}")},
        {"train.py": script(below=HELPER.replace("helper", "test_helper"))},
        {"train.py": script(below=HELPER.replace("helper", "__getattr__"))},
        {"train.py": script(below=HELPER + "\n\n__all__ = ['helper']\n")},
        {"train.py": script(calls="eval('hel' + 'per')([])", below=HELPER)},
        {"train.py": script("import tools", "tools.helper([])"), "tools.py": TOOLS},
        {"train.py": script("from tools import *", "helper([])"), "tools.py": TOOLS},
        {"train.py": script("import tools", "getattr(tools, input())([])"), "tools.py": TOOLS},
        {"train.py": script("import tools"), "tools.py": TOOLS, "run.ipynb": json.dumps({"cells": [{"source": "tools.helper(x)"}]})},
        {"train.py": script("import tools"), "tools.py": TOOLS, "conf/run.yaml": "function: tools.helper\n"},
        {"train.py": script("import tools"), "tools.py": TOOLS, "run.sh": "python -c 'import tools; tools.helper([])'\n"},
        {"train.py": script("import tools"), "tools.py": TOOLS, "pyproject.toml": '[project.scripts]\nhelp = "tools:helper"\n'},
        {"train.py": script("import tools"), "tools.py": TOOLS, "other.py": "from tools import (\n    helper,\n)\n"},
        {"train.py": script("import lib.tools"), "lib/__init__.py": "", "lib/tools.py": TOOLS, "setup.py": "setup()\n"},
        {"tools.py": TOOLS},
        {"tools.py": TOOLS, "train.py": script()},
    ],
    ids=[
        "called", "getattr", "handed on", "registered", "a test", "dunder", "__all__", "evaluated",
        "called in another file", "star import", "looked up in its module", "notebook", "settings", "shell",
        "console script", "imported over lines", "public in a library", "a file alone", "a file that nothing imports",
    ],
)  # fmt: skip
def test_what_may_be_called_keeps_its_severity(files: dict[str, str], tmp_path: Path) -> None:
    write(tmp_path, {".git/HEAD": "", **files})
    assert severity(tmp_path) == "error"


@pytest.mark.parametrize(
    "files",
    [
        {"train.py": script(calls="# helper([])", below=HELPER)},
        {"train.py": script(below=HELPER + "    helper(loader)\n")},
        {"train.py": script(below=f"{HELPER}\n\ndef other():\n    helper([])\n")},
        {"train.py": script(below=f"@torch.no_grad()\n{HELPER}")},
        {"train.py": script("import tools", "tools.known()"), "tools.py": TOOLS},
        {"train.py": script("import tools"), "tools.py": TOOLS, "other.py": script(calls="helper()", below="def helper():\n    pass\n")},
        {"train.py": script("import tools"), "tools.py": TOOLS, "other.py": "# from tools import helper\n"},
        {"train.py": script("import lib.tools"), "lib/__init__.py": "", "setup.py": "setup()\n",
         "lib/tools.py": TOOLS.replace("helper", "_helper")},
        {"train.py": script("import lib.known"), "lib/__init__.py": "", "lib/known.py": "x = 1\n", "lib/tools.py": TOOLS},
    ],
    ids=[
        "a comment", "itself", "another one that nothing calls", "no_grad", "its module is imported for something else",
        "another file has one of its own", "a comment in another file", "private in a library",
        "a module that nothing imports beside one that is",
    ],
)  # fmt: skip
def test_what_nothing_calls_is_a_note(files: dict[str, str], tmp_path: Path) -> None:
    write(tmp_path, {".git/HEAD": "", **files})
    assert severity(tmp_path) == "note"


CLASS = """\
class Part{base}:
    def __init__(self):
        self.rate = 0.1

    def build(self):
        print(epochs)
"""


@pytest.mark.parametrize(
    ("calls", "base", "expected"),
    [
        ("Part().build()", "", "error"),
        ("Part()", "", "note"),
        ("Part()", "(torch.nn.Module)", "error"),
        ("Part()", "(Unknown)", "error"),
        ("pass", "(torch.nn.Module)", "note"),
        ("pass", "", "note"),
        ("pass", "(metaclass=Registry)", "error"),
        ("build = 1", "", "note"),
    ],
)
def test_a_method_runs_if_its_class_is_used_and_something_names_it_or_a_base_may_call_it(
    calls: str, base: str, expected: str, tmp_path: Path
) -> None:
    imports = "from elsewhere import Registry, Unknown"
    write(tmp_path, {"train.py": script(imports, calls, CLASS.format(base=base))})
    assert severity(tmp_path) == expected


def test_a_function_in_a_function_runs_if_that_names_it(tmp_path: Path) -> None:
    inner = "    def inner():\n        print(epochs)\n"
    write(tmp_path, {"train.py": script(calls="outer()", below=f"def outer():\n{inner}")})
    assert severity(tmp_path) == "note"
    write(tmp_path, {"train.py": script(calls="outer()", below=f"def outer():\n{inner}    return inner\n")})
    assert severity(tmp_path) == "error"


def test_two_functions_that_call_each_other_run_if_another_file_names_one_of_them(tmp_path: Path) -> None:
    tools = "import torch\n\n\ndef one(epoch):\n    other(epoch)\n\n\ndef other(epoch):\n    print(epochs)\n    one(epoch)\n"
    write(tmp_path, {"train.py": script("import tools"), "tools.py": tools})
    assert severity(tmp_path) == "note"
    write(tmp_path, {"train.py": script("import tools", "tools.one(1)")})
    assert severity(tmp_path) == "error"


def test_rules_over_facts_follow_it_too(tmp_path: Path) -> None:
    loop = "def fit(model, optimizer, loader):\n    for x in loader:\n        model(x).mean().backward()\n        optimizer.step()\n"
    write(tmp_path, {"train.py": script(below=loop)})
    assert severity(tmp_path, "TA600") == "note"
    write(tmp_path, {"train.py": script(calls="fit(model, optimizer, batches)", below=loop)})
    assert severity(tmp_path, "TA600") == "error"


def test_a_checkpoint_is_incomplete_where_something_loads_it(tmp_path: Path) -> None:
    """TA704 counts where training resumes: the function that loads must run too."""
    text = """\
import torch

net = torch.nn.Linear(1, 1)
optimizer = torch.optim.Adam(net.parameters())


def train(start):
    for epoch in range(start, 10):
        net(torch.ones(1)).backward()
        optimizer.step()
        torch.save({{"net": net.state_dict(), "epoch": epoch}}, "last.pt")


def resume(path):
    checkpoint = torch.load(path)
    net.load_state_dict(checkpoint["net"])
    train(checkpoint["epoch"])


{begins}
"""
    write(tmp_path, {"train.py": text.format(begins="train(0)")})
    assert severity(tmp_path, "TA704") == "note"
    write(tmp_path, {"train.py": text.format(begins='resume("last.pt")')})
    assert severity(tmp_path, "TA704") == "warning"


def test_a_cached_finding_has_the_severity_of_the_project_as_it_is(tmp_path: Path) -> None:
    from ta_lint.cache import Cache

    def cached() -> list[str]:
        files = discover([tmp_path], Configs(Options(select=["TA910"]), tmp_path), tmp_path)
        linted = lint_files(files, 1, Cache(tmp_path / ".ta_cache", tmp_path))
        return [finding.severity.value for _, found in linted for finding in found]

    write(tmp_path, {"train.py": script("import tools"), "tools.py": TOOLS})
    assert cached() == cached() == ["note"]
    write(tmp_path, {"conf.yaml": "call: tools.helper\n"})
    assert cached() == ["error"]
    (tmp_path / "conf.yaml").unlink()
    assert cached() == ["note"]


def test_a_project_of_too_many_files_tells_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ta_lint.project.reach._MOST_FILES", 1)
    write(tmp_path, {"train.py": script("import tools"), "tools.py": TOOLS})
    assert severity(tmp_path) == "error"
