"""Fits a damped oscillation to noisy measurements with LBFGS."""

import math

import torch


class Oscillation(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.amplitude = torch.nn.Parameter(torch.tensor(0.7))
        self.decay = torch.nn.Parameter(torch.tensor(0.2))
        self.frequency = torch.nn.Parameter(torch.tensor(1.1))
        self.phase = torch.nn.Parameter(torch.tensor(0.1))

    def forward(self, t):
        envelope = self.amplitude * torch.exp(-self.decay * t)
        return envelope * torch.cos(2 * math.pi * self.frequency * t + self.phase)


def measurements(points, generator):
    t = torch.linspace(0, 4, points)
    clean = 1.5 * torch.exp(-0.4 * t) * torch.cos(2 * math.pi * 1.25 * t + 0.5)
    return t, clean + 0.03 * torch.randn(points, generator=generator)


def fit(model, t, y, iterations):
    optimizer = torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=4, history_size=8)

    def closure():
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(t), y)
        loss.backward()
        return loss

    for iteration in range(iterations):
        loss = optimizer.step(closure)
        if iteration % 10 == 0:
            print(f"{iteration:3d} {loss.item():.6f}")


def main():
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(0)
    model = Oscillation()
    t, y = measurements(200, generator)
    fit(model, t, y, iterations=50)
    print({name: round(p.item(), 3) for name, p in model.named_parameters()})


main()
