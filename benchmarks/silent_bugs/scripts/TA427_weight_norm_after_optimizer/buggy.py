"""A dilated convolutional forecaster with weight normalisation."""

import torch
from torch import nn
from torch.nn.utils.parametrizations import weight_norm


class Forecaster(nn.Module):
    def __init__(self, channels=12, levels=3):
        super().__init__()
        self.pads = [2 * 2**level for level in range(levels)]
        self.convs = nn.ModuleList(
            nn.Conv1d(1 if level == 0 else channels, channels, 3, dilation=2**level)
            for level in range(levels)
        )
        self.out = nn.Conv1d(channels, 1, 1)

    def forward(self, x):
        for pad, conv in zip(self.pads, self.convs):
            x = torch.relu(conv(nn.functional.pad(x, (pad, 0))))
        return self.out(x)


def normalise(model):
    for conv in model.convs:
        weight_norm(conv)  # bug: TA427
    return model


def series(batch, length=40):
    time = torch.arange(length + 1).float()
    speed = 0.2 + 0.4 * torch.rand(batch, 1, 1)
    offset = 6.28 * torch.rand(batch, 1, 1)
    wave = torch.sin(speed * time + offset) + 0.05 * torch.randn(batch, 1, length + 1)
    return wave[..., :-1], wave[..., 1:]


class Loop:
    def __init__(self, lr, steps):
        self.model = Forecaster()
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=lr)
        normalise(self.model)
        self.steps = steps

    def run(self):
        for step in range(self.steps):
            past, future = series(16)
            loss = nn.functional.mse_loss(self.model(past), future)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            if step % 30 == 0:
                print(f"step {step}: {loss.item():.4f}")


torch.manual_seed(71)
Loop(lr=5e-3, steps=150).run()
