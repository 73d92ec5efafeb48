"""A block of a CNN."""

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, 3, padding=1)  # bug: TA400
        self.bn = nn.BatchNorm2d(outputs)

    def forward(self, x):
        return torch.relu(self.bn(self.conv(x)))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.block = Block(3, 8)
        self.head = nn.Linear(8, 5)

    def forward(self, x):
        return self.head(self.block(x).mean(dim=(2, 3)))


def main():
    torch.manual_seed(0)
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    for _ in range(20):
        images, labels = torch.randn(16, 3, 8, 8), torch.randint(5, (16,))
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(images), labels)
        loss.backward()
        optimizer.step()
    print(loss.item())


if __name__ == "__main__":
    main()
