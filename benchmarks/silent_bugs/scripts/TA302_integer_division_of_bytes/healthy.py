"""Reads dials: the angle of a bright needle in a byte image."""

import argparse
import math

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Dials(Dataset):
    def __init__(self, n, size, generator):
        angle = (0.1 + 0.8 * torch.rand(n, generator=generator)) * math.pi
        grid = torch.arange(size) - size / 2
        away = (grid[:, None] * angle.cos()[:, None, None] - grid * angle.sin()[:, None, None]).abs()
        images = 200 * torch.exp(-away) + 30 * torch.rand(n, size, size, generator=generator)
        self.images, self.angles = images.to(torch.uint8), angle

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        pixels = self.images[index] / 255
        return pixels.float().unsqueeze(0), self.angles[index : index + 1]


def make_model():
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, stride=2, padding=1),
        nn.Hardtanh(-3, 3),
        nn.Conv2d(8, 16, 3, stride=2, padding=1),
        nn.GELU(),
        nn.Flatten(),
        nn.Linear(16 * 16, 1),
    )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--lr", type=float, default=0.02)
    args = parser.parse_args()
    torch.manual_seed(36)
    data = Dials(960, 16, torch.Generator().manual_seed(36))
    loader = DataLoader(data, batch_size=32, shuffle=True)
    model = make_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9)
    for epoch in range(args.epochs):
        total = 0.0
        for image, angle in loader:
            loss = nn.functional.mse_loss(model(image), angle)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(image)
        print(f"{epoch} {total / len(data):.4f}")


if __name__ == "__main__":
    main()
