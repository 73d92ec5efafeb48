"""Restores noisy signals with a deep 1-d convolutional network."""

import torch
import torch.nn as nn

DEPTH, WIDTH = 10, 12


class Stage(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.GroupNorm(3, width)
        self.conv = nn.Conv1d(width, width, 5, padding=2)

    def forward(self, x):
        return x + torch.sigmoid(self.conv(self.norm(x)))


class Restorer(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        self.stages = nn.ModuleList([Stage(width) for _ in range(depth)])
        self.close = nn.Conv1d(width, 1, 1)

    def forward(self, signal):
        x = signal.expand(-1, WIDTH, -1)
        for stage in self.stages:
            x = stage(x)
        return self.close(x)


def signals(n, length=48):
    t = torch.linspace(0, 1, length)
    clean = torch.sin(6.28 * (1 + 3 * torch.rand(n, 1)) * t + 6.28 * torch.rand(n, 1))
    return (clean + 0.3 * torch.randn(n, length))[:, None], clean[:, None]


def main():
    torch.manual_seed(12)
    model = Restorer(WIDTH, DEPTH)
    criterion = nn.L1Loss()
    optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3)
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.98)
    for step in range(120):
        noisy, clean = signals(16)
        optimizer.zero_grad()
        loss = criterion(model(noisy), clean)
        loss.backward()
        optimizer.step()
        if step % 10 == 9:
            schedule.step()
        if step % 30 == 0:
            print(step, round(loss.item(), 4))


if __name__ == "__main__":
    main()
