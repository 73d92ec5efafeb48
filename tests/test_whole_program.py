"""Findings that need more than one file: what imports lead to, and who calls what a file defines."""

from pathlib import Path

import pytest

from ta_lint.core.config import Configs, Options
from ta_lint.discovery import discover, named
from ta_lint.project.imports import Definition
from ta_lint.project.project import Project, renew
from ta_lint.runner import lint_files

MODEL = """\
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(20, 2)

    def forward(self, x):
        return self.body(x).softmax(dim=1)
"""

TRAIN = """\
import torch
from torch import nn
{imports}


def main(loader):
    network = {net}()
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.AdamW(network.parameters(), lr=1e-3)
    for x, y in loader:
        optimizer.zero_grad()
        criterion(network(x), y).backward()
        optimizer.step()
"""


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def found(folder: Path, *paths: str, select: str = "TA406") -> set[tuple[str, int]]:
    """The files and lines of the findings when these paths are linted, or the whole folder."""
    configs = Configs(Options(select=[select]), folder)
    files = discover([folder / path for path in paths] or [folder], configs, folder)
    return {
        (finding.site.path, finding.site.line) for _, findings in lint_files(files, 1) for finding in findings
    }


@pytest.mark.parametrize(
    ("imports", "net", "files"),
    [
        ("from model import Net", "Net", {"model.py": MODEL}),
        ("from model import Net as Network", "Network", {"model.py": MODEL}),
        ("import model", "model.Net", {"model.py": MODEL}),
        ("from nets import model", "model.Net", {"nets/__init__.py": "", "nets/model.py": MODEL}),
        ("import nets.model as m", "m.Net", {"nets/model.py": MODEL}),
        (
            "from nets import Net",
            "Net",
            {"nets/__init__.py": "from .model import Net\n", "nets/model.py": MODEL},
        ),
        ("import nets", "nets.Net", {"nets/__init__.py": "from .model import *\n", "nets/model.py": MODEL}),
        (
            "from package.model import Net",
            "Net",
            {"src/package/__init__.py": "", "src/package/model.py": MODEL},
        ),
        ("from model import Best", "Best", {"model.py": f"{MODEL}\n\nBest = Net\n"}),
        ("from model import Best", "Best", {"model.py": f"{MODEL}\n\nclass Best(Net):\n    pass\n"}),
    ],
    ids=lambda value: value if isinstance(value, str) else " ".join(value),
)
def test_a_model_is_known_however_it_is_imported(
    imports: str, net: str, files: dict[str, str], tmp_path: Path
) -> None:
    write(tmp_path, {"pyproject.toml": "", "train.py": TRAIN.format(imports=imports, net=net), **files})
    assert found(tmp_path) == {("train.py", 12)}
    assert found(tmp_path, "train.py") == {("train.py", 12)}


def test_relative_imports_lead_through_a_package(tmp_path: Path) -> None:
    train = TRAIN.format(imports="from ..models.net import Net", net="Net")
    package = {
        "p/__init__.py": "",
        "p/models/__init__.py": "",
        "p/models/net.py": MODEL,
        "p/engine/run.py": train,
    }
    write(tmp_path, {"pyproject.toml": "", **package})
    assert found(tmp_path) == {("p/engine/run.py", 12)}


@pytest.mark.parametrize("mark", ["p/engine/__init__.py", "pyproject.toml"])
def test_a_project_is_seen_as_a_whole_from_any_folder(mark: str, tmp_path: Path) -> None:
    """Each folder of it was a project of its own when it was checked from another one."""
    train = TRAIN.format(imports="from p.models.net import Net", net="Net")
    package = {
        "p/__init__.py": "",
        "p/models/__init__.py": "",
        "p/models/net.py": MODEL,
        "p/engine/run.py": train,
    }
    write(tmp_path / "project", {mark: "", **package})
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    configs = Configs(Options(select=["TA406"]), elsewhere)
    files = discover([tmp_path / "project"], configs, elsewhere)
    findings = [finding for _, findings in lint_files(files, 1) for finding in findings]
    assert [finding.site.line for finding in findings] == [12]


def test_standard_input_sees_the_files_around_it(tmp_path: Path) -> None:
    write(tmp_path, {"pyproject.toml": "", "model.py": MODEL})
    train = TRAIN.format(imports="from model import Net", net="Net").encode()
    files = named(tmp_path / "train.py", train, Configs(Options(select=["TA406"]), tmp_path), tmp_path)
    (findings,) = [findings for _, findings in lint_files(files, 1)]
    assert [finding.site.line for finding in findings] == [12]
    assert [related.site.path for related in findings[0].related] == ["model.py"]


def test_a_step_is_found_in_a_helper_that_never_names_torch(tmp_path: Path) -> None:
    helper = "def step(loss, optimizer):\n    loss.backward()\n    optimizer.step()\n"
    train = (
        "import torch\nfrom helpers import step\n\nmodel = torch.nn.Linear(2, 2)\n"
        "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\nfor x in data:\n    step(model(x).sum(), optimizer)\n"
    )
    write(tmp_path, {"pyproject.toml": "", "helpers.py": helper, "train.py": train})
    assert found(tmp_path, select="TA600") == {("helpers.py", 3)}
    assert found(tmp_path, "helpers.py", select="TA600") == {("helpers.py", 3)}
    write(tmp_path, {"train.py": train.replace("    step(", "    optimizer.zero_grad()\n    step(")})
    assert found(tmp_path, select="TA600") == set()


def test_what_is_installed_is_no_part_of_the_project(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "pyproject.toml": "",
            "lib/site-packages/model.py": MODEL,
            "torch/nn.py": "class CrossEntropyLoss: ...\n",
            "train.py": TRAIN.format(imports="from lib.site_packages.model import Net", net="Net"),
        },
    )
    project = Project(str(tmp_path))
    assert project.layout.module(str(tmp_path / "train.py"), "torch") is None
    assert project.layout.inside(str(tmp_path / "lib"), "site-packages") is None
    assert found(tmp_path) == set()


def test_a_module_of_the_standard_library_is_not_looked_for_in_the_project(tmp_path: Path) -> None:
    write(tmp_path, {"pyproject.toml": "", "p/__init__.py": "", "p/logging.py": "", "p/run.py": ""})
    layout = Project(str(tmp_path)).layout
    assert layout.module(str(tmp_path / "p/run.py"), "logging") is None
    assert layout.inside(str(tmp_path / "p"), "logging") == str(tmp_path / "p/logging.py")


def test_imports_in_a_circle_end(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "pyproject.toml": "",
            "a.py": "from b import Net\n",
            "b.py": "from a import Net\n",
            "c.py": "from c import *\nfrom d import *\n",
            "d.py": "from c import *\nclass Here(There): ...\nclass There(Here): ...\n",
            "train.py": TRAIN.format(imports="from a import Net", net="Net"),
        },
    )
    assert found(tmp_path) == set()
    imports = Project(str(tmp_path)).imports
    assert imports.target(str(tmp_path / "train.py"), "c.Absent").definition is None
    here = imports.target(str(tmp_path / "train.py"), "c.Here").definition
    assert here == Definition(str(tmp_path / "d.py"), "Here", ())
    assert imports.ancestors(str(tmp_path / "train.py"), "c.Here") == frozenset({"?"})


def test_a_name_that_is_bound_in_two_ways_leads_nowhere(tmp_path: Path) -> None:
    nets = "try:\n    from fast import Net\nexcept ImportError:\n    from slow import Net\n"
    write(tmp_path, {"pyproject.toml": "", "nets.py": nets, "slow.py": MODEL, "fast.py": MODEL})
    imports = Project(str(tmp_path)).imports
    assert imports.target(str(tmp_path / "train.py"), "nets.Net").definition is None


def test_broken_and_binary_files_beside_a_file_do_no_harm(tmp_path: Path) -> None:
    write(
        tmp_path, {"pyproject.toml": "", "train.py": TRAIN.format(imports="from model import Net", net="Net")}
    )
    for content in (b"class Net(:\n", b"\0\xff", b"# -*- coding: nonsense -*-\nclass Net: ...\n"):
        (tmp_path / "model.py").write_bytes(content)
        assert found(tmp_path, "train.py") == set()


def test_a_change_in_another_file_is_seen_by_the_next_run(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "pyproject.toml": "",
            "model.py": MODEL,
            "train.py": TRAIN.format(imports="import model", net="model.Net"),
        },
    )
    assert found(tmp_path) == {("train.py", 12)}
    write(tmp_path, {"model.py": MODEL.replace(".softmax(dim=1)", "")})
    assert found(tmp_path) == set()
    renew()


def test_a_file_about_another_framework_is_not_ours_beside_one_of_torch(tmp_path: Path) -> None:
    helper = "import warp as wp\n\ndef step(loss, optimizer):\n    loss.backward()\n    optimizer.step()\n"
    train = "import torch\nfrom helpers import step\n\nfor x in data:\n    step(x, optimizer)\n"
    write(tmp_path, {"pyproject.toml": "", "helpers.py": helper, "train.py": train})
    assert found(tmp_path, select="TA600") == set()


def test_a_template_of_transformers_is_no_module_that_runs(tmp_path: Path) -> None:
    code = "from torch import nn\n\nclass Net(nn.Module):\n    def __init__(self):\n        self.layer = nn.Linear(2, 2)\n"
    write(tmp_path, {"pyproject.toml": "", "modular_net.py": code, "net.py": code})
    assert found(tmp_path, select="TA415") == {("net.py", 4)}


def test_a_schedule_that_a_subclass_steps_is_stepped_in_a_program_of_many_files(tmp_path: Path) -> None:
    write(tmp_path, {f"models/net{number}.py": "import torch\n" for number in range(61)})
    imports = "".join(f"from models import net{number}\n" for number in range(61))
    schedule = """\
from torch.optim.lr_scheduler import StepLR


def get_schedule(optimizer):
    schedule = StepLR(optimizer, 10)
    return schedule
"""
    base = """\
import torch


class Base:
    def __init__(self, model, get_schedule):
        self.model = model
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        self.schedule = get_schedule(self.optimizer)

    def save(self):
        torch.save({"schedule": self.schedule.state_dict()}, "last.pt")
"""
    trainer = """\
import torch
from base import Base
from rates import get_schedule


class Trainer(Base):
    def run(self, loader):
        for x in loader:
            self.optimizer.zero_grad()
            self.model(x).mean().backward()
            self.optimizer.step()
        self.schedule.step()


Trainer(torch.nn.Linear(4, 1), get_schedule).run(torch.randn(100, 8, 4))
"""
    write(tmp_path, {"rates.py": schedule, "base.py": imports + base, "trainer.py": trainer})
    assert found(tmp_path, select="TA621") == set()
    write(tmp_path, {"trainer.py": trainer.replace("self.schedule.step()", "self.save()")})
    assert found(tmp_path, select="TA621") == {("rates.py", 5)}


def test_a_fix_in_another_file_is_not_offered(tmp_path: Path) -> None:
    """The edit of a node of another file raised, so that the finding was lost."""
    write(
        tmp_path,
        {
            "adapters.py": "from peft import LoraConfig\n\n\ndef lora_config(cfg):\n"
            "    return LoraConfig(r=cfg.rank, target_modules=cfg.targets)\n",
            "model.py": "from adapters import lora_config\nfrom peft import get_peft_model\n"
            "from transformers import AutoModelForSequenceClassification\n\n"
            "def build(cfg):\n"
            "    base = AutoModelForSequenceClassification.from_pretrained(cfg.base, num_labels=cfg.labels)\n"
            "    return get_peft_model(base, lora_config(cfg))\n",
            "config.py": "from dataclasses import dataclass\n\n\n@dataclass\nclass Config:\n"
            '    base: str = "bert-base-uncased"\n    labels: int = 3\n    rank: int = 8\n    targets: tuple = ("query", "value")\n',
            "train.py": "import torch\nfrom config import Config\nfrom model import build\n\nmodel = build(Config())\n",
        },
    )
    assert found(tmp_path, select="TA653") == {("model.py", 7)}
