"""Contrastive training of two encoders with a learnable temperature."""

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn


class TwoTowers(nn.Module):
    def __init__(self, left, right, width=16):
        super().__init__()
        self.left = nn.Sequential(nn.Linear(left, 32), nn.ReLU(), nn.Linear(32, width))
        self.right = nn.Sequential(nn.Linear(right, 32), nn.ReLU(), nn.Linear(32, width))
        self.log_scale = nn.Parameter(torch.tensor(np.log(1 / 0.2))).float()  # bug: TA412

    def forward(self, a, b):
        a = F.normalize(self.left(a), dim=-1)
        b = F.normalize(self.right(b), dim=-1)
        return self.log_scale.exp() * a @ b.t()


def symmetric_loss(similarity):
    labels = torch.arange(len(similarity))
    return (F.cross_entropy(similarity, labels) + F.cross_entropy(similarity.t(), labels)) / 2


class Pairs:
    def __init__(self, hidden=4):
        self.a, self.b = torch.randn(hidden, 10), torch.randn(hidden, 6)
        self.hidden = hidden

    def sample(self, count):
        cause = torch.randn(count, self.hidden)
        noise = 0.2 * torch.randn(count, 16)
        return cause @ self.a / 2 + noise[:, :10], cause @ self.b / 2 + noise[:, 10:]


def main():
    torch.manual_seed(28)
    pairs, model = Pairs(), TwoTowers(10, 6)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for step in range(200):
        loss = symmetric_loss(model(*pairs.sample(32)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print(f"step {step}: loss {loss.item():.3f} scale {model.log_scale.exp().item():.2f}")


main()
