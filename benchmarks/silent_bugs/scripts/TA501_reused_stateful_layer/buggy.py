"""A residual block."""

import torch
from torch import nn


class Residual(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(channels)  # bug: TA501 (runtime)

    def forward(self, x):
        hidden = torch.relu(self.norm(self.conv1(x)))
        return torch.relu(x + self.norm(self.conv2(hidden)))


def main():
    torch.manual_seed(0)
    stem = nn.Conv2d(3, 8, 1)
    net = nn.Sequential(stem, Residual(8), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 4))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
    for _ in range(20):
        x, y = torch.randn(16, 3, 8, 8), torch.randint(4, (16,))
        loss = nn.functional.cross_entropy(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(loss.item())


if __name__ == "__main__":
    main()
