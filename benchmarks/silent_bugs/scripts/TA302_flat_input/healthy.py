"""Digits, scaled before training."""

import torch
from torch import nn


def scaled(images):
    return images.float() / 255


def train(net, images, labels, steps=30):
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    for _ in range(steps):
        batch = torch.randperm(len(images))[:32]
        scores = net(images[batch])
        loss = nn.functional.cross_entropy(scores, labels[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


def main():
    torch.manual_seed(0)
    raw = torch.randint(0, 255, (400, 1, 12, 12), dtype=torch.uint8)
    labels = (raw.float().mean(dim=(1, 2, 3)) > 127).long()
    net = nn.Sequential(nn.Flatten(), nn.Linear(144, 32), nn.ReLU(), nn.Linear(32, 2))
    print(train(net, scaled(raw), labels))


if __name__ == "__main__":
    main()
