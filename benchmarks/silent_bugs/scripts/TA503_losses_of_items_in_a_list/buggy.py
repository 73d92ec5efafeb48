"""Matching of sets of different sizes: every item of a batch has a loss of its own."""

import random

import torch
from torch import nn


class PointScorer(nn.Module):
    def __init__(self, dim, hidden=32):
        super().__init__()
        self.score = nn.Sequential(nn.Linear(dim, hidden), nn.ReLU(), nn.Linear(hidden, 1))

    def forward(self, points):
        return self.score(points)[:, 0]


def make_set(dim):
    size = random.randint(3, 8)
    points = torch.randn(size, dim)
    return points, points[:, 0].argmax().reshape(1)


def batch_loss(model, batch, criterion):
    losses = []
    for points, target in batch:
        losses.append(criterion(model(points)[None], target).item())
    return torch.as_tensor(losses).mean()


def main(steps=80, batch_size=12, dim=4):
    random.seed(1)
    torch.manual_seed(1)
    model = PointScorer(dim)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    running = []
    for step in range(steps):
        optimizer.zero_grad()
        loss = batch_loss(model, [make_set(dim) for _ in range(batch_size)], criterion)
        loss.requires_grad_()  # bug: TA503 (static)
        loss.backward()  # bug: TA503 (runtime)
        optimizer.step()
        running.append(loss.item())
        if (step + 1) % 20 == 0:
            print(f"{step + 1:4d}: {sum(running[-20:]) / 20:.4f}")


if __name__ == "__main__":
    main()
