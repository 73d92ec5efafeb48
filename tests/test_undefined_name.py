"""TA910 where Markdown cannot say it: columns, unreadable syntax, and what the check costs."""

import subprocess
import sys
from pathlib import Path

import pytest

from ta_lint.checks import TextFinding
from ta_lint.checks.ta910_undefined_name import check_text
from ta_lint.core.config import Configs, Options
from ta_lint.core.source import Source
from ta_lint.engine import lint_file
from ta_lint.file import File


def may_give(modules: tuple[str, ...], name: str) -> bool:
    """Nobody knows what is in the modules."""
    return True


def reports(text: str) -> list[TextFinding]:
    return list(check_text(Source("train.py", f"{text}epoch = 0\n"), may_give))


def test_the_whole_name_is_marked_in_characters_not_bytes() -> None:
    (report,) = reports('import math\nprint("Größe: ½", größe)\n')
    assert report[:4] == (2, 19, 2, 24)
    assert "`größe`" in report.message


def test_a_name_inside_an_f_string_has_its_own_place() -> None:
    (report,) = reports('import math\nprint(f"""loss\n  {loss:.3f}""")\n')
    assert report[:4] == (3, 4, 3, 8)


def test_a_name_is_reported_once_in_each_scope() -> None:
    program = "import math\nfirst = time.time()\nlast = time.time()\ndef f():\n    return time.time(), time.time()\n"
    assert [report.line for report in reports(program)] == [2, 5]


def test_syntax_that_this_python_does_not_know_is_silent() -> None:
    assert reports("def later(:\n    return missing\n") == []


def test_a_file_without_a_suspect_costs_neither_a_tree_nor_pyflakes() -> None:
    program = """
import sys
from ta_lint.checks.ta910_undefined_name import check_text
from ta_lint.core.source import Source
source = Source("train.py", "import torch\\nmodel = torch.nn.Linear(2, 1)\\nfor epoch in model:\\n    print(model)\\n")
assert list(check_text(source, lambda modules, name: True)) == []
assert "syntax" not in vars(source) and "pyflakes.checker" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_a_comment_about_training_makes_no_file_of_a_run() -> None:
    text = "import torch\n\n\ndef f():\n    # loss.backward()\n    return missing\n"
    assert list(check_text(Source("train.py", text), may_give)) == []
    assert list(check_text(Source("train.py", text.replace("# ", "")), may_give)) != []


# -- what other files give by `import *` -----------------------------------------------------------------------

TRAINS = "import torch\nfrom nets import *\n\n\ndef fit(net, lr):\n    for epoch in range(9):\n        adjust(net, lr)\n"


def found(folder: Path, **files: str) -> set[int]:
    """The lines with a finding in `train.py`, beside these files."""
    (folder / "pyproject.toml").touch()
    for name, text in {"train": TRAINS, **files}.items():
        path = folder / f"{name.replace('__of__', '/')}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    config = Configs(Options(select=["TA910"], isolated=True), folder).root_config
    return {one.site.line for one in lint_file(File(folder / "train.py", "train.py", config))}


def test_a_name_that_no_file_of_the_project_gives_is_undefined(tmp_path: Path) -> None:
    assert found(tmp_path, nets="import torch\n\n\ndef build():\n    return torch.nn.Linear(2, 1)\n") == {7}


def test_a_file_that_goes_over_its_layers_gives_no_more_names(tmp_path: Path) -> None:
    model = "from torch import nn\n\n\nclass Net(nn.Module):\n    def start(self, args):\n        for layer in self.modules():\n"
    nets = f"{model}            setattr(layer, 'rate', vars(args)['rate'])\n"
    assert found(tmp_path, nets=nets) == {7}


def test_a_name_that_no_further_file_gives_is_undefined(tmp_path: Path) -> None:
    assert found(tmp_path, nets="from parts import *\n", parts="def build():\n    pass\n") == {7}


def test_a_further_file_gives_a_name(tmp_path: Path) -> None:
    assert found(tmp_path, nets="from parts import *\n", parts="def adjust(net, lr):\n    pass\n") == set()


@pytest.mark.parametrize(
    "nets",
    [
        "def adjust(net, lr):\n    pass\n",
        "from rates import adjust\n",
        "try:\n    from fast import adjust\nexcept ImportError:\n    adjust = print\n",
        "from rates import *\n",
        "from torch import *\n",
        "def use(rates):\n    globals().update(vars(rates))\n",
        "import sys\n\n\ndef use(rates):\n    setattr(sys.modules[__name__], 'adjust', rates.adjust)\n",
        "def use(rates):\n    global adjust\n    adjust = rates.adjust\n",
        "rates = [\n",
    ],
)
def test_a_name_that_a_file_may_give_is_not(tmp_path: Path, nets: str) -> None:
    assert found(tmp_path, nets=nets) == set()


@pytest.mark.parametrize("nets", ["nets", ".nets", "..nets"])
def test_a_file_that_is_not_there_may_give_any_name(tmp_path: Path, nets: str) -> None:
    assert found(tmp_path, train=TRAINS.replace("nets", nets)) == set()


def test_one_of_two_files_that_may_be_meant_may_give_a_name(tmp_path: Path) -> None:
    inner = {"train": "", "tools__of__nets": "", "nets": "def adjust(net, lr):\n    pass\n"}
    (tmp_path / "tools").mkdir()
    assert found(tmp_path, **inner) == set()
    (tmp_path / "tools" / "train.py").write_text(TRAINS)
    config = Configs(Options(select=["TA910"], isolated=True), tmp_path).root_config
    assert lint_file(File(tmp_path / "tools" / "train.py", "tools/train.py", config)) == []


def test_a_package_gives_its_modules(tmp_path: Path) -> None:
    assert found(tmp_path, nets__of____init__="__all__ = ['adjust']\n", nets__of__adjust="") == set()
