"""Dense detector of small bright squares, trained with the focal loss."""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F

PRIOR = 0.01


def make_head(width, depth):
    layers, channels = [], 1
    for _ in range(depth):
        layers += [nn.Conv2d(channels, width, 3, padding=1), nn.ReLU()]
        channels = width
    layers.append(nn.Conv2d(channels, 1, 3, padding=1))
    head = nn.Sequential(*layers)
    for layer in head:
        if isinstance(layer, nn.Conv2d):
            nn.init.normal_(layer.weight, std=0.1)
            nn.init.zeros_(layer.bias)
    nn.init.constant_(head[-1].bias, -math.log((1 - PRIOR) / PRIOR))
    return head


def focal_loss(logits, target, gamma=2.0, alpha=0.75):
    entropy = F.binary_cross_entropy_with_logits(logits, target, reduction="none")
    p = torch.sigmoid(logits)
    wrong = target * (1 - p) + (1 - target) * p
    weight = target * alpha + (1 - target) * (1 - alpha)
    return (weight * wrong**gamma * entropy).sum() / target.sum().clamp(min=1)


def pictures(n, size=20):
    image = 0.5 * torch.randn(n, 1, size, size)
    target = torch.zeros(n, 1, size, size)
    for i in range(n):
        row, column = torch.randint(1, size - 1, (2,)).tolist()
        image[i, 0, row - 1 : row + 2, column - 1 : column + 2] += 1.5
        target[i, 0, row, column] = 1
    return image, target


def main():
    torch.manual_seed(0)
    head = make_head(width=16, depth=3)
    optimizer = torch.optim.Adam(head.parameters(), lr=2e-3)
    for step in range(90):
        image, target = pictures(16)
        loss = focal_loss(head(image), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 15 == 0:
            print(step, loss.item())


main()
