"""Widens a layer of a trained CNN and trains on."""

import torch
from torch import nn


def widened(conv, outputs):
    new = nn.Conv2d(conv.in_channels, outputs, conv.kernel_size, padding=conv.padding)  # bug: TA405 (runtime)
    with torch.no_grad():
        new.weight.zero_()
        new.bias.zero_()
        new.weight[: conv.out_channels] = conv.weight
        new.bias[: conv.out_channels] = conv.bias
    return new


def main():
    torch.manual_seed(0)
    old = nn.Conv2d(3, 8, 3, padding=1)
    net = nn.Sequential(widened(old, 16), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 3))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
    for _ in range(25):
        images, labels = torch.randn(16, 3, 10, 10), torch.randint(3, (16,))
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(images), labels)
        loss.backward()
        optimizer.step()
    print(loss.item())


if __name__ == "__main__":
    main()
