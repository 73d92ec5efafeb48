"""Refines blurred images with layers that begin as the identity."""

import torch
from torch import nn


class Refiner(nn.Module):
    def __init__(self, channels=3, width=9):
        super().__init__()
        self.lift = nn.Conv2d(channels, width, 3, padding=1, bias=False)  # bug: TA405 (runtime)
        self.act = nn.ReLU()
        self.merge = nn.Conv2d(width, channels, 3, padding=1)
        nn.init.dirac_(self.lift.weight)

    def forward(self, x):
        return x + self.merge(self.act(self.lift(x)))


def scenes(count, size=12):
    coarse = torch.randn(count, 3, size // 4, size // 4)
    sharp = nn.functional.interpolate(coarse, scale_factor=4, mode="nearest")
    blurred = nn.functional.avg_pool2d(sharp, 3, stride=1, padding=1)
    return blurred, sharp


def train(steps=80):
    model = Refiner()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    history = []
    for _ in range(steps):
        blurred, sharp = scenes(16)
        loss = (model(blurred) - sharp).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        history.append(loss.item())
    return history


if __name__ == "__main__":
    torch.manual_seed(4)
    losses = train()
    print(f"first {losses[0]:.3f} last {losses[-1]:.3f}")
