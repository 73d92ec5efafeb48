"""What does no harm today is a note; the same pattern that does is above."""

from pathlib import Path

import pytest

from ta_lint import lint_text

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


def kept(added: str = "pass", fresh: str = "pass", here: str = "pass") -> str:
    return KEPT.format(added=added, fresh=fresh, here=here)


@pytest.mark.parametrize(
    ("rule", "code", "severity"),
    [
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
