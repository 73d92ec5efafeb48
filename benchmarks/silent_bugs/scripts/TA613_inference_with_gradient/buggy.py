"""Measures the validation loss."""

import torch
from torch import nn


def evaluate(model, criterion, batches):
    model.eval()
    total = 0.0
    for x, y in batches:
        total += criterion(model(x), y).item()  # bug: TA613
    return total / len(batches)


def train(model, criterion, optimizer, batches):
    model.train()
    for x, y in batches:
        optimizer.zero_grad()
        criterion(model(x), y).backward()
        optimizer.step()


def main():
    torch.manual_seed(0)
    batches = [(x, x.mean(dim=1, keepdim=True)) for x in torch.randn(12, 32, 6)]
    model = nn.Sequential(nn.Linear(6, 32), nn.Dropout(0.1), nn.Tanh(), nn.Linear(32, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    criterion = nn.MSELoss()
    for epoch in range(4):
        train(model, criterion, optimizer, batches[:10])
        print(epoch, evaluate(model, criterion, batches[10:]))


if __name__ == "__main__":
    main()
