"""Forecasts with weight noise; predictions are averaged over several draws."""

import math

import torch
from torch import nn


class NoisyLinear(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.mean = nn.Parameter(torch.randn(outputs, inputs) / inputs**0.5)
        self.log_scale = nn.Parameter(torch.full((outputs, inputs), -4.0))
        self.shift = nn.Parameter(torch.zeros(outputs))

    def forward(self, x):
        weight = self.mean + self.log_scale.exp() * torch.randn_like(self.mean)
        return x @ weight.t() + self.shift


class Forecaster(nn.Module):
    def __init__(self, history=20, horizon=5, draws=3):
        super().__init__()
        self.draws = draws
        self.first = NoisyLinear(history, 40)
        self.second = NoisyLinear(40, horizon)

    def draw(self, history):
        return self.second(torch.tanh(self.first(history)))

    def forward(self, history):
        return self.draw(history)


def waves(n, generator):
    t = torch.arange(25) * 0.3
    phase = 2 * math.pi * torch.rand(n, 1, generator=generator)
    wave = torch.sin(t + phase) + 0.1 * torch.randn(n, 25, generator=generator)
    return wave[:, :20], wave[:, 20:]


def main():
    torch.manual_seed(59)
    generator = torch.Generator().manual_seed(59)
    model = Forecaster()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for step in range(150):
        history, future = waves(32, generator)
        forecast = model(history).mean(0)
        loss = nn.functional.mse_loss(forecast, future)  # bug: TA317 (runtime)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 30 == 0:
            print(step, loss.item())


if __name__ == "__main__":
    main()
