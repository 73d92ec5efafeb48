"""A surrogate of a flow: from eight settings of a nozzle to the deviation of pressure on a grid, in bar."""

import torch
import torch.nn as nn

GRID = 48 * 48


class Surrogate(nn.Module):
    def __init__(self, hidden=96):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(8, hidden), nn.GELU(), nn.Linear(hidden, hidden), nn.GELU())
        self.field = nn.Linear(hidden, GRID)

    def forward(self, settings):
        with torch.autocast(settings.device.type, dtype=torch.bfloat16):
            out = self.field(self.trunk(settings))
        return out.float()


def simulate(count):
    settings = torch.rand(count, 8)
    basis = torch.sin(torch.outer(torch.arange(1, 9).float(), torch.linspace(0, 6.28, GRID)))
    return settings, 1e-3 * (settings - 0.5) @ basis


class Training:
    def __init__(self, model):
        self.model = model
        self.optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

    def step(self, settings, pressure):
        self.optimizer.zero_grad(set_to_none=True)
        error = self.model(settings) - pressure
        loss = error.square().mean()
        loss.backward()
        self.optimizer.step()
        return loss.item()


torch.manual_seed(7)
training = Training(Surrogate())
settings, pressure = simulate(1024)
for epoch in range(8):
    order = torch.randperm(len(settings))
    losses = [training.step(settings[some], pressure[some]) for some in order.split(128)]
    print(f"{epoch:2d}  {sum(losses) / len(losses):.3e}")
