"""Fit the parameters of a damped oscillation to noisy measurements."""

import math

import torch
from torch import nn


class Oscillation(nn.Module):
    def __init__(self):
        super().__init__()
        self.amplitude = nn.Parameter(torch.tensor(0.8))
        self.decay = nn.Parameter(torch.tensor(0.3))
        self.frequency = nn.Parameter(torch.tensor(1.8))
        self.phase = nn.Parameter(torch.tensor(0.2))

    def forward(self, time):
        wave = torch.sin(self.frequency * time + self.phase)
        return self.amplitude * torch.exp(-self.decay * time) * wave


def measure(count):
    time = torch.rand(count) * 3 * math.pi
    clean = 1.4 * torch.exp(-0.15 * time) * torch.sin(2.0 * time + 0.5)
    return time, clean + 0.05 * torch.randn(count)


def fit(model, steps, lr):
    optimizer = torch.optim.LBFGS(model.parameters(), lr=lr, max_iter=4, history_size=6)
    trace = []
    for _ in range(steps):
        time, value = measure(400)

        def closure():
            loss = nn.functional.mse_loss(model(time), value)
            loss.backward()
            return loss

        loss = optimizer.step(closure)  # bug: TA600
        trace.append(loss.item())
    return trace


if __name__ == "__main__":
    torch.manual_seed(60)
    oscillation = Oscillation()
    trace = fit(oscillation, steps=50, lr=0.2)
    print("loss at the start and at the end:", round(trace[0], 4), round(trace[-1], 4))
    print({name: round(p.item(), 3) for name, p in oscillation.named_parameters()})
