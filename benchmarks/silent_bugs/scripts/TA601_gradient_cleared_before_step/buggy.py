"""A training step in a function."""

import torch
from torch import nn


def train_step(model, criterion, optimizer, x, y):
    loss = criterion(model(x), y)
    loss.backward()
    optimizer.zero_grad()  # bug: TA601
    optimizer.step()
    return loss.item()


def main():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(7, 16), nn.ELU(), nn.Linear(16, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    criterion = nn.CrossEntropyLoss()
    for _ in range(30):
        x = torch.randn(32, 7)
        loss = train_step(model, criterion, optimizer, x, (x[:, 0] > 0).long())
    print(loss)


if __name__ == "__main__":
    main()
