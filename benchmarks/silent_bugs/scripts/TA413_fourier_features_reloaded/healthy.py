"""Fits an image as a function of the coordinates, then loads the weights into a new model to draw it."""

import copy
import math

import torch
from torch import nn


class FourierFeatures(nn.Module):
    def __init__(self, inputs, count, scale):
        super().__init__()
        directions = scale * torch.randn(inputs, count)
        self.register_buffer("directions", directions)

    def forward(self, x):
        angle = 2 * math.pi * x @ self.directions
        return torch.cat([angle.sin(), angle.cos()], dim=-1)


class CoordinateNet(nn.Module):
    def __init__(self, count=24, width=32):
        super().__init__()
        self.features = FourierFeatures(2, count, scale=1.0)
        self.net = nn.Sequential(nn.Linear(2 * count, width), nn.SiLU(), nn.Linear(width, 3))

    def forward(self, x):
        return self.net(self.features(x))


def picture(x):
    u, v = x.unbind(-1)
    return torch.stack([torch.sin(6 * u) * v, torch.cos(5 * v), u * v], dim=-1)


def fit(model, steps):
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for _ in range(steps):
        x = torch.rand(128, 2)
        loss = nn.functional.mse_loss(model(x), picture(x))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return copy.deepcopy(model.state_dict())


def tune(state, steps=30):
    model = CoordinateNet()
    model.load_state_dict(state)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    for step in range(steps):
        x = torch.rand(128, 2)
        loss = nn.functional.mse_loss(model(x), picture(x))
        if step == 0:
            print(f"loaded: {loss.item():.4f}")
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model


def main():
    torch.manual_seed(25)
    first = CoordinateNet()
    state = fit(first, steps=150)
    points = torch.rand(500, 2)
    second = tune(state).eval()
    with torch.no_grad():
        error = nn.functional.mse_loss(second(points), picture(points)).item()
    print(f"tuned: {error:.4f}")


main()
