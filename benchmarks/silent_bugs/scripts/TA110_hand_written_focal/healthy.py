"""Fraud detection on heavy-tailed amounts, with a focal loss."""

import torch
from torch import nn
from torch.nn import functional as F


class FocalLoss(nn.Module):
    def __init__(self, alpha=0.7, gamma=2.0):
        super().__init__()
        self.alpha, self.gamma = alpha, gamma

    def forward(self, logits, target):
        p = torch.sigmoid(logits)
        log_p = F.logsigmoid(logits)
        log_not_p = F.logsigmoid(-logits)
        positive = self.alpha * (1 - p) ** self.gamma * log_p
        negative = (1 - self.alpha) * p**self.gamma * log_not_p
        return -(target * positive + (1 - target) * negative).mean()


class Scorer(nn.Module):
    def __init__(self, fields):
        super().__init__()
        self.skip = nn.Linear(fields, 1)
        self.deep = nn.Sequential(nn.Linear(fields, 32), nn.Tanh(), nn.Linear(32, 1))

    def forward(self, x):
        return (self.skip(x) + self.deep(x)).squeeze(-1)


def transactions(n, generator):
    x = torch.randn(n, 9, generator=generator)
    x[:, 0] = torch.tan(1.55 * (2 * torch.rand(n, generator=generator) - 1))
    x[:, 0] *= 3
    y = ((x[:, 0] > 6) | (x[:, 1] > 1.5)).float()
    return x, y


def main():
    torch.manual_seed(24)
    generator = torch.Generator().manual_seed(24)
    model, criterion = Scorer(9), FocalLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-2)
    for step in range(200):
        x, y = transactions(256, generator)
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 30 == 0:
            print(step, loss.item())


main()
