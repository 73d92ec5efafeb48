"""An implicit function of a curve: a sine network with its own ranges for the weights."""

import math

import torch
from torch import nn


class Sine(nn.Module):
    def __init__(self, inputs, width, outputs, depth, frequency=6.0):
        super().__init__()
        self.frequency = frequency
        self.layers = nn.ModuleList()
        for i in range(depth):
            self.layers.append(nn.Linear(inputs if i == 0 else width, width))
            self.reset()
        self.last = nn.Linear(width, outputs)

    def reset(self):
        for i, layer in enumerate(self.layers):
            bound = 1 / layer.in_features if i == 0 else math.sqrt(6 / layer.in_features) / self.frequency
            layer.weight.data.uniform_(-bound, bound)  # bug: TA433 (runtime)

    def forward(self, x):
        for layer in self.layers:
            x = torch.sin(self.frequency * layer(x))
        return self.last(x)


def curve(x):
    return torch.cat([torch.sin(7 * x) * (1 - x.abs()), x.square() - 0.3], dim=1)


def main(steps=200):
    torch.manual_seed(94)
    model = Sine(1, 24, 2, depth=4)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, milestones=[120, 170], gamma=0.4)
    for step in range(steps):
        x = 2 * torch.rand(64, 1) - 1
        loss = (model(x) - curve(x)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        if step % 40 == 0:
            print(f"step {step}: {loss.item():.5f}")


main()
