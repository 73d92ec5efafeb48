"""Validates after each epoch."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def validate(model, loader):
    correct = count = 0
    with torch.no_grad():
        for x, y in loader:
            predictions = model(x).argmax(dim=1)  # bug: TA612
            correct += (predictions == y).sum().item()
            count += len(y)
    return correct / count


def loaders():
    x = torch.randn(320, 8)
    y = (x[:, 0] * x[:, 1] > 0).long()
    train = DataLoader(TensorDataset(x[:256], y[:256]), batch_size=32, shuffle=True)
    return train, DataLoader(TensorDataset(x[256:], y[256:]), batch_size=32)


def main():
    torch.manual_seed(0)
    train_loader, val_loader = loaders()
    model = nn.Sequential(
        nn.Linear(8, 64, bias=False), nn.BatchNorm1d(64), nn.ReLU(), nn.Dropout(0.5), nn.Linear(64, 2)
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(4):
        model.train()
        for x, y in train_loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
        print(epoch, validate(model, val_loader))


if __name__ == "__main__":
    main()
