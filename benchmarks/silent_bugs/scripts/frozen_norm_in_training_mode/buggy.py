"""Trains a new head on a frozen backbone, then checks that the first task is still solved."""

import torch
import torch.nn.functional as F
from torch import nn


class Backbone(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.conv1 = nn.Conv1d(1, width, 5, stride=2, bias=False)
        self.norm1 = nn.BatchNorm1d(width)
        self.conv2 = nn.Conv1d(width, width, 5, stride=2, bias=False)
        self.norm2 = nn.BatchNorm1d(width)

    def forward(self, x):
        x = F.relu(self.norm1(self.conv1(x)))
        return F.relu(self.norm2(self.conv2(x))).mean(dim=2)


def signals(count, level, power):
    labels = torch.randint(2, (count,))
    speed = torch.where(labels == 0, 0.4, 0.9).unsqueeze(1)
    wave = torch.sin(speed * torch.arange(40) + 6.28 * torch.rand(count, 1))
    return (level + power * (wave + 0.3 * torch.randn(count, 40))).unsqueeze(1), labels


def learn(backbone, head, steps, level, power, frozen):
    trained = head.parameters() if frozen else [*backbone.parameters(), *head.parameters()]
    optimizer = torch.optim.Adam(trained, lr=5e-3)
    backbone.requires_grad_(not frozen)
    backbone.train()  # bug: any
    head.train()
    total = 0.0
    for _ in range(steps):
        x, labels = signals(32, level, power)
        loss = F.cross_entropy(head(backbone(x)), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total / steps


def accuracy(backbone, head, level, power):
    backbone.eval()
    head.eval()
    with torch.no_grad():
        x, labels = signals(400, level, power)
        return (head(backbone(x)).argmax(1) == labels).float().mean().item()


def main():
    torch.manual_seed(39)
    backbone, first, second = Backbone(), nn.Linear(16, 2), nn.Linear(16, 2)
    print(f"first task: loss {learn(backbone, first, 80, 0.0, 1.0, frozen=False):.3f}")
    print(f"first task: accuracy {accuracy(backbone, first, 0.0, 1.0):.3f}")
    print(f"second task: loss {learn(backbone, second, 80, 1.5, 0.4, frozen=True):.3f}")
    print(f"first task after it: accuracy {accuracy(backbone, first, 0.0, 1.0):.3f}")


main()
