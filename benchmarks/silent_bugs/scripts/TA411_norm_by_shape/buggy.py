"""Classifies signals of two lengths; normalisation over whatever shape comes in."""

import torch
from torch import nn
from torch.nn import functional as F


class SignalNet(nn.Module):
    def __init__(self, channels=10, classes=3):
        super().__init__()
        self.conv1 = nn.Conv1d(1, channels, 5, padding=2)
        self.conv2 = nn.Conv1d(channels, channels, 5, padding=2)
        self.fc = nn.Linear(channels, classes)

    def _norm(self, x):
        norm = nn.LayerNorm(x.shape[1:])  # bug: TA411
        return norm(x)

    def forward(self, x):
        x = F.relu(self._norm(self.conv1(x)))
        x = F.max_pool1d(x, 2)
        x = F.relu(self._norm(self.conv2(x)))
        return self.fc(x.mean(dim=2))


def signals(count, length):
    labels = torch.randint(3, (count,))
    time = torch.linspace(0, 1, length)
    phase = 6.28 * torch.rand(count, 1)
    frequency = (2.0 + 3.0 * labels).unsqueeze(1)
    clean = torch.sin(6.28 * frequency * time + phase)
    return (clean + 0.3 * torch.randn(count, length)).unsqueeze(1), labels


def main():
    torch.manual_seed(10)
    model = SignalNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for step in range(120):
        optimizer.zero_grad()
        total = 0.0
        for length in (32, 48):
            x, labels = signals(16, length)
            loss = F.cross_entropy(model(x), labels) / 2
            loss.backward()
            total += loss.item()
        optimizer.step()
        if step % 30 == 0:
            print(f"step {step}: {total:.3f}")


main()
