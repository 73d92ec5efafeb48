"""A deep network on tabular data."""

import torch
from torch import nn


class DeepNet(nn.Module):
    def __init__(self, inputs, width=24, depth=16):
        super().__init__()
        self.first = nn.Linear(inputs, width)  # bug: TA106 (runtime)
        self.blocks = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.last = nn.Linear(width, 2)

    def forward(self, x):
        x = torch.sigmoid(self.first(x))
        for block in self.blocks:
            x = torch.sigmoid(block(x))
        return self.last(x)


def main():
    torch.manual_seed(0)
    net = DeepNet(10)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    for step in range(60):
        x = torch.randn(64, 10)
        y = (x[:, 0] * x[:, 1] > 0).long()
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
    print("loss", round(loss.item(), 4))


if __name__ == "__main__":
    main()
