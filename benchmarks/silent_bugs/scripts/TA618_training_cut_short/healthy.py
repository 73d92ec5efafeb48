"""Trains for a number of updates that is computed from the epochs."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def endless(loader):
    while True:
        yield from loader


def main():
    torch.manual_seed(0)
    epochs, accumulation = 3, 2
    x = torch.randn(9, 4)
    loader = DataLoader(TensorDataset(x, x[:, :1]), batch_size=2, shuffle=True)
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    updates = -(-len(loader) // accumulation) * epochs
    batches = endless(loader)
    for _ in range(updates):
        optimizer.zero_grad()
        for _ in range(accumulation):
            inputs, targets = next(batches)
            (nn.functional.mse_loss(model(inputs), targets) / accumulation).backward()
        optimizer.step()
    print(model.weight.detach())


if __name__ == "__main__":
    main()
