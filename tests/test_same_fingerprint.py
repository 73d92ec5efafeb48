"""What the linter suspects and the run sees is one pitfall: both findings have the same line and the same fingerprint."""

from pathlib import Path

import pytest
import torch
from marked import Block, blocks
from observed import observed

from ta_lint.core.config import Configs, Options
from ta_lint.core.finding import Finding
from ta_lint.engine import lint_file
from ta_lint.file import File

ROOT = Path(__file__).parents[1]
BLOCKS = [
    block
    for folder in (ROOT / "rules", ROOT / "tests" / "cases")
    for page in sorted(folder.glob("TA*.md"))
    for block in blocks(page)
    if block.alone and block.expected("static") & block.expected("runtime")
]

ADAM = """\
import torch
import torch.optim as optim
from torch.optim import Adam as Optim


def build(model):
    return torch.optim.Adam(model.parameters(), lr=1e-3, weight_decay=1e-2)


class Trainer:
    def __init__(self, model):
        self.optimizer = optim.Adam(
            model.parameters(),
            weight_decay=1e-2,
        )


model = torch.nn.Linear(4, 2)
optimizers = [Optim(model.parameters(), weight_decay=0.1), build(model), Trainer(model).optimizer]
model(torch.randn(2, 4)).sum().backward()
for optimizer in optimizers:
    optimizer.step()
"""

LOADER = """\
import time

import torch
from torch.utils.data import DataLoader, Dataset


class Slow(Dataset):
    def __len__(self):
        return 12

    def __getitem__(self, index):
        time.sleep(0.01)
        return torch.randn(8)


def make(dataset):
    return DataLoader(
        dataset,
        shuffle=True,
    )


model = torch.nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loaders = {"one": DataLoader(Slow()), "two": make(Slow())}
for loader in (loaders["one"], loaders["two"], torch.utils.data.DataLoader(Slow(), num_workers=0)):
    for x in loader:
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()
"""

CONTAINER = """\
import torch
from torch import nn


class Base(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = [nn.Linear(8, 8), nn.Linear(8, 8)]


class Net(Base):
    def __init__(self, depth=2):
        super().__init__()
        self.stem = nn.Linear(8, 8)
        self.blocks = [nn.Linear(8, 8) for _ in range(depth)]
        self.layers = []
        for _ in range(depth):
            self.layers.append(nn.Linear(8, 8))
        if depth:
            self.heads: dict[str, nn.Module] = {
                "class": nn.Linear(8, 10),
                "box": nn.Linear(8, 4),
            }
        self.pair = (nn.Linear(8, 8), nn.LayerNorm(8))

    def forward(self, x):
        x = self.stem(x)
        for layer in self.hidden:
            x = layer(x)
        for layer in self.blocks:
            x = layer(x)
        for layer in self.layers:
            x = layer(x)
        for layer in self.pair:
            x = layer(x)
        return [head(x) for head in self.heads.values()]


model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
sum(output.sum() for output in model(torch.randn(2, 8))).backward()
optimizer.step()
"""


def linted(rule: str, folder: Path) -> list[Finding]:
    config = Configs(Options(select=[rule]), folder).root_config
    return lint_file(File(folder / "example.py", "example.py", config))


@pytest.mark.parametrize(
    ("rule", "code", "count"), [("TA401", ADAM, 3), ("TA204", LOADER, 3), ("TA410", CONTAINER, 5)]
)
def test_a_pitfall_that_both_see_has_one_fingerprint(
    rule: str, code: str, count: int, tmp_path: Path
) -> None:
    seen = observed(code, tmp_path, rules=rule)
    suspected = linted(rule, tmp_path)
    assert len(suspected) == count
    assert [(finding.site.line, finding.fingerprint) for finding in seen] == [
        (finding.site.line, finding.fingerprint) for finding in suspected
    ]
    assert {finding.site.name for finding in seen} == {finding.site.name for finding in suspected}


@pytest.mark.parametrize("block", BLOCKS, ids=str)
def test_a_line_that_both_mark_has_one_fingerprint(block: Block, tmp_path: Path) -> None:
    if "cuda" in block.words and not torch.cuda.is_available():
        pytest.skip("needs a CUDA device")
    both = block.expected("static") & block.expected("runtime")
    for rule in sorted({rule for _, rule in both}):
        torch.seed() if "unseeded" in block.words else torch.manual_seed(0)
        seen = observed(block.code, tmp_path, rules=[rule], every_n_steps=int(block.settings.get("every", 1)))
        suspected = linted(rule, tmp_path)
        lines = {line for line, marked in both if marked == rule}
        assert {(found.site.line, found.fingerprint) for found in seen if found.site.line in lines} == {
            (found.site.line, found.fingerprint) for found in suspected if found.site.line in lines
        }
