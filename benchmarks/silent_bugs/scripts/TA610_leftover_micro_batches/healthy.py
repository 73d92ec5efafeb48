"""Accumulates over four batches at a time."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def main():
    torch.manual_seed(0)
    x = torch.randn(96, 5)
    loader = DataLoader(TensorDataset(x, x.prod(dim=1, keepdim=True)), batch_size=8, shuffle=True)
    model = nn.Sequential(nn.Linear(5, 32), nn.ReLU(), nn.Linear(32, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
    optimizer.zero_grad()
    for epoch in range(4):
        for i, (inputs, targets) in enumerate(loader):
            loss = nn.functional.mse_loss(model(inputs), targets) / 4
            loss.backward()
            if (i + 1) % 4 == 0:
                optimizer.step()
                optimizer.zero_grad()
    print(loss.item())


if __name__ == "__main__":
    main()
