"""Finetune a head on a backbone whose norms hold the statistics of a large data set."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Backbone(nn.Sequential):
    def __init__(self, width):
        super().__init__(
            nn.Conv2d(1, width, 3, padding=1, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(width, width, 3, padding=1, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            nn.MaxPool2d(2),
        )


class Locator(nn.Module):
    """Finds the position of a blob."""

    def __init__(self, width=8, frozen_norms=True):
        super().__init__()
        self.frozen_norms = frozen_norms
        self.backbone = Backbone(width)
        self.head = nn.Linear(width * 16, 2)

    def train(self, mode=True):
        super().train(mode)
        if self.frozen_norms:
            for module in self.backbone.modules():
                if isinstance(module, nn.BatchNorm2d):
                    module.eval()
        return self

    def forward(self, images):
        return self.head(self.backbone(images).flatten(1))


def blobs(count, size=16):
    position = torch.rand(count, 2) * 1.4 - 0.7
    axis = torch.linspace(-1, 1, size)
    rows = (axis - position[:, :1]).square()
    columns = (axis - position[:, 1:]).square()
    images = torch.exp(-12 * (rows[:, :, None] + columns[:, None, :]))
    return TensorDataset(images[:, None] - 0.2 + 0.15 * torch.randn(count, 1, size, size), position)


def fit(model, loader, optimizer, epochs):
    for epoch in range(epochs):
        total = 0.0
        for images, position in loader:
            optimizer.zero_grad()
            loss = F.smooth_l1_loss(model(images), position)
            loss.backward()
            optimizer.step()  # bug: TA619 (runtime)
            total += loss.item()
        print(f"epoch {epoch}: {total / len(loader):.5f}")


if __name__ == "__main__":
    torch.manual_seed(199)
    locator = Locator()
    loader = DataLoader(blobs(768), batch_size=32, shuffle=True)
    fit(locator, loader, torch.optim.Adam(locator.parameters(), lr=3e-3), epochs=4)
