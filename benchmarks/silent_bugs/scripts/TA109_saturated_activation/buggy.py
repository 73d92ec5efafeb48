"""Predicts energy use from raw meter readings."""

import torch
from torch import nn


class Meter(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 32)
        self.squash = nn.Tanh()  # bug: TA109 (runtime)
        self.outer = nn.Linear(32, 1)

    def forward(self, readings):
        return self.outer(self.squash(self.inner(readings)))


def readings(count):
    watts = 900.0 + 400.0 * torch.randn(count, 4)
    demand = watts.mean(dim=1, keepdim=True) / 1000.0
    return watts, demand


def main():
    torch.manual_seed(0)
    model = Meter()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
    for _ in range(30):
        x, y = readings(64)
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
