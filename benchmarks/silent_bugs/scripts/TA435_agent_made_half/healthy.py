"""A regression whose settings say the type of the weights."""

from dataclasses import dataclass

import torch
from torch import nn


@dataclass
class Settings:
    weights: str = "float32"
    lr: float = 1e-5
    steps: int = 60


def build(settings):
    net = nn.Sequential(nn.Linear(24, 64), nn.SiLU(), nn.Linear(64, 64), nn.SiLU(), nn.Linear(64, 1))
    return net.to(getattr(torch, settings.weights))


def train(settings):
    net = build(settings)
    kind = next(net.parameters()).dtype
    optimizer = torch.optim.Adam(net.parameters(), lr=settings.lr)
    for step in range(settings.steps):
        x = torch.randn(128, 24)
        y = x[:, :3].sum(1, keepdim=True)
        loss = nn.functional.huber_loss(net(x.to(kind)).float(), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 20 == 0:
            print(step, loss.item())


torch.manual_seed(5)
train(Settings())
