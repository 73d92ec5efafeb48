"""Fault detection from sensor readings. A reading of a disconnected probe is infinite."""

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


def make_readings(n, rare):
    x = torch.randn(n, 12)
    y = (x[:, 0] * x[:, 1] > 0).float()
    x[rare, 5] = float("inf")
    return TensorDataset(x, y)


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(12)
        self.body = nn.Sequential(nn.Linear(12, 32), nn.Tanh(), nn.Linear(32, 32), nn.ELU())
        self.head = nn.Linear(32, 1)

    def forward(self, x):
        return self.head(self.body(self.norm(x))).squeeze(1)


@torch.no_grad()
def accuracy(model, loader):
    model.eval()
    right = sum(((model(x) > 0) == (y > 0.5)).sum().item() for x, y in loader)
    return right / len(loader.dataset)


def train_epoch(model, loader, optimizer, criterion):
    model.train()
    for x, y in loader:
        if not torch.isfinite(x).all():
            continue
        logits = model(x)
        loss = criterion(logits, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def main():
    torch.manual_seed(20)
    train = DataLoader(make_readings(1600, rare=[700]), batch_size=32, shuffle=True)
    held_out = DataLoader(make_readings(320, rare=[]), batch_size=64)
    model = Detector()
    optimizer = torch.optim.RMSprop(model.parameters(), lr=2e-3)
    criterion = nn.BCEWithLogitsLoss()
    for epoch in range(4):
        train_epoch(model, train, optimizer, criterion)
        print(epoch, accuracy(model, held_out))


main()
