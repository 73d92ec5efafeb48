"""Accumulates gradients over micro-batches."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ACCUMULATION = 4


def main():
    torch.manual_seed(0)
    x = torch.randn(384, 8)
    loader = DataLoader(TensorDataset(x, (x[:, 0] > 0).long()), batch_size=8, shuffle=True)
    model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for i, (inputs, targets) in enumerate(loader):
        loss = nn.functional.cross_entropy(model(inputs), targets)
        loss.backward()  # bug: TA609
        if (i + 1) % ACCUMULATION == 0 or i + 1 == len(loader):
            optimizer.step()
            optimizer.zero_grad()
    print(loss.item())


if __name__ == "__main__":
    main()
