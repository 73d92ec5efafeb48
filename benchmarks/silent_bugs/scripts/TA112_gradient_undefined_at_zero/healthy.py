"""Siamese embedding with a contrastive loss."""

import torch
from torch import nn


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 8))

    def forward(self, x):
        return self.net(x)


def contrastive(first, second, same, margin=1.0):
    distance = torch.sqrt(((first - second) ** 2).sum(dim=1))  # suspected: TA112
    return (same * distance + (1 - same) * torch.relu(margin - distance)).mean()


def pairs(data, count):
    first = torch.randint(len(data), (count,))
    second = (first + torch.randint(1, len(data), (count,))) % len(data)
    return data[first], data[second], (first % 4 == second % 4).float()


def main():
    torch.manual_seed(0)
    data = torch.randn(100, 10)
    encoder = Encoder()
    optimizer = torch.optim.Adam(encoder.parameters(), lr=1e-3)
    for _ in range(20):
        a, b, same = pairs(data, 32)
        loss = contrastive(encoder(a), encoder(b), same)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(loss.item())


if __name__ == "__main__":
    main()
