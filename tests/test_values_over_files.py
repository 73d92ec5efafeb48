"""Rules about values and models where one file makes a value, or a class, and another one uses it."""

import re
from pathlib import Path

import pytest

from ta_lint.core.config import Configs, Options
from ta_lint.engine import lint_file
from ta_lint.file import File

_FILE = re.compile(r"^# (?P<name>[\w/]+\.py)\n", re.MULTILINE)
_MARK = re.compile(r"# (?P<rule>TA\d{3})$")


def found_in(project: str, folder: Path, rule: str) -> tuple[set[tuple[str, int]], set[tuple[str, int]]]:
    """The places that a rule reports in the files of a project, and those that are marked. `# name.py` begins a file."""
    parts = _FILE.split(project)[1:]
    files = dict(zip(parts[::2], parts[1::2], strict=True))
    for name, code in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(code)
    config = Configs(Options(select=[rule]), folder).root_config
    found, marked = set(), set()
    for name, code in files.items():
        findings = lint_file(File(folder / name, name, config))
        found |= {(name, finding.site.line) for finding in findings if finding.counts}
        lines = enumerate(code.split("\n"), 1)
        marked |= {(name, number) for number, line in lines if _MARK.search(line)}
    return found, marked


PROJECTS = {
    "TA413: a base that derives from nn.Module in another file": """\
# base.py
from torch import nn


class Base(nn.Module):
    def save(self, path):
        raise NotImplementedError
# model.py
import torch

from base import Base


class Net(Base):
    def __init__(self, size):
        super().__init__()
        table = torch.zeros(size, size)
        self.table = table.unsqueeze(0)  # TA413

    def forward(self, x):
        return x + self.table
""",
    "TA413: a base of a base, and a base with its own `to`": """\
# layers/__init__.py
from .base import Layer
# layers/base.py
import torch


class Root(torch.nn.Module):
    pass


class Layer(Root):
    pass


class Moving(Root):
    def to(self, *args):
        return super().to(*args)
# model.py
import torch

from layers import Layer
from layers.base import Moving


class Net(Layer):
    def __init__(self, size):
        super().__init__()
        self.table = torch.zeros(size, size)  # TA413

    def forward(self, x):
        return x + self.table


class Other(Moving):
    def __init__(self, size):
        super().__init__()
        self.table = torch.zeros(size, size)

    def forward(self, x):
        return x + self.table
""",
    "TA413: a table that a function of another file makes": """\
# tables.py
import torch


def positions(length, dim):
    table = torch.zeros(length, dim)
    table[:, 0::2] = torch.sin(torch.arange(length).unsqueeze(1) / dim)
    return table.unsqueeze(0)


def placed(length, device):
    return torch.zeros(length, device=device)
# model.py
import torch
from torch import nn

from tables import placed, positions


class Net(nn.Module):
    def __init__(self, size, device):
        super().__init__()
        self.table = positions(5000, size)  # TA413
        self.start = placed(size, device)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.table[:, : x.size(1)] + self.start
""",
    "TA316: the model and the loss are in other files": """\
# models.py
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 1)

    def forward(self, x):
        return self.fc(x)
# losses.py
import torch


def squared(output, target):
    return ((output - target) ** 2).mean()  # TA316
# train.py
import torch

from losses import squared
from models import Net

model = Net()
for _ in range(10):
    x, y = torch.randn(16, 4), torch.randn(16)
    loss = squared(model(x), y) + (model(x) - y).abs().mean()  # TA316
    loss.backward()
""",
    "TA417: a configuration and a helper in other files": """\
# config.py
from dataclasses import dataclass


@dataclass
class Config:
    dropout: float = 0.1
    quiet: float = 0.0
# attend.py
from torch.nn import functional as F


def attend(x, p):
    return F.scaled_dot_product_attention(x, x, x, dropout_p=p)  # TA417


def tied(x, p):
    return F.scaled_dot_product_attention(x, x, x, dropout_p=p)
# model.py
from torch import nn
from torch.nn import functional as F

from attend import attend, tied
from config import Config


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.config = Config()

    def forward(self, x):
        x = F.scaled_dot_product_attention(x, x, x, dropout_p=self.config.quiet)
        x = F.scaled_dot_product_attention(x, x, x, dropout_p=self.config.dropout)  # TA417
        return attend(x, self.config.dropout)

    def mode(self, x):
        return tied(x, self.config.dropout if self.training else 0.0)
""",
    "TA110: a function of another file gets softmax": """\
# losses.py
import torch


def entropy(p):
    return -(p * torch.log(p)).sum(dim=-1)  # TA110


def smooth(p):
    return -(p * torch.log(p)).sum(dim=-1)
# train.py
import torch

from losses import entropy, smooth


def loss(scores, given):
    return entropy(torch.softmax(scores, dim=-1)) + smooth(given)
""",
    "TA314: the class of the data set is in another file": """\
# data/__init__.py
from .recordings import Recordings, Stream, build
# data/base.py
class Base:
    def __len__(self):
        return 10

    def __getitem__(self, index):
        return self.load(index)
# data/recordings.py
from torch.utils.data import IterableDataset

from .base import Base


class Recordings(Base):
    def __init__(self, part):
        self.part = part


class Stream(IterableDataset):
    def __iter__(self):
        yield from range(10)


def build(part):
    recordings = Recordings(part)
    return recordings
# train.py
import torch
from torch.utils.data import DataLoader, Subset

import data
from data import Recordings, Stream, build


def main(model, batch_size):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    first = DataLoader(Recordings("train"), batch_size=batch_size, num_workers=16)  # TA314
    second = DataLoader(build("train"), batch_size=batch_size)  # TA314
    third = DataLoader(Subset(data.Recordings("train"), range(9)), batch_size=batch_size, shuffle=False)  # TA314
    fourth = DataLoader(Recordings("train"), batch_size=batch_size, shuffle=True)
    fifth = DataLoader(Stream(), batch_size=batch_size)
    for loader in range(3):
        for batch in first:
            model(batch).mean().backward()
        for batch in second:
            model(batch).mean().backward()
        for batch in third:
            model(batch).mean().backward()
        for batch in fourth:
            model(batch).mean().backward()
        for batch in fifth:
            model(batch).mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    for batch in DataLoader(Recordings("valid"), batch_size=batch_size):
        model(batch)
""",
    "TA413: a base that is no module": """\
# base.py
class Base:
    pass
# model.py
import torch

from base import Base


class Net(Base):
    def __init__(self, size):
        super().__init__()
        self.table = torch.zeros(size, size)

    def forward(self, x):
        return x + self.table
""",
}


@pytest.mark.parametrize("story", PROJECTS)
def test_a_rule_follows_values_into_other_files(story: str, tmp_path: Path) -> None:
    found, marked = found_in(PROJECTS[story], tmp_path, story[:5])
    assert found == marked
