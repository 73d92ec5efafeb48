"""Trains a classifier for some epochs."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def make_data(per_class=60, classes=4):
    centres = 2 * torch.randn(classes, 10)
    labels = torch.arange(classes).repeat_interleave(per_class)
    return TensorDataset(centres[labels] + torch.randn(len(labels), 10), labels)


def main():
    torch.manual_seed(0)
    train_loader = DataLoader(make_data(), batch_size=20)  # bug: TA314
    model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(4):
        correct = 0
        for x, y in train_loader:
            scores = model(x)
            loss = nn.functional.cross_entropy(scores, y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            correct += (scores.argmax(dim=1) == y).sum().item()
        print(epoch, correct / 240)


if __name__ == "__main__":
    main()
