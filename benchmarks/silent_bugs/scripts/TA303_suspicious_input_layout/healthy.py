"""Grey images as an image library hands them out: height, width, channel."""

import torch
from torch import nn


class GreyNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 16, 3, padding=1)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.head = nn.Linear(16, 10)

    def forward(self, x):
        x = torch.relu(self.conv(x))
        return self.head(self.pool(x).flatten(1))


def main():
    torch.manual_seed(0)
    images = torch.rand(256, 28, 28, 1) - 0.5
    images = images.permute(0, 3, 1, 2)
    labels = torch.randint(10, (256,))
    net = GreyNet()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
    for start in range(0, 256, 16):
        optimizer.zero_grad()
        scores = net(images[start : start + 16])
        loss = nn.functional.cross_entropy(scores, labels[start : start + 16])
        loss.backward()
        optimizer.step()
    print(loss.item())


if __name__ == "__main__":
    main()
