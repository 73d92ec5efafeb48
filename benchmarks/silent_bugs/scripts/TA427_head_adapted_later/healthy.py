"""Adapts a classifier that has ten outputs to the classes that the data has."""

import argparse

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class ConvNet(nn.Module):
    def __init__(self, classes=10):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 3, stride=2, padding=1)
        self.conv2 = nn.Conv2d(8, 16, 3, stride=2, padding=1)
        self.classifier = nn.Linear(16, classes)

    def forward(self, x):
        x = F.relu(self.conv1(x))
        x = F.relu(self.conv2(x))
        return self.classifier(x.mean(dim=(2, 3)))


def adapt(model, classes):
    if model.classifier.out_features != classes:
        model.classifier = nn.Linear(model.classifier.in_features, classes)
    return model


def textures(count):
    labels = torch.randint(3, (count,))
    grid = torch.arange(12).float()
    phase = 6.28 * torch.rand(count, 1, 1)
    rows = torch.sin(1.6 * grid.view(1, -1, 1) + phase).expand(-1, 12, 12)
    columns = torch.sin(1.6 * grid.view(1, 1, -1) + phase).expand(-1, 12, 12)
    pick = labels.view(-1, 1, 1)
    images = torch.where(pick == 0, rows, torch.where(pick == 1, columns, rows * columns))
    return TensorDataset((images + 0.3 * torch.randn(count, 12, 12)).unsqueeze(1), labels)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--lr", type=float, default=5e-3)
    args = parser.parse_args()
    torch.manual_seed(68)
    data = textures(960)
    model = ConvNet()
    model = adapt(model, int(data.tensors[1].max()) + 1)
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    loader = DataLoader(data, batch_size=32, shuffle=True)
    for epoch in range(args.epochs):
        total = 0.0
        for images, labels in loader:
            loss = F.cross_entropy(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch}: {total / len(loader):.3f}")


main()
