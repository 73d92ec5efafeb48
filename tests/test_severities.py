"""What does no harm today is a note; the same pattern that does is above."""

from pathlib import Path

import pytest

from ta_lint import lint_text
from ta_lint.core.config import Configs, Options
from ta_lint.discovery import discover
from ta_lint.runner import lint_files

LOOP = """
import torch
from torch import nn

model = nn.Linear(4, 2)
optimizer = {optimizer}
schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1)
batches = list(torch.randn(8, 2, 4))
for epoch in range(3):
    for i, x in enumerate(batches):
        loss = model(x).square().mean()
        loss.backward()
        {clip}
        if {when}:
            optimizer.step()
            optimizer.zero_grad()
"""


def loop(
    optimizer: str = "torch.optim.SGD(model.parameters(), lr=0.1)",
    clip: str = "pass",
    when: str = "True",
) -> str:
    return LOOP.format(optimizer=optimizer, clip=clip, when=when)


ADAM = "torch.optim.Adam(model.parameters())"
CLIP = "nn.utils.clip_grad_norm_(model.parameters(), 1.0)"
SOFTMAX = "import torch\nfrom torch.nn import functional as F\n\nx = torch.randn({sizes})\nprint(F.softmax({given}))\n"
PLAY = """
import gymnasium as gym
import torch

env = gym.make("{game}")
state, _ = env.reset()
kept = []
for _ in range(9):
    after, reward, terminated, truncated, _ = env.step(env.action_space.sample())
    done = terminated or truncated
    kept.append((state, reward, after, done))
    state = after
states, rewards, afters, dones = (torch.tensor(column) for column in zip(*kept))
targets = rewards + 0.99 * critic(afters) * (1 - dones)
"""
MASK = """
import torch


class Attention({base}):
    def forward(self, scores, mask):
        mask = mask.half()
        return {masked}
"""
VISION = "import torch\nfrom torchvision import models, transforms\n\nprint({made})\n"


KEPT = """
import torch
from torch import nn
from torch.nn import functional as F


class Meter:
    def __init__(self):
        self.reset()

    def reset(self):
        self.sum = 0.0

    def update(self, value):
        self.sum += value


def train_one_epoch(model, optimizer, loader, meter, kept):
    epoch_total = 0.0
    for x, y in loader:
        loss = F.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        {added}
    return float(epoch_total)


def fit(loader, seed):
    torch.manual_seed(seed)
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    meter, kept, of_epoch = Meter(), [], 0.0
    for epoch in range(9):
        {fresh}
        train_one_epoch(model, optimizer, loader, meter, kept)
        for x, y in loader:
            loss = F.mse_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            {here}


for seed in range(3):
    fit([(torch.randn(2, 4), torch.randn(2, 1))] * 9, seed)
"""


WHOLE = """
import os

import torch

path = os.path.join("out", "best.pt")
model = torch.nn.Linear(4, 2)
torch.save(model, path)
{load}
"""


def kept(added: str = "pass", fresh: str = "pass", here: str = "pass") -> str:
    return KEPT.format(added=added, fresh=fresh, here=here)


@pytest.mark.parametrize(
    ("rule", "code", "severity"),
    [
        ("TA702", 'import torch\n\nmodel = torch.hub.load("someone/model", "small")\n', "note"),
        ("TA703", WHOLE.format(load=""), "note"),
        ("TA703", WHOLE.format(load="again = torch.load('out/best.pt')\nagain.eval()"), "warning"),
        ("TA703", WHOLE.format(load="again = torch.load(path, map_location='cpu')"), "warning"),
        ("TA703", WHOLE.format(load="torch.load(path, weights_only=False)"), "note"),
        ("TA703", WHOLE.format(load="torch.load('other.pt')"), "note"),
        ("TA703", WHOLE.format(load="model.load_state_dict(torch.load(path))"), "note"),
        ("TA206", kept("epoch_total += loss"), "note"),
        ("TA206", kept("kept.append(loss)"), "warning"),
        ("TA206", kept(here="meter.update(loss)"), "warning"),
        ("TA206", kept(here="meter.update(loss)", fresh="meter.reset()"), "note"),
        ("TA206", kept(here="meter.update(loss)", fresh="meter = Meter()"), "note"),
        ("TA206", kept("kept.append(loss)", "kept = []"), "note"),
        ("TA206", kept(fresh="of_epoch = 0.0", here="of_epoch += loss"), "note"),
        ("TA206", kept(here="of_epoch += loss"), "warning"),
        ("TA111", MASK.format(base="", masked="scores + (1.0 - mask) * -1e9"), "warning"),
        (
            "TA111",
            MASK.format(base="torch.nn.Module", masked="scores.masked_fill(mask == 0, -1e9)"),
            "warning",
        ),
        ("TA111", MASK.format(base="", masked="scores.masked_fill(mask == 0, -1e9)"), "note"),
        ("TA401", loop("torch.optim.Adam(model.parameters(), weight_decay=1e-4)"), "note"),
        ("TA401", loop("torch.optim.Adam(model.parameters(), weight_decay=1e-2)"), "warning"),
        ("TA418", SOFTMAX.format(sizes="2, 5", given="x"), "note"),
        ("TA418", SOFTMAX.format(sizes="2, 5", given="unknown(x)"), "note"),
        ("TA418", SOFTMAX.format(sizes="2, 5, 5", given="x"), "warning"),
        ("TA609", loop(ADAM, when="(i + 1) % 4 == 0"), "note"),
        ("TA609", loop(ADAM, clip=CLIP, when="(i + 1) % 4 == 0"), "warning"),
        ("TA609", loop(when="(i + 1) % 4 == 0"), "warning"),
        ("TA540", PLAY.format(game="ALE/Pong-v5"), "note"),
        ("TA540", PLAY.format(game="Pendulum-v1"), "warning"),
        ("TA905", VISION.format(made="models.resnet18(pretrained=True)"), "note"),
        ("TA905", VISION.format(made="transforms.Scale(8)"), "warning"),
    ],
)
def test_a_finding_has_the_severity_of_its_harm(rule: str, code: str, severity: str, tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text(code, encoding="utf-8")
    found = [one.severity.value for one in lint_text(code, path) if one.rule == rule]
    assert found == [severity]


@pytest.mark.parametrize(
    ("load", "severity"),
    [
        ('torch.load("out/best.pt")', "warning"),
        ('torch.load("out/best.pt", weights_only=False)', "note"),
        ('torch.load("out/last.pt")', "note"),
    ],
)
def test_a_whole_model_is_a_warning_where_another_file_loads_it_plainly(
    load: str, severity: str, tmp_path: Path
) -> None:
    (tmp_path / "train.py").write_text(
        'import torch\nfrom net import Net\n\nmodel = Net()\ntorch.save(model, "out/best.pt")\n'
    )
    (tmp_path / "net.py").write_text("from torch import nn\n\n\nclass Net(nn.Module):\n    pass\n")
    (tmp_path / "test.py").write_text(
        f"import torch\nimport train\nfrom net import Net\n\nmodel = {load}\nmodel.eval()\n"
    )
    files = discover([tmp_path], Configs(Options(select=["TA703"]), tmp_path), tmp_path)
    assert [finding.severity.value for _, findings in lint_files(files, 1) for finding in findings] == [
        severity
    ]
