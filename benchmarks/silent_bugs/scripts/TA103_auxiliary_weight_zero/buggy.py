"""Two tasks on one trunk: what the scene is, and how far it is away."""

from dataclasses import dataclass, field

import torch
from torch import nn
from torch.nn import functional as F


@dataclass
class Settings:
    steps: int = 120
    lr: float = 3e-3
    weights: dict = field(default_factory=lambda: {"scene": 1.0, "depth": 0.0})


class TwoTasks(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(
            nn.Conv2d(1, 8, 3, padding=1),
            nn.SiLU(),
            nn.AdaptiveAvgPool2d(4),
            nn.Flatten(),
        )
        self.scene = nn.Linear(128, 4)
        self.depth = nn.Linear(128, 1)  # bug: TA103 (runtime)

    def forward(self, image):
        features = self.trunk(image)
        return {"scene": self.scene(features), "depth": self.depth(features)[:, 0]}


def scenes(n):
    label = torch.randint(4, (n,))
    depth = torch.rand(n)
    image = 0.3 * torch.randn(n, 1, 16, 16)
    for i in range(n):
        row, column = 8 * (label[i] // 2), 8 * (label[i] % 2)
        image[i, 0, row : row + 8, column : column + 8] += 1.5 - depth[i]
    return image, label, depth


def weight_of(task, settings, step):
    return settings.weights[task]


def main(settings):
    torch.manual_seed(0)
    net = TwoTasks()
    optimizer = torch.optim.Adam(net.parameters(), lr=settings.lr)
    for step in range(settings.steps):
        image, label, depth = scenes(32)
        output = net(image)
        terms = {
            "scene": F.cross_entropy(output["scene"], label),
            "depth": F.mse_loss(output["depth"], depth),
        }
        loss = sum(weight_of(task, settings, step) * term for task, term in terms.items())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 30 == 0:
            print(step, {task: round(term.item(), 4) for task, term in terms.items()})


main(Settings())
